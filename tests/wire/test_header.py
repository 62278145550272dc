"""Tests of how extension fields are read and written."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.wire.pull_headers import PullMessageResponseHeader


class HeaderTests(SynchronousTestCase):
    """The rules that all headers share."""

    def test_nullIsLeftOut(self) -> None:
        """A field that is null is not sent."""
        header = PullMessageResponseHeader(
            suggest_which_broker_id=0, next_begin_offset=1, min_offset=2, max_offset=3
        )
        self.assertEqual(
            header.to_ext(),
            {
                "suggestWhichBrokerId": "0",
                "nextBeginOffset": "1",
                "minOffset": "2",
                "maxOffset": "3",
            },
        )
