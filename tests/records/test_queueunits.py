"""The units of batch queues."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.queueunits import (
    BATCH_SIZE,
    BatchUnit,
    ExtensionUnit,
    decode_batch,
    decode_extension,
    encode_extension,
)


class BatchTests(SynchronousTestCase):
    """Units of 46 bytes."""

    def test_layout(self) -> None:
        """All fields stand where RocketMQ has them."""
        unit = BatchUnit(4096, 300, -7, 1_700_000_000_000, 12, 32)
        data = unit.encode()
        self.assertEqual(
            data.hex(),
            "0000000000001000"
            "0000012c"
            "fffffffffffffff9"
            "0000018bcfe56800"
            "000000000000000c"
            "0020"
            "ffffffff"
            "00000000",
        )
        self.assertEqual(len(data), BATCH_SIZE)
        self.assertEqual(decode_batch(b"??" + data, 2), unit)
        self.assertEqual(unit.end, 44)

    def test_valid(self) -> None:
        """What was never written, or cannot be, is told from what was."""
        good = BatchUnit(0, 100, 0, 0, 0, 1)
        self.assertTrue(good.is_valid)
        for field, value in (
            ("position", -1),
            ("size", 0),
            ("base", -1),
            ("messages", 0),
        ):
            self.assertFalse(good._replace(**{field: value}).is_valid)
        self.assertFalse(decode_batch(bytes(BATCH_SIZE)).is_valid)


class ExtensionTests(SynchronousTestCase):
    """Units of 20 bytes and more."""

    def test_layout(self) -> None:
        """All fields stand where RocketMQ has them."""
        data = encode_extension(2598919, 1_700_000_000_000, b"\x01\x80")
        self.assertEqual(data.hex(), "0016000000000027a8070000018bcfe5680000020180")
        unit = ExtensionUnit(2598919, 1_700_000_000_000, b"\x01\x80")
        self.assertEqual(decode_extension(data), unit)
        self.assertEqual(unit.size, len(data))

    def test_wrong(self) -> None:
        """What is cut off, or does not add up, is no unit."""
        data = encode_extension(1, 2, b"abc")
        self.assertIsNone(decode_extension(data[:-1]))
        self.assertIsNone(decode_extension(data + b"x"))
        self.assertIsNone(decode_extension(data[:19]))
        self.assertIsNone(decode_extension(bytes(20)))
        self.assertIsNone(decode_extension(data[:18] + b"\0\1" + data[20:]))
