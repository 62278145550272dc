"""The offset of a stream."""

from __future__ import annotations

import json

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.arrow.message_identity import Fingerprint
from rocketbroker.errors import ConfigurationError
from rocketbroker.sources.ranges import Queue
from rocketbroker.sources.source import Hole
from rocketbroker.spark.offsets import StreamOffset, read_offset

ZERO, TEN = Queue("T", "b", 0), Queue("T", "b", 10)

OFFSET = StreamOffset(
    {TEN: 7, ZERO: 3},
    {ZERO: Fingerprint(1_700_000_000_000, "0A01,x")},
    {TEN: 2},
    {TEN: Hole(2, 5, "queue 10 begins at 5")},
)


class OffsetTests(SynchronousTestCase):
    """L{StreamOffset}."""

    def test_text(self) -> None:
        """It is sorted, and of numbers and texts in dicts."""
        self.assertEqual(
            json.dumps(OFFSET.to_json()),
            '{"v": 1, "t": {"T": {"b": {"0": 3, "10": 7}}}, '
            '"fp": {"T": {"b": {"0": "1700000000000,0A01,x"}}}, '
            '"from": {"T": {"b": {"10": 2}}}, "holes": {"T": {"b": {"10": '
            '{"from": 2, "until": 5, "reason": "queue 10 begins at 5"}}}}}',
        )

    def test_back(self) -> None:
        """It can be read again."""
        for offset in (OFFSET, StreamOffset({ZERO: 0})):
            text = json.dumps(offset.to_json())
            self.assertEqual(read_offset(json.loads(text)), offset)

    def test_other(self) -> None:
        """What is none is refused in one sentence."""
        for found in ({}, {"v": 1, "t": {"T": 3}, "fp": {}}, {"v": 1, "t": []}):
            error = self.assertRaises(ConfigurationError, read_offset, found)
            self.assertIn("the checkpoint is of another source", str(error))

    def test_later(self) -> None:
        """So is what a later version has written."""
        error = self.assertRaises(ConfigurationError, read_offset, {"v": 2})
        self.assertIn("a later version", str(error))
