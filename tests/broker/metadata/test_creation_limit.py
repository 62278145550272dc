"""Tests of L{rocketbroker.broker.metadata.creation_limit}."""

from __future__ import annotations

from twisted.logger import capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.metadata.creation_limit import CreationLimit


class LimitTests(SynchronousTestCase):
    """How many may be created."""

    def test_logged(self) -> None:
        """The first of several refusals is logged, each is counted; when there was room
        in between, the next one is logged again."""
        limit = CreationLimit("Topics", "maxTopics", 2)
        with capturedLogs() as events:
            found = [limit.allows(count, f"T{count}") for count in (0, 1, 2, 3, 1, 2)]
        self.assertEqual(found, [True, True, False, False, True, False])
        self.assertEqual(limit.refused, 3)
        self.assertEqual(
            [formatEvent(event) for event in events],
            [
                "Topics that clients use are not created any more, T2 the first: there "
                "are 2, and maxTopics is 2"
            ]
            * 2,
        )
