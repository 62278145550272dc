"""The proof of a shared secret: both sides of a handshake, and requests."""

from __future__ import annotations

from struct import unpack

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.wire.ha_secret import (
    MAX_APART_MS,
    NUMBER_BYTES,
    PROOF,
    SIGN,
    TIME,
    MasterHandshake,
    NotProvedError,
    SlaveHandshake,
    proved,
    why_not_proved,
)

ONE = bytes(range(NUMBER_BYTES))
OTHER = bytes(range(100, 100 + NUMBER_BYTES))


class HandshakeTests(SynchronousTestCase):
    """Two sides that talk without a network."""

    def sides(
        self, master: bytes = b"s", slave: bytes = b"s"
    ) -> tuple[MasterHandshake, SlaveHandshake]:
        """Two with these secrets."""
        return MasterHandshake(master, ONE), SlaveHandshake(slave, OTHER)

    def test_sameSecretOpens(self) -> None:
        """Both sides, and what the slave says next is left."""
        master, slave = self.sides()
        proof = slave.receive(master.receive(slave.first))
        self.assertFalse(master.is_open or slave.is_open)
        accepted = master.receive(proof + b"report")
        self.assertEqual((master.is_open, master.rest), (True, b"report"))
        self.assertEqual(slave.receive(accepted), b"")
        self.assertTrue(slave.is_open)

    def test_byteByByte(self) -> None:
        """A network may cut anywhere."""
        master, slave = self.sides()
        challenge = b"".join(master.receive(bytes([b])) for b in slave.first)
        proof = b"".join(slave.receive(bytes([b])) for b in challenge)
        accepted = b"".join(master.receive(bytes([b])) for b in proof)
        for byte in accepted:
            slave.receive(bytes([byte]))
        self.assertTrue(master.is_open and slave.is_open)

    def test_masterProvesFirst(self) -> None:
        """A slave proves nothing to a master with another secret."""
        master, slave = self.sides(master=b"other")
        challenge = master.receive(slave.first)
        error = self.assertRaises(NotProvedError, slave.receive, challenge)
        self.assertIn("another secret", str(error))

    def test_wrongProofIsRefused(self) -> None:
        """Of another secret, and one that was overheard."""
        master, slave = self.sides()
        proof = slave.receive(master.receive(slave.first))
        again = MasterHandshake(b"s", OTHER)
        again.receive(slave.first)
        self.assertRaises(NotProvedError, again.receive, proof)
        self.assertFalse(again.is_open)

    def test_proofIsNotHandedBack(self) -> None:
        """Whoever hands back what a side said has proved nothing."""
        master, slave = self.sides()
        challenge = master.receive(slave.first)
        self.assertRaises(NotProvedError, master.receive, challenge[-32:])
        self.assertRaises(NotProvedError, slave.receive, slave.first + bytes(32))

    def test_strangersAreRefusedAtOnce(self) -> None:
        """A report of RocketMQ's, a frame of its master, TLS: by the first bytes."""
        for first in (bytes(8), b"\x16\x03\x01", b"\xff" * 8):
            master, slave = self.sides()
            self.assertRaises(NotProvedError, master.receive, first)
            self.assertRaises(NotProvedError, slave.receive, first)

    def test_firstBytesAreNegativePositions(self) -> None:
        """A master without the secret takes them for reports, which say nothing."""
        for number in (ONE, OTHER, bytes(32), b"\xff" * 32):
            first = SlaveHandshake(b"s", number).first
            self.assertTrue(all(p < 0 for p in unpack(">5q", first)), first)
            self.assertTrue(first.startswith(SIGN))


class RequestTests(SynchronousTestCase):
    """Requests 905 to 908."""

    def test_onlyThatRequestIsProved(self) -> None:
        """Not another code, field, time or secret."""
        fields = proved(b"s", 906, {"masterAddress": "a:1"}, 5_000_000)
        why = why_not_proved
        self.assertEqual(why(b"s", 906, fields, 5_000_000), "")
        self.assertIn("another secret", why(b"t", 906, fields, 5_000_000))
        self.assertIn("another secret", why(b"s", 908, fields, 5_000_000))
        for key in ("masterAddress", TIME, "more"):
            changed = {**fields, key: "1"}
            self.assertIn("another secret", why(b"s", 906, changed, 5_000_000))
        for key in (TIME, PROOF):
            less = {k: v for k, v in fields.items() if k != key}
            self.assertIn("does not prove", why(b"s", 906, less, 5_000_000))
        for strange in ("\u00e9", "\ud800"):
            for key in (PROOF, "masterAddress"):
                changed = {**fields, key: strange}
                self.assertIn("another secret", why(b"s", 906, changed, 5_000_000))

    def test_timeIsBounded(self) -> None:
        """On both sides of now."""
        for apart in (-MAX_APART_MS, MAX_APART_MS):
            fields = proved(b"s", 906, {}, 5_000_000 + apart)
            self.assertEqual(why_not_proved(b"s", 906, fields, 5_000_000), "")
            fields = proved(b"s", 906, {}, 5_000_000 + apart + (1 if apart > 0 else -1))
            self.assertIn("clock", why_not_proved(b"s", 906, fields, 5_000_000))
