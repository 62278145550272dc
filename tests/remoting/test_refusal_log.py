"""Refusals in the log."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.logger import capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.remoting.refusal_log import (
    ADDRESS_SECONDS,
    MAX_ADDRESSES,
    AddressRefusals,
    RefusalLog,
)


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


class AddressRefusalTests(SynchronousTestCase):
    """L{AddressRefusals}."""

    def setUp(self) -> None:
        """A log."""
        self.clock = Clock()
        self.log = AddressRefusals(self.clock.seconds)

    def said(self, *hosts: str) -> list[str]:
        """The lines that refusals of hosts lead to, a second apart."""
        with capturedLogs() as events:
            for host in hosts:
                self.log.say(host, f"{host} is refused.")
                self.clock.advance(1)
        return [formatEvent(event) for event in events]

    def test_oneLineForEachAddress(self) -> None:
        """An address has its line once in an hour, and others have theirs."""
        found = self.said("a", "a", "b", "a", "b")
        self.assertEqual(found, ["a is refused.", "b is refused."])
        self.clock.advance(ADDRESS_SECONDS)
        self.assertEqual(self.said("a", "a"), ["a is refused."])

    def test_oldestAddressIsForgotten(self) -> None:
        """At the limit; the log has one line a second all the same."""
        with capturedLogs() as events:
            for number in range(MAX_ADDRESSES + 1):
                self.log.say(str(number), "refused")
        self.assertEqual(len(events), 1)
        self.clock.advance(1)
        self.assertEqual(self.said("1", str(MAX_ADDRESSES)), [])
        self.assertEqual(len(self.said("0")), 1)
