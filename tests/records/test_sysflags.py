"""The bits of the system flag."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records import compression, sysflags


class SysFlagTests(SynchronousTestCase):
    """What the bits mean."""

    def test_transaction(self) -> None:
        """The type is two bits; setting it leaves the others."""
        flag = sysflags.with_transaction_type(0x101 | 0xC, sysflags.TRANSACTION_COMMIT)
        self.assertEqual(flag, 0x109)

    def test_takesQueueOffset(self) -> None:
        """Prepared and rolled back records do not advance a queue."""
        self.assertEqual(
            [sysflags.takes_queue_offset(kind) for kind in (0, 4, 8, 12)],
            [True, False, True, False],
        )

    def test_compression(self) -> None:
        """The kind stands in three bits beside the bit that says compressed."""
        for kind, flag in (
            (compression.LZ4, 0x101),
            (compression.ZSTD, 0x201),
            (compression.ZLIB, 0x301),
        ):
            self.assertEqual(sysflags.with_compression(0, kind), flag)
            self.assertEqual(sysflags.compression_kind(flag), kind)
        self.assertEqual(sysflags.with_compression(0x301, compression.LZ4), 0x101)

    def test_hosts(self) -> None:
        """The host bits follow the lengths of the hosts, whatever stood there."""
        v4, v6 = bytes(8), bytes(20)
        self.assertEqual(sysflags.with_hosts(0x31, v4, v4), 0x1)
        self.assertEqual(sysflags.with_hosts(0, v6, v4), 0x10)
        self.assertEqual(sysflags.with_hosts(0, v4, v6), 0x20)
