"""Whether RocketMQ's recovery accepts the properties of a record."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.checking import numbers_are_numbers


class NumberTests(SynchronousTestCase):
    """The properties that dispatch reads as numbers."""

    def test_numbers(self) -> None:
        """Each has to be one, of as many bits as Java has for it."""
        for topic, entry, result in (
            (b"T", b"DELAY\1x\2", True),
            (b"SCHEDULE_TOPIC_XXXX", b"DELAY\0013\2", True),
            (b"SCHEDULE_TOPIC_XXXX", b"DELAY\1x\2", False),
            (b"SCHEDULE_TOPIC_XXXX", b"DELAY\0012147483648\2", False),
            (b"T", b"INNER_NUM\1-3\2", True),
            (b"T", b"INNER_NUM\00132768\2", False),
            (b"T", b"INNER_BASE\1\2", True),
            (b"T", b"INNER_BASE\1-\2", False),
            (b"T", b"INNER_BASE\1" + b"9" * 6000 + b"\2", False),
        ):
            self.assertEqual(numbers_are_numbers(topic, entry), result, entry)
