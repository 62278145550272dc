"""Whether a stored record is whole."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.checking import BLANK, ERROR, GOOD, HALF, check
from tests.examples import examples
from tests.records.test_record import SHAPES, VECTOR, example


class CheckTests(SynchronousTestCase):
    """What recovery is told."""

    def test_good(self) -> None:
        """Whole records of all shapes, anywhere, with anything behind them."""
        for shape, data in SHAPES.items():
            self.assertEqual(check(data), (GOOD, len(data)), shape)
            self.assertEqual(check(b"xy" + data + data, 2), (GOOD, len(data)), shape)

    def test_cut(self) -> None:
        """A record cut at any byte is none."""
        for shape, data in SHAPES.items():
            for size in range(len(data)):
                self.assertEqual(check(data[:size]), (ERROR, 0), f"{shape} {size}")

    def test_blank(self) -> None:
        """The filler at the end of a segment."""
        filler = bytes.fromhex("00000064cbd43194")
        self.assertEqual(check(filler + bytes(92)), (BLANK, 0))
        self.assertEqual(check(filler + bytes(91)), (ERROR, 0))

    def test_unknownMagic(self) -> None:
        """Zeros, and anything else that does not begin like a record, are none."""
        self.assertEqual(check(bytes(200)), (ERROR, 0))
        self.assertEqual(check(VECTOR[:4] + b"\0\0\0\1" + VECTOR[8:]), (ERROR, 0))

    def test_zeroSize(self) -> None:
        """A size below the least is none, even with a good magic."""
        for size in (-1, 0, 4, 90):
            data = struct.pack(">i", size) + VECTOR[4:]
            self.assertEqual(check(data), (ERROR, 0))

    def test_half(self) -> None:
        """Parts that do not fill the record make it half a message, of its size."""
        data = struct.pack(">i", 104) + VECTOR[4:] + bytes(3)
        self.assertEqual(check(data), (HALF, 104))

    def test_bodyCrc(self) -> None:
        """A changed body is found, unless it is not to be looked at."""
        data = VECTOR.replace(b"hi", b"ho")
        self.assertEqual(check(data), (ERROR, 0))
        self.assertEqual(check(data, verify_crc=False), (GOOD, 101))

    def test_emptyBody(self) -> None:
        """The CRC of an empty body is not compared."""
        data = bytearray(example(body=b""))
        data[8:12] = b"\1\2\3\4"
        self.assertEqual(check(bytes(data)), (GOOD, len(data)))

    def test_recordCrc(self) -> None:
        """The CRC of the record, if it is asked for, covers every byte."""
        data = SHAPES["crc"]
        good = check(data, require_record_crc=True)
        self.assertEqual(good, (GOOD, len(data)))
        for at in range(len(data)):
            damaged = bytearray(data)
            damaged[at] ^= 1
            found = check(bytes(damaged), require_record_crc=True)
            self.assertNotEqual(found.result, GOOD, str(at))
        self.assertEqual(check(VECTOR, require_record_crc=True), (ERROR, 0))

    def test_numbers(self) -> None:
        """Properties that dispatch takes for numbers have to be some."""
        for topic, entry, result in (
            (b"T", b"DELAY\1x\2", GOOD),
            (b"SCHEDULE_TOPIC_XXXX", b"DELAY\0013\2", GOOD),
            (b"SCHEDULE_TOPIC_XXXX", b"DELAY\1x\2", ERROR),
            (b"SCHEDULE_TOPIC_XXXX", b"DELAY\0012147483648\2", ERROR),
            (b"T", b"INNER_NUM\1-3\2", GOOD),
            (b"T", b"INNER_NUM\00132768\2", ERROR),
            (b"T", b"INNER_BASE\1\2", GOOD),
            (b"T", b"INNER_BASE\1-\2", ERROR),
            (b"T", b"INNER_BASE\1" + b"9" * 6000 + b"\2", ERROR),
        ):
            data = example(topic=topic, properties=entry)
            self.assertEqual(check(data).result, result, entry)

    def test_views(self) -> None:
        """A view is as good as bytes."""
        self.assertEqual(check(memoryview(VECTOR)), (GOOD, 101))

    @examples()
    @given(
        st.sampled_from(sorted(SHAPES)),
        st.integers(min_value=0),
        st.binary(min_size=1, max_size=8),
        st.booleans(),
    )
    def test_mutated(self, shape: str, at: int, patch: bytes, record_crc: bool) -> None:
        """Whatever stands there, there is an answer."""
        data = bytearray(SHAPES[shape] * 2)
        start = at % len(data)
        data[start : start + len(patch)] = patch
        found = check(bytes(data), 0, True, record_crc)
        self.assertIn(found.result, (GOOD, BLANK, HALF, ERROR))
        self.assertLessEqual(found.size, len(data))
