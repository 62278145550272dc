"""Frames of HTTP/2 that pass by."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.proxy.frames import GOAWAY, Frames


def frame(size: int) -> bytes:
    """One with so much in it."""
    return size.to_bytes(3, "big") + bytes(6) + b"x" * size


class FramesTests(SynchronousTestCase):
    """L{Frames}."""

    def test_endsOfFramesAreFound(self) -> None:
        """However they come: together, byte by byte, in pieces of each size."""
        sizes = (0, 1, 300, 8, 70_000)
        whole = b"".join(map(frame, sizes))
        ends = {0}
        for size in sizes:
            ends.add(max(ends) + 9 + size)
        for step in (1, 2, 5, 9, 10, 309, 4096, len(whole)):
            frames, at = Frames(), 0
            self.assertFalse(frames.is_between)
            while at < len(whole):
                frames.came(whole[at : at + step])
                at = min(at + step, len(whole))
                self.assertEqual(frames.is_between, at in ends, (step, at))

    def test_farewellIsAFrame(self) -> None:
        """By RFC 9113, 6.8: GOAWAY, up to the last of all streams, without an error."""
        frames = Frames()
        frames.came(GOAWAY)
        self.assertTrue(frames.is_between)
        self.assertEqual(GOAWAY[3], 7)
        self.assertEqual(GOAWAY[9:], bytes.fromhex("7fffffff00000000"))
