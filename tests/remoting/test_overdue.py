"""Tests of L{rocketbroker.remoting.overdue}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.remoting.overdue import TIMEOUT, busy_remark


class RemarkTests(SynchronousTestCase):
    """L{busy_remark}."""

    def test_words(self) -> None:
        """RocketMQ's words come first, because tools look for them."""
        self.assertEqual(
            busy_remark(TIMEOUT, 312, 4, "requests"),
            "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, "
            "period in queue: 312ms, size of queue: 4, slow stage: requests",
        )
