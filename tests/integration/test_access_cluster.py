"""Access control in a running cluster: slaves that sign and that do not, RocketMQ's
among them, a lost password, and what proxies and TLS put before a signed request."""

from __future__ import annotations

import json
import socket
from typing import Any, Final

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.auth.signatures import Credentials, sign
from rocketbroker.blocking import Client, Message, Producer, Settings
from rocketbroker.errors import NoPermission, RocketbrokerError
from rocketbroker.wire.command import Command
from rocketbroker.wire.connection import Connection
from rocketbroker.wire.frames import encode
from scripts.lab.pair import OURS, Group, Member, log_differences, until
from scripts.lab.servers import Cluster
from tests.heavy import HEAVY
from tests.integration.access_rows import POLICY_SETTINGS
from tests.missing import needs
from tests.remoting.certificates import client_context

ADMINISTRATOR: Final = Credentials("administrator", "admin-secret")

#: What the slave of a master signs with.
INNER: Final = "innerClientAuthenticationCredentials"

TOPIC: Final = "Orders"


class SlaveTests(SynchronousTestCase):
    """A master with ACL 2.0, and a slave."""

    timeout = 600

    def group(self, master: str, slave: str, **settings: Any) -> Group:
        """Both are up, and the topic is there."""
        self.servers = Group(master, slave, **settings)
        self.addCleanup(self.servers.stop)
        self.servers.sign(ADMINISTRATOR)
        self.servers.namesrv.start()
        self.servers.master.start()
        self.client = self.client_of(ADMINISTRATOR)
        self.assertTrue(until(self.is_made), self.servers.master.output()[-3000:])
        self.servers.slaves[0].start()
        return self.servers

    def client_of(self, credentials: Credentials) -> Client:
        """A client that signs."""
        client = Client(
            Settings(self.servers.names, seconds=30.0, credentials=credentials)
        )
        self.addCleanup(client.close)
        return client

    def is_made(self, topic: str = TOPIC) -> bool:
        """Whether the topic could be made: the name server has to know the master, and
        after a start of that the old connection is gone."""
        try:
            self.client.create_topic(topic, queues=1)
        except RocketbrokerError:
            return False
        return True

    def send(self, count: int) -> None:
        """Send messages to the master."""
        producer = Producer(self.client)
        for number in range(count):
            result = producer.send(Message(TOPIC, b"%d" % number))
            self.assertEqual(result.status, 0)

    def topics_of(self, member: Member) -> set[str]:
        """The topics in a broker's table."""
        try:
            answer = self.client.ask_server(member.address, 21, {})
        except RocketbrokerError:
            return set()
        return set(json.loads(answer.body)["topicConfigTable"])

    def is_same(self, slave: Member) -> None:
        """The slave has its master's log and topics; both are stopped for it."""
        end = self.servers.wait_for(slave)
        for member in self.servers.members[::-1]:
            member.stop()
        found = log_differences(self.servers.master.store, slave.store, end)
        self.assertEqual(list(found), [])

    def test_slaveThatCannotSign(self) -> None:
        """Access control is switched on at its master: both logs say that the slave is
        refused, and what it needs; replication goes on; then it has that, and its
        tables come."""
        group = self.group(OURS, OURS)
        (slave,) = group.slaves
        self.send(10)
        group.wait_for(slave)
        group.master.stop()
        group.master.set(**POLICY_SETTINGS)
        group.master.start()
        self.assertTrue(until(lambda: self.is_made("Later")))
        self.send(10)
        group.wait_for(slave)
        self.assertTrue(until(lambda: INNER in slave.output()), slave.output()[-3000:])
        self.assertIn("cannot be had: username cannot be null", slave.output())
        self.assertIn("is refused: username cannot be null", group.master.output())
        self.assertNotIn("Later", self.topics_of(slave))
        slave.stop()
        slave.set(**{INNER: POLICY_SETTINGS[INNER]})
        slave.start()
        self.assertTrue(until(lambda: "Later" in self.topics_of(slave)))
        self.is_same(slave)

    if HEAVY:

        def test_slaveOfRocketMQ(self) -> None:
            """It signs what it asks our master."""
            group = self.group(OURS, "5.3.3", **POLICY_SETTINGS)
            self.follow(group)

        def test_masterOfRocketMQ(self) -> None:
            """Our slave signs what it asks it."""
            group = self.group("5.3.3", OURS, **POLICY_SETTINGS)
            self.follow(group)

    def follow(self, group: Group) -> None:
        """The slave gets log and topics."""
        (slave,) = group.slaves
        self.send(100)
        self.assertTrue(
            until(lambda: TOPIC in self.topics_of(slave)), slave.output()[-3000:]
        )
        self.is_same(slave)


class OneBrokerTests(SynchronousTestCase):
    """A broker with ACL 2.0."""

    def cluster(self, **settings: Any) -> Cluster:
        """One that is up, with a topic."""
        cluster = Cluster(**{**POLICY_SETTINGS, **settings})
        self.addCleanup(cluster.stop)
        cluster.start()
        with self.client(cluster, ADMINISTRATOR) as client:
            client.create_topic(TOPIC, queues=1)
        return cluster

    def client(self, cluster: Cluster, credentials: Credentials) -> Client:
        """A client that signs."""
        return Client(Settings(cluster.names, seconds=30.0, credentials=credentials))

    def test_lostPassword(self) -> None:
        """Another name in the settings makes another administrator at the start, who
        gives the first a new password; users and policies stay."""
        cluster = self.cluster()
        second = {"username": "rescuer", "password": "rescue-secret"}
        cluster.broker.stop()
        cluster.broker.set(initAuthenticationUser=json.dumps(second))
        cluster.broker.start()
        with self.client(cluster, Credentials("rescuer", "rescue-secret")) as client:
            change = json.dumps({"password": "new-secret"}).encode()
            name = {"username": "administrator"}
            client.ask_server(cluster.address, 3002, name, change)
        with self.client(cluster, Credentials("administrator", "new-secret")) as client:
            users = json.loads(client.ask_server(cluster.address, 3005, {}).body)
        names = {user["username"] for user in users}
        self.assertEqual(names, {"administrator", "rescuer", "inner"})
        with (
            self.client(cluster, ADMINISTRATOR) as client,
            self.assertRaisesRegex(NoPermission, "check signature failed"),
        ):
            client.ask_server(cluster.address, 3005, {})

    @needs("cryptography")
    def test_proxyThenTls(self) -> None:
        """A proxy's header, then TLS, then a signed request: policies see the address
        in the header; without one they see the proxy's."""
        for workers in ("0", "2"):
            with self.subTest(workers=workers):
                cluster = self.cluster(
                    workers=workers, rocketbrokerProxyProtocolFrom="127.0.0.1"
                )
                self.make_user(cluster)
                self.ask_behind(cluster)

    def make_user(self, cluster: Cluster) -> None:
        """One who may ask from one network."""
        entry = {
            "resource": f"Topic:{TOPIC}",
            "actions": ["Get"],
            "decision": "Allow",
            "sourceIps": ["10.1.2.0/24"],
        }
        policies = {"policies": [{"policyType": "Custom", "entries": [entry]}]}
        with self.client(cluster, ADMINISTRATOR) as client:
            for code, fields, body in (
                (3001, {"username": "reader"}, {"password": "read-secret"}),
                (3006, {"subject": "User:reader"}, policies),
            ):
                content = json.dumps(body).encode()
                client.ask_server(cluster.address, code, fields, content)

    def ask_behind(self, cluster: Cluster) -> None:
        """Ask with headers and without."""
        inside = b"PROXY TCP4 10.1.2.3 10.0.0.1 5555 10911\r\n"
        outside = b"PROXY TCP4 10.9.9.9 10.0.0.1 5555 10911\r\n"
        for header, secret, code, words in (
            (inside, "read-secret", 0, ""),
            (inside, "a-wrong-one", 16, "check signature failed"),
            (outside, "read-secret", 16, "from 10.9.9.9, no matched policies"),
            (b"", "read-secret", 16, "from 127.0.0.1, no matched policies"),
        ):
            answer = self.asked(cluster, header, Credentials("reader", secret))
            self.assertEqual(answer.code, code, answer.remark)
            self.assertIn(words, answer.remark or "")

    def asked(self, cluster: Cluster, header: bytes, login: Credentials) -> Command:
        """The answer to request 30 over TLS, behind a header."""
        fields = sign({"topic": TOPIC, "queueId": "0"}, b"", login)
        context = client_context()
        address = "127.0.0.1", cluster.broker.port
        with socket.create_connection(address, 30) as sock:
            sock.sendall(header)
            with context.wrap_socket(sock) as secure:
                secure.sendall(encode(Command(30, fields, opaque=1)))
                incoming = Connection()
                while not (found := list(incoming.receive(secure.recv(4096)))):
                    pass
        return found[0]
