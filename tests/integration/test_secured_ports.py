"""Ports beside those of clients, with TLS and secrets: replication, administration."""

from __future__ import annotations

import signal
import socket
import ssl
import time
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.ha_secret import proved
from rocketbroker.wire.hastream import report
from scripts.lab.javaclient import JavaClient
from scripts.lab.pair import OURS, until
from scripts.lab.servers import Cluster, ask
from tests.integration.acting import ACTING, NAMES, ActingMasterCase
from tests.integration.javacase import fresh
from tests.missing import needs
from tests.remoting.certificates import client_context

SECRET = b"a secret of both"


@needs("cryptography")
class ReplicationTests(ActingMasterCase):
    """A pair whose replication is encrypted, and needs a secret."""

    makers = OURS, OURS

    def settings(self) -> dict[str, Any]:
        """Of master and slave."""
        self.secret = Path(self.mktemp()).absolute()
        self.secret.write_bytes(SECRET + b"\n")
        return {
            **ACTING,
            "haTls": "true",
            "haTlsRequired": "true",
            "haSecretFile": self.secret,
        }

    def make_names(self) -> None:
        """The name server knows the secret, too."""
        self.group.namesrv.set(**NAMES, haSecretFile=self.secret)

    def heard(self, context: ssl.SSLContext | None) -> bytes:
        """What the port of replication says to a stranger who asks for the log."""
        address = ("127.0.0.1", self.master.ha_port)
        sock = socket.create_connection(address, 30)
        try:
            if context is not None:
                sock = context.wrap_socket(sock)
            with sock:
                sock.sendall(report(0))
                return sock.recv(4096)
        except (ssl.SSLError, ConnectionError):
            return b""
        finally:
            sock.close()

    def code(self, code: int, fields: dict[str, str]) -> int:
        """How the slave answers a request."""
        return self.ask(self.slave.address, code, fields).code

    def test_strangersHearNothing(self) -> None:
        """Neither by TLS nor without; the slave has all."""
        self.send(self.master, b"copied")
        self.group.wait_for(self.slave)
        self.assertEqual(self.heard(None), b"")
        self.assertEqual(self.heard(client_context()), b"")
        self.assertIn("it proves no secret (haSecretFile)", self.master.output())

    def test_requestsNeedProof(self) -> None:
        """A master that is none is not told about, nor are positions set."""
        refused = ResponseCode.NO_PERMISSION
        exchange = RequestCode.EXCHANGE_BROKER_HA_INFO
        fields = {"masterHaAddress": "127.0.0.1:1", "masterAddress": "127.0.0.1:1"}
        reset = RequestCode.RESET_MASTER_FLUSH_OFFSET
        position = {"masterFlushOffset": "1"}
        status = RequestCode.GET_BROKER_HA_STATUS
        for code, given in ((exchange, fields), (reset, position), (status, {})):
            answer = ask(port_of(self.slave.address), Command(code, given))
            self.assertEqual(answer.code, refused, code)
            now_ms = time.time_ns() // 1_000_000
            wrong = proved(b"another", code, given, now_ms)
            answer = ask(port_of(self.slave.address), Command(code, wrong))
            self.assertEqual(answer.code, refused, code)
        right = proved(SECRET, status, {}, now_ms)
        answer = ask(port_of(self.slave.address), Command(status, right))
        self.assertEqual(answer.code, 0)

    def test_masterComesBack(self) -> None:
        """The slave acts for it meanwhile; requests between the servers prove it."""
        self.master.stop(signal.SIGKILL)
        self.wait_for(lambda: self.addresses("broker-a") == {0: self.slave.address})
        self.master.start()
        both = {0: self.master.address, 1: self.slave.address}
        self.wait_for(lambda: self.addresses("broker-a") == both)
        for member in self.group.members:
            self.assertNotIn("is refused", member.output())

    def test_slaveWithAnotherSecret(self) -> None:
        """It gets nothing, and says why."""
        self.slave.stop()
        other = self.secret.with_suffix(".other")
        other.write_text("another")
        self.slave.set(haSecretFile=other, enableSlaveActingMaster="false")
        end = self.group.end(self.master)
        self.slave.start()
        words = "the master has another secret (haSecretFile)"
        self.assertTrue(until(lambda: words in self.slave.output()))
        self.send(self.master, b"not copied")
        self.assertLessEqual(self.group.end(self.slave), end)


def port_of(address: str) -> int:
    """The port of C{host:port}."""
    return int(address.rpartition(":")[2])


class AdminPortTests(SynchronousTestCase):
    """A broker that is administered at a port of its own."""

    def cluster(self, **settings: object) -> tuple[Cluster, int]:
        """One, and its admin port."""
        cluster = Cluster(**settings)
        self.addCleanup(cluster.stop)
        port = cluster.broker.port + 5
        cluster.broker.set(rocketbrokerAdminPort=port)
        return cluster.start(), port

    def test_clientsPortsRefuse(self) -> None:
        """With workers, too; messages come and go there."""
        for workers in (0, 1):
            cluster, admin = self.cluster(workers=workers)
            main = cluster.broker.port
            fields = {"topic": "T", "readQueueNums": "1", "writeQueueNums": "1"}
            fields |= {
                "perm": "6",
                "topicFilterType": "SINGLE_TAG",
                "defaultTopic": "D",
            }
            made = Command(RequestCode.UPDATE_AND_CREATE_TOPIC, fields)
            change = Command(
                RequestCode.UPDATE_BROKER_CONFIG, {}, b"brokerPermission=2\n"
            )
            for port in (main, main - 2):
                for request in (made, change):
                    answer = ask(port, request)
                    self.assertEqual(answer.code, ResponseCode.NO_PERMISSION)
                    self.assertIn("rocketbrokerAdminPort", answer.remark or "")
                    self.assertNotIn(str(admin), answer.remark or "")
            self.assertEqual(ask(admin, made).code, 0)
            look = Command(RequestCode.GET_TOPIC_CONFIG, {"topic": "T"})
            self.assertEqual(ask(main, look).code, 0)
            self.assertEqual(ask(admin, look).code, 0)

    def test_mqadmin(self) -> None:
        """RocketMQ's own tool makes and removes a topic there, with -b."""
        cluster, admin = self.cluster()
        java = JavaClient("5.3.3", cluster.names, cluster.folder)
        self.addCleanup(java.stop)
        topic = fresh("Administered")

        def mqadmin(*words: str) -> str:
            answer = java("mqadmin", words=list(words), timeoutMs=60_000, lines=0)
            return str(answer["printed"] + answer["complaints"])

        for port, is_done in ((cluster.broker.port, False), (admin, True)):
            address = f"127.0.0.1:{port}"
            words = mqadmin("updateTopic", "-b", address, "-t", topic, "-r", "1")
            self.assertEqual("success" in words, is_done, words)
            self.assertEqual("rocketbrokerAdminPort" in words, not is_done, words)
        words = mqadmin(
            "updateBrokerConfig",
            *f"-b 127.0.0.1:{admin} -k".split(),
            "traceOn",
            "-v",
            "false",
        )
        self.assertIn("success", words)
