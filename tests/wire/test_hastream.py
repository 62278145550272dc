"""Tests of L{rocketbroker.wire.hastream}."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.hastream import FrameReader, ReportReader, frames, report
from tests.examples import examples

#: The examples of C{docs/facts/ha.md} 2.
HEARTBEAT = bytes.fromhex("000000000000200000000000")
REPORT_OF_0 = bytes.fromhex("0000000000000000")


class ReportTests(SynchronousTestCase):
    """What a slave sends."""

    def test_vector(self) -> None:
        """A report is the position, in eight bytes."""
        self.assertEqual(report(0), REPORT_OF_0)
        self.assertEqual(report(0x2000), HEARTBEAT[:8])

    def test_last_counts(self) -> None:
        """Of several reports that come at once the last whole one counts."""
        reader = ReportReader()
        self.assertEqual(reader.feed(report(5) + report(7) + report(9)[:3]), 7)
        self.assertEqual(reader.feed(report(9)[3:]), 9)

    def test_byte_by_byte(self) -> None:
        """A report may come in eight pieces."""
        reader = ReportReader()
        found = [reader.feed(bytes([each])) for each in report(0x0102030405)]
        self.assertEqual(found, [None] * 7 + [0x0102030405])

    def test_nothing(self) -> None:
        """No bytes are no report."""
        self.assertIs(ReportReader().feed(b""), None)


class FrameTests(SynchronousTestCase):
    """What a master sends."""

    def test_heartbeat(self) -> None:
        """A frame without data is a heartbeat: a position and no bytes."""
        self.assertEqual(frames(0x2000, b"", 10), HEARTBEAT)
        reader = FrameReader(0x2000)
        self.assertEqual(reader.feed(HEARTBEAT), b"")
        self.assertEqual((reader.heartbeats, reader.position), (1, 0x2000))

    def test_one(self) -> None:
        """A frame is a position, a size, and bytes of the log."""
        data = frames(7, b"abc", 10)
        self.assertEqual(data, (7).to_bytes(8) + (3).to_bytes(4) + b"abc")
        reader = FrameReader(7)
        self.assertEqual(reader.feed(data), b"abc")
        self.assertEqual(reader.position, 10)

    def test_several(self) -> None:
        """More bytes than a frame may have become several, and one run again."""
        data = frames(7, b"abcdefgh", 3)
        self.assertEqual(
            data, frames(7, b"abc", 3) + frames(10, b"def", 3) + frames(13, b"gh", 3)
        )
        self.assertEqual(FrameReader(7).feed(data), b"abcdefgh")

    def test_byte_by_byte(self) -> None:
        """Bytes of the log are handed on as they come, wherever frames are cut."""
        data = frames(7, b"abc", 2) + frames(10, b"", 2) + frames(10, b"d", 2)
        reader = FrameReader(7)
        log = [reader.feed(bytes([each])) for each in data]
        self.assertEqual(b"".join(log), b"abcd")
        self.assertEqual((reader.position, reader.heartbeats), (11, 1))

    @examples()
    @given(st.binary(max_size=40), st.integers(1, 9), st.lists(st.integers(0, 200)))
    def test_any_cut(self, log: bytes, most: int, cuts: list[int]) -> None:
        """However a stream is cut, the same bytes of the log come out."""
        data = frames(5, log, most) + frames(5 + len(log), b"", most) + b"\0\0\0"
        places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
        reader = FrameReader(5)
        found = b""
        for begin, end in pairwise(places):
            position, log_bytes = reader.position, reader.feed(data[begin:end])
            assert position is not None
            self.assertEqual(reader.position, position + len(log_bytes))
            found += log_bytes
        self.assertEqual(found, log)

    def test_any_start(self) -> None:
        """Who has no log yet takes the first position that brings data."""
        reader = FrameReader(None)
        self.assertEqual(reader.feed(HEARTBEAT), b"")
        self.assertIs(reader.position, None)
        self.assertEqual(reader.feed(frames(0x10000, b"ab", 9)), b"ab")
        self.assertEqual(reader.position, 0x10002)

    def test_misplaced(self) -> None:
        """A frame that is not the next is refused, and so is such a heartbeat."""
        for log in (b"ab", b""):
            with self.assertRaises(RemoteProtocolError) as caught:
                FrameReader(7).feed(frames(8, log, 9))
            self.assertEqual(
                str(caught.exception),
                "a frame at position 8 where 7 was to follow",
            )

    def test_nonsense(self) -> None:
        """A negative size or position is refused."""
        for start, size in ((7, -1), (-1, 0)):
            head = start.to_bytes(8, signed=True) + size.to_bytes(4, signed=True)
            with self.assertRaises(RemoteProtocolError):
                FrameReader(None).feed(head)
