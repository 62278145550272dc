"""The frames that are changed at random."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.frames import decode
from rocketbroker.wire.headers.pull import PullMessageRequestHeader
from rocketbroker.wire.headers.send import SendMessageRequestHeaderV2
from scripts.torture.mutated_frames import Frames, Mutant, all_fields, corpus


class FramesTests(SynchronousTestCase):
    """Corpus and changes."""

    def some(self, seed: int = 1) -> list[Mutant]:
        """Some hundred frames."""
        frames = Frames(seed, "T", "G")
        return [frames.next() for _ in range(500)]

    def test_seeds(self) -> None:
        """A seed has the same frames each time, and another one has others."""
        self.assertEqual(self.some(), self.some())
        self.assertNotEqual(self.some(), self.some(2))

    def test_allChanges(self) -> None:
        """All changes come."""
        frames = Frames(1, "T", "G")
        for _ in range(300):
            frames.next()
        self.assertEqual(len(frames.made), 10)

    def test_othersAreReadBehind(self) -> None:
        """Each frame that is not the last of its connection is whole: it has its length
        and a header that can be read."""
        for data, is_last in self.some():
            if not is_last:
                self.assertEqual(int.from_bytes(data[:4], "big"), len(data) - 4)
                decode(data[4:])

    def test_broken(self) -> None:
        """Many of those that are the last are no frames at all."""
        broken = 0
        for data, is_last in self.some():
            if is_last:
                try:
                    decode(data[4:])
                except RemoteProtocolError:
                    broken += 1
        self.assertGreater(broken, 50)

    def test_bursts(self) -> None:
        """A connection has as many frames as are wanted, or fewer, but one at least."""
        frames = Frames(1, "T", "G")
        sizes = {len(frames.burst(5)) for _ in range(200)}
        self.assertEqual(sizes, {1, 2, 3, 4, 5})

    def test_corpus(self) -> None:
        """The corpus has requests of all codes, with the fields that they need."""
        found = {code for code, _, _ in corpus(RequestCode, "T", "G")}
        self.assertEqual(found, set(RequestCode))
        fields = dict(all_fields("T", "G"))
        self.assertEqual(PullMessageRequestHeader.lacking(fields), [])
        self.assertEqual(SendMessageRequestHeaderV2.lacking(fields), [])

    def test_codes(self) -> None:
        """Only those codes come that a server serves, unless the code is changed."""
        frames = Frames(1, "T", "G", [RequestCode.HEART_BEAT])
        found = set()
        for _ in range(100):
            data, is_last = frames.next()
            if not is_last:
                found.add(decode(data[4:]).code)
        self.assertIn(RequestCode.HEART_BEAT, found)
        self.assertLess(len(found), 10)
