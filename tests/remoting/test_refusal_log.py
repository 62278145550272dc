"""Refusals in the log."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.logger import capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.remoting.refusal_log import RefusalLog


class RefusalLogTests(SynchronousTestCase):
    """L{RefusalLog}."""

    def setUp(self) -> None:
        """A log."""
        self.clock = Clock()
        self.log = RefusalLog(self.clock.seconds)

    def said(self, *sentences: str) -> list[str]:
        """The lines that sentences lead to."""
        with capturedLogs() as events:
            for sentence in sentences:
                self.log.say(sentence)
        return [formatEvent(event) for event in events]

    def test_oneLineASecond(self) -> None:
        """A second has one line, and the next line counts what was left out."""
        self.assertEqual(self.said("No 1.", "No 2.", "No 3."), ["No 1."])
        self.clock.advance(0.9)
        self.assertEqual(self.said("No 4."), [])
        self.clock.advance(0.1)
        self.assertEqual(self.said("No 5."), ["No 5. (3 more before it)"])
        self.clock.advance(5)
        self.assertEqual(self.said("No 6."), ["No 6."])
