"""TLS and a secret before replication, between a master and a slave of ours."""

from __future__ import annotations

import attrs
from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import ClientFactory
from twisted.logger import capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.tls import PortContexts
from rocketbroker.config.store import StoreOptions
from rocketbroker.replication.master import ReplicaServer
from rocketbroker.replication.security import (
    NO_SECURITY,
    PROOF_SECONDS,
    HaSecurity,
)
from rocketbroker.replication.slave import RETRY_SECONDS, MasterLink
from rocketbroker.testing.network import MemoryNetwork
from rocketbroker.testing.replicas import ScriptedMembership
from rocketbroker.testing.threads import at_once
from rocketbroker.wire.ha_secret import NUMBER_BYTES
from rocketbroker.wire.hastream import report
from tests.missing import needs
from tests.remoting.certificates import MadeContexts, client_context, server_context
from tests.replication.logs import SEGMENT, MemoryLog, Peer

PORT = 10912


class Dialling(ClientFactory):
    """Connects somebody."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    def buildProtocol(self, addr: IAddress | None) -> Peer:
        return self._peer


@attrs.define
class Given:
    """A secret."""

    value: bytes


def with_secret(value: bytes, number: int = 1) -> HaSecurity:
    """That of a side."""
    return HaSecurity(
        secret=Given(value), number=lambda: bytes([number] * NUMBER_BYTES)
    )


class SecurityTests(SynchronousTestCase):
    """A pair, with and without."""

    def setUp(self) -> None:
        """A log for each."""
        self.network = MemoryNetwork()
        self.log = MemoryLog(b"first", b"second")
        self.copy = MemoryLog()
        self.membership = ScriptedMembership("127.0.0.1")

    def serve(self, security: HaSecurity) -> None:
        """Start a master."""
        self.server = ReplicaServer(
            self.network,
            self.log,
            StoreOptions(mapped_file_size_commit_log=SEGMENT),
            at_once,
            lambda: 0,
            self.membership,
            security=security,
        )
        self.server.listen(PORT)

    def follow(self, security: HaSecurity) -> None:
        """Start a slave."""
        self.link = MasterLink(
            self.network,
            self.copy,
            StoreOptions(mapped_file_size_commit_log=SEGMENT),
            lambda: 0,
            security,
        )
        self.link.follow(f"127.0.0.1:{PORT}")
        self.link.start()
        self.network.settle()

    def stranger(self) -> Peer:
        """Somebody who connects."""
        peer = Peer()
        self.network.connectTCP("localhost", PORT, Dialling(peer))
        self.network.settle()
        return peer

    def say(self, peer: Peer, data: bytes) -> None:
        """Send as that one."""
        assert peer.transport is not None
        peer.transport.write(data)
        self.network.settle()

    def check_follows(self) -> None:
        """The slave has all, and goes on."""
        self.assertEqual(self.copy.data, self.log.data)
        self.log.put(b"third")
        self.server.appended()
        self.network.settle()
        self.assertEqual(self.copy.data, self.log.data)
        self.assertEqual(self.server.acked(2), self.log.published_position)
        self.assertEqual(self.link.problem, "")

    def check_refused(self, words: str) -> None:
        """The slave has nothing, says why, and tries again."""
        self.assertEqual(self.copy.data, b"")
        self.assertEqual(self.server.replicas, [])
        self.assertIn(words, self.link.problem)
        self.assertEqual(self.link.state, "READY")

    def test_secretOnBothSides(self) -> None:
        """The slave follows, whatever the network cuts."""
        self.network.max_bytes = 1
        self.serve(with_secret(b"s"))
        self.follow(with_secret(b"s", 2))
        self.check_follows()

    def test_otherSecret(self) -> None:
        """It follows as soon as it has the right one; the file may be renewed."""
        secret = with_secret(b"other", 2)
        self.serve(with_secret(b"s"))
        self.follow(secret)
        self.check_refused("the master has another secret (haSecretFile)")
        assert isinstance(secret.secret, Given)
        secret.secret.value = b"s"
        self.network.advance(RETRY_SECONDS)
        self.network.settle()
        self.check_follows()

    def test_slaveWithoutSecret(self) -> None:
        """As one of RocketMQ: it is sent nothing, and the log says so once."""
        self.serve(with_secret(b"s"))
        with capturedLogs() as events:
            peers = []
            for _ in range(3):
                peer = self.stranger()
                self.say(peer, report(0))
                peers.append(peer)
                self.network.advance(2)
            self.network.settle()
        self.assertEqual([p.heard for p in peers], [b""] * 3)
        self.assertTrue(all(p.is_gone for p in peers))
        lines = [formatEvent(event) for event in events]
        lines = [line for line in lines if "proves no secret" in line]
        self.assertEqual(len(lines), 1)
        self.assertIn("127.0.0.1 is sent nothing at the port of replication", lines[0])

    def test_masterWithoutSecret(self) -> None:
        """A slave with a secret follows no master that does not prove it, and says so
        when its patience is over."""
        self.serve(NO_SECURITY)
        self.follow(with_secret(b"s"))
        self.assertEqual(self.server.acked(2), -1)
        self.network.advance(PROOF_SECONDS)
        self.network.settle()
        self.check_refused("it does not answer")
        self.assertEqual(self.server.connected, [])

    def test_strangerIsStillOne(self) -> None:
        """The secret does not make a slave of a host that is none."""
        self.membership = ScriptedMembership()
        self.serve(with_secret(b"s"))
        self.follow(with_secret(b"s", 2))
        self.assertEqual(self.server.replicas, [])
        self.assertEqual(len(self.server.strangers), 1)

    def test_stopBeforeProof(self) -> None:
        """Both sides stop in the middle of it."""
        self.serve(with_secret(b"s"))
        peer = self.stranger()
        self.follow(with_secret(b"s"))
        self.link.stop()
        done = self.server.stop()
        self.network.settle()
        self.successResultOf(done)
        self.assertTrue(peer.is_gone)
        self.assertEqual(self.link.state, "SHUTDOWN")


@needs("cryptography")
class TlsTests(SecurityTests):
    """The same by TLS, and what TLS does alone."""

    def tls(self, is_enforcing: bool, security: HaSecurity) -> HaSecurity:
        """That side's, with TLS."""
        port = PortContexts(MadeContexts(server_context()), is_enforcing)
        return attrs.evolve(security, port_tls=port, client_tls=client_context)

    def serve(self, security: HaSecurity) -> None:
        """Start a master that takes both."""
        super().serve(self.tls(False, security))

    def follow(self, security: HaSecurity) -> None:
        """Start a slave that speaks TLS."""
        super().follow(self.tls(False, security))

    def test_tlsAlone(self) -> None:
        """A slave follows by TLS, and the connection counts as engaged."""
        self.serve(NO_SECURITY)
        self.follow(NO_SECURITY)
        self.check_follows()
        self.network.advance(19)
        self.network.settle()
        self.network.advance(19)
        self.network.settle()
        self.check_follows()

    def test_plainBesideTls(self) -> None:
        """Slaves of RocketMQ are served as long as nobody enforces TLS."""
        self.serve(NO_SECURITY)
        peer = self.stranger()
        self.say(peer, report(0))
        self.assertIn(self.log.data, peer.heard)

    def test_tlsEnforced(self) -> None:
        """Who does not speak it hears nothing."""
        SecurityTests.serve(self, self.tls(True, NO_SECURITY))
        with capturedLogs() as events:
            for _ in range(3):
                peer = self.stranger()
                self.say(peer, report(0))
                self.assertEqual((peer.heard, peer.is_gone), (b"", True))
        lines = [formatEvent(event) for event in events]
        words = "Closed a connection of 127.0.0.1: no TLS, which is enforced here."
        self.assertEqual(lines, [words])  # at most one in a second
        self.follow(NO_SECURITY)
        self.check_follows()

    def test_noCertificate(self) -> None:
        """A port that has none closes, and says so once in a second."""
        none = PortContexts(MadeContexts(None), False)
        SecurityTests.serve(self, HaSecurity(port_tls=none))
        with capturedLogs() as events:
            for _ in range(3):
                peer = self.stranger()
                self.say(peer, b"\x16\x03\x01")
                self.assertTrue(peer.is_gone)
        lines = [formatEvent(event) for event in events]
        self.assertEqual(lines, ["No client can speak TLS: there is none"])

    def test_masterWithoutTls(self) -> None:
        """The slave says that it cannot connect."""
        SecurityTests.serve(self, NO_SECURITY)
        self.follow(NO_SECURITY)
        self.network.advance(10)
        self.network.settle()
        self.check_refused("TLS: wrong version number")
