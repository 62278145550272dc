"""Tests of L{rocketbroker.codec.mypyc_types}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.codec import mypyc_types


class WordTests(SynchronousTestCase):
    """What the interpreter gets instead of the compiler's names."""

    def test_words(self) -> None:
        """Words are written as they are read."""
        writer = mypyc_types.BytesWriter()
        mypyc_types.write_i16_be(writer, -2)
        mypyc_types.write_i32_be(writer, -3)
        mypyc_types.write_i64_be(writer, -4)
        writer.append(5)
        writer.write(b"67")
        data = writer.getvalue()
        self.assertEqual(data[:2], b"\xff\xfe")
        self.assertEqual(mypyc_types.read_i32_be(data, 2), -3)
        self.assertEqual(mypyc_types.read_i64_be(data, 6), -4)
        self.assertEqual((data[14:], len(writer)), (b"\x0567", 17))

    def test_truncate(self) -> None:
        """A writer can be emptied and used again."""
        writer = mypyc_types.BytesWriter()
        writer.write(b"1234")
        writer.truncate(0)
        writer.write(b"5")
        self.assertEqual(writer.getvalue(), b"5")
