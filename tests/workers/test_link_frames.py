"""Frames of a link as bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.workers.link_frames import (
    MAX_PAYLOAD_BYTES,
    Kind,
    LinkDecoder,
    LinkFrame,
    head,
    link_frame,
)
from tests.examples import examples

FRAMES = st.lists(
    st.builds(
        LinkFrame,
        st.sampled_from(Kind),
        st.integers(0, 2**64 - 1),
        st.binary(max_size=60),
    ),
    max_size=8,
)


class LinkFrameTests(SynchronousTestCase):
    """What one end encodes the other decodes, however it is cut."""

    @examples()
    @given(FRAMES, st.lists(st.integers(1, 40), max_size=30))
    def test_pieces(self, frames: list[LinkFrame], sizes: list[int]) -> None:
        """Frames come out whole and in order, whatever pieces their bytes come in."""
        data = b"".join(link_frame(*frame) for frame in frames)
        decoder, found, start = LinkDecoder(), [], 0
        for size in sizes:
            found += decoder.receive(data[start : start + size])
            start += size
        found += decoder.receive(memoryview(data)[start:])
        self.assertEqual(found, frames)

    @examples()
    @given(FRAMES)
    def test_byteByByte(self, frames: list[LinkFrame]) -> None:
        """A frame is there with its last byte, and not before."""
        decoder = LinkDecoder()
        for frame in frames:
            *before, last = (bytes([byte]) for byte in link_frame(*frame))
            for byte in before:
                self.assertEqual(decoder.receive(byte), [])
            self.assertEqual(decoder.receive(last), [frame])

    @examples()
    @given(FRAMES, st.binary(max_size=40))
    def test_bytesLeft(self, frames: list[LinkFrame], payload: bytes) -> None:
        """The begin of the next frame does not hold back those before it."""
        data = b"".join(link_frame(*frame) for frame in frames)
        last = link_frame(Kind.DATA, 7, payload)
        for cut in (1, 11, len(last) - 1):
            decoder = LinkDecoder()
            self.assertEqual(decoder.receive(data + last[:cut]), frames)
            found = decoder.receive(last[cut:])
            self.assertEqual(found, [LinkFrame(Kind.DATA, 7, payload)])

    def test_head(self) -> None:
        """A payload may be sent behind its head without being copied."""
        found = LinkDecoder().receive(head(Kind.DATA, 5, 3) + b"abc")
        self.assertEqual(found, [LinkFrame(Kind.DATA, 5, b"abc")])

    def test_layout(self) -> None:
        """Length, kind and connection id stand where the table says."""
        data = link_frame(Kind.CLOSE, 0x01020304, b"\x02")
        self.assertEqual(data.hex(), "0000000105000000000000000102030402")

    def test_longest(self) -> None:
        """The longest payload may be announced; one byte more is an error."""
        self.assertEqual(LinkDecoder().receive(head(Kind.DATA, 1, 64 << 20)), [])
        with self.assertRaises(RemoteProtocolError):
            LinkDecoder().receive(head(Kind.DATA, 1, MAX_PAYLOAD_BYTES + 1))

    def test_unknownKind(self) -> None:
        """A kind that is not known is an error: the stream cannot be trusted."""
        with self.assertRaises(RemoteProtocolError):
            LinkDecoder().receive(head(99, 1))
