"""Access control at real ports, with our clients, and with mqadmin."""

from __future__ import annotations

import json
import time
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker import threads
from rocketbroker.auth.signatures import Credentials
from rocketbroker.blocking import Client, Message, Producer, Settings
from rocketbroker.errors import RocketbrokerError
from rocketbroker.wire.command import Command
from scripts.lab.servers import Cluster
from tests.integration.scripts import run

ACCOUNTS = """
accounts:
- accessKey: administrator
  secretKey: admin-secret
  admin: true
- accessKey: application
  secretKey: app-secret
  defaultTopicPerm: DENY
  defaultGroupPerm: DENY
  topicPerms: [Orders=PUB|SUB, Reports=SUB]
  groupPerms: [billing=SUB]
"""


def application(
    cluster: Cluster, secret: str = "app-secret", patience: float = 120
) -> threads.Session:
    """A session of the application."""
    return threads.connect(
        cluster.names,
        patience=patience,
        access_key="application",
        secret_key=secret,
    )


class PlainTests(SynchronousTestCase):
    """ACL 1.0."""

    def cluster(self, **settings: object) -> Cluster:
        home = Path(self.mktemp()).absolute()
        (home / "conf").mkdir(parents=True)
        self.accounts = home / "conf" / "plain_acl.yml"
        self.accounts.write_text(ACCOUNTS)
        cluster = Cluster(aclEnable="true", rocketmqHome=home, **settings)
        self.addCleanup(cluster.stop)
        return cluster.start()

    def administrator(self, cluster: Cluster) -> Client:
        credentials = Credentials("administrator", "admin-secret")
        client = Client(Settings(cluster.names, credentials=credentials))
        self.addCleanup(client.close)
        return client

    def test_clients(self) -> None:
        """An application does what its rules say, with workers and without; nobody
        else does anything; and what becomes of the file counts without a start."""
        for workers in ("0", "2"):
            with self.subTest(workers=workers):
                cluster = self.cluster(workers=workers)
                producer = Producer(self.administrator(cluster))
                for topic in ("Orders", "Reports", "Secrets"):
                    producer.send(Message(topic, b"first"))
                self.use(cluster)
                self.refuse(cluster)
                self.accounts.write_text(ACCOUNTS.replace("app-secret", "new-secret"))
                self.wait_for_change(cluster)

    def use(self, cluster: Cluster) -> None:
        """What is allowed."""
        with application(cluster) as session:
            for number in range(20):
                session.send("Orders", b"%d" % number)
            for topic, count in (("Orders", 21), ("Reports", 1)):
                with session.consumer(
                    topic, group="billing", start="earliest"
                ) as messages:
                    for _ in range(count):
                        next(messages).ack()

    def refuse(self, cluster: Cluster) -> None:
        """What is not."""
        with application(cluster, patience=30) as session:
            for topic in ("Reports", "Secrets"):
                with self.assertRaisesRegex(RocketbrokerError, "permission for topic"):
                    session.send(topic, "x")
        for session, words in (
            (threads.connect(cluster.names, patience=30), "No accessKey is configured"),
            (application(cluster, "guess", 30), "Check signature failed"),
        ):
            with session, self.assertRaisesRegex(RocketbrokerError, words):
                session.send("Orders", "x")

    def wait_for_change(self, cluster: Cluster) -> None:
        """The old secret does not count any more, and the new one does."""
        with application(cluster, patience=30) as session:
            while True:
                try:
                    session.send("Orders", "x")
                except RocketbrokerError:
                    break
                time.sleep(0.2)
        with application(cluster, "new-secret") as session:
            session.send("Orders", "x")


class PolicyTests(SynchronousTestCase):
    """ACL 2.0."""

    def test_clients(self) -> None:
        """Users and policies are made by requests; a slave signs what it asks its
        master; all of it is there after a start."""
        inner = json.dumps({"accessKey": "inner", "secretKey": "inner-secret"})
        cluster = Cluster(
            authenticationEnabled="true",
            authorizationEnabled="true",
            initAuthenticationUser='{"username":"root","password":"root-secret"}',
            innerClientAuthenticationCredentials=inner,
        )
        self.addCleanup(cluster.stop)
        cluster.start()
        root = Credentials("root", "root-secret")
        client = Client(Settings(cluster.names, credentials=root))
        self.addCleanup(client.close)
        producer = Producer(client)
        for topic in ("Orders", "Secrets"):
            producer.send(Message(topic, b"first"))

        def ask(code: int, body: object, **fields: str) -> None:
            content = json.dumps(body).encode()
            answer = client.connections.to(cluster.address).invoke(
                Command(code, fields, content), 30.0
            )
            self.assertEqual((answer.code, answer.remark), (0, None))

        ask(3001, {"password": "app-secret"}, username="application")
        entries = [
            {"resource": text, "actions": actions, "decision": "Allow"}
            for text, actions in (
                ("Topic:Orders", ["Pub", "Sub"]),
                ("Group:billing", ["Sub"]),
            )
        ]
        policies = {"policies": [{"policyType": "Custom", "entries": entries}]}
        ask(3006, policies, subject="User:application")
        for _ in range(2):
            with application(cluster) as session:
                session.send("Orders", "x")
                with self.assertRaisesRegex(RocketbrokerError, "no matched policies"):
                    session.send("Secrets", "x")
                with session.consumer(
                    "Orders", group="billing", start="earliest"
                ) as messages:
                    next(messages).ack()
            for other, words in (
                (
                    threads.connect(cluster.names, patience=30),
                    "username cannot be null",
                ),
                (application(cluster, "guess", 30), "check signature failed"),
            ):
                with other, self.assertRaisesRegex(RocketbrokerError, words):
                    other.send("Orders", "x")
            cluster.broker.stop()
            cluster.broker.start()
        path = cluster.store / "config" / "access.json"
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        self.assertNotIn("secret", cluster.logs())


class CostTests(SynchronousTestCase):
    """C{scripts/bench/security_cost.py}."""

    def test_rows(self) -> None:
        """It loads all brokers of ours, and prints a line for each."""
        output = run(
            "bench/security_cost", "--inside", "--messages", "640", "--rounds", "1"
        )
        self.assertEqual(output.stdout.count("ours, TLS"), 4, output.stderr)
