"""Tests of frames."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.wire.command import BINARY, Command
from rocketbroker.wire.frames import decode, encode


class FrameTests(SynchronousTestCase):
    """The samples of the fact sheet."""

    def test_binary(self) -> None:
        """A binary request is what the reference writes."""
        frame = encode(
            Command(105, {"topic": "T1"}, b"xx", opaque=7, version=0), BINARY
        )
        self.assertEqual(
            frame.hex(),
            "00000028010000220069000000000000070000000000000000"
            "0000000d0005746f7069630000000254317878",
        )
        self.assertEqual(decode(frame[4:]).ext, {"topic": "T1"})
