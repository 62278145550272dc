"""Corrupt records, counted and named."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.store.corruption_log import MAX_MESSAGES, MAX_NOTED, CorruptionLog


class CorruptionLogTests(SynchronousTestCase):
    """The count, and what is reported."""

    def test_once(self) -> None:
        """A place is counted and told of once."""
        corruption_log = CorruptionLog()
        for _ in range(2):
            corruption_log.note(7, "It is at 7.")
        corruption_log.note(8, "It is at 8.")
        self.assertEqual(corruption_log.records, 2)
        self.assertEqual(corruption_log.take_messages(), ["It is at 7.", "It is at 8."])
        self.assertEqual(corruption_log.take_messages(), [])

    def test_most(self) -> None:
        """Beyond a number of places the oldest sentences are dropped, and those known
        are forgotten; the count goes on."""
        corruption_log = CorruptionLog()
        for position in range(MAX_NOTED + 1):
            corruption_log.note(position, f"It is at {position}.")
        self.assertEqual(corruption_log.records, MAX_NOTED + 1)
        messages = corruption_log.take_messages()
        self.assertEqual(len(messages), MAX_MESSAGES)
        self.assertEqual(messages[-1], f"It is at {MAX_NOTED}.")
