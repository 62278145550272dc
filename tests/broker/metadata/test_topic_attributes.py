"""Attributes of topics."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.metadata.topic_attributes import (
    altered,
    check_message_type,
    parsed,
)
from rocketbroker.errors import InvalidParameter, SystemFailure


class ParsedTests(SynchronousTestCase):
    """What a request says."""

    def test_changes(self) -> None:
        """Additions have a value, deletions none."""
        self.assertEqual(
            parsed("+message.type=FIFO, -reserve.time"),
            {"+message.type": "FIFO", "-reserve.time": ""},
        )

    def test_nothing(self) -> None:
        """No attributes, none at all, and empty parts say nothing."""
        for text in (None, "", " , ,"):
            self.assertEqual(parsed(text), {})

    def test_wrong(self) -> None:
        """What is neither, or names a key twice, is refused."""
        for text, words in (
            ("message.type=FIFO", "add/alter attribute format is wrong"),
            ("+message.type=", "add/alter attribute format is wrong"),
            ("+=FIFO", "add/alter attribute format is wrong"),
            ("message.type", "delete attribute format is wrong"),
            ("+message.type", "delete attribute format is wrong"),
            ("-", "delete attribute format is wrong"),
            ("+a=1,-a", "key duplication: a"),
        ):
            with self.assertRaises(SystemFailure) as caught:
                parsed(text)
            self.assertEqual(caught.exception.remark, words)


class AlteredTests(SynchronousTestCase):
    """What becomes of a topic's attributes."""

    def refused(
        self, create: bool, current: dict[str, str], change: dict[str, str]
    ) -> str:
        """Why a change is refused."""
        with self.assertRaises(SystemFailure) as caught:
            altered(create, current, change)
        return str(caught.exception.remark)

    def test_create(self) -> None:
        """A new topic has what is added."""
        changes = {"+message.type": "DELAY", "+queue.type": "BatchCQ"}
        self.assertEqual(
            altered(True, {}, changes),
            {"message.type": "DELAY", "queue.type": "BatchCQ"},
        )
        self.assertIn("only add", self.refused(True, {}, {"-message.type": ""}))

    def test_change(self) -> None:
        """A topic keeps what is not named; the current values stay untouched."""
        current = {"message.type": "FIFO", "reserve.time": "3"}
        changes = {"+reserve.time": "-1", "-message.type": ""}
        self.assertEqual(altered(False, current, changes), {"reserve.time": "-1"})
        self.assertEqual(current["reserve.time"], "3")

    def test_keys(self) -> None:
        """Unknown keys, and those that stay as they were made, are refused."""
        current = {"cleanup.policy": "DELETE"}
        self.assertIn("unsupported key", self.refused(True, {}, {"+a": "1"}))
        self.assertIn("unsupported key", self.refused(False, {}, {"-a": ""}))
        for change in ({"+cleanup.policy": "COMPACTION"}, {"-cleanup.policy": ""}):
            self.assertIn("unchangeable", self.refused(False, current, change))
        self.assertIn("nonexistent", self.refused(False, {}, {"-message.type": ""}))

    def test_values(self) -> None:
        """A value is one of those that there are, or a number from -1 on."""
        for key, value in (
            ("message.type", "fifo"),
            ("queue.type", "X"),
            ("reserve.time", "-2"),
            ("reserve.time", "x"),
            ("reserve.time", "9" * 30),
        ):
            self.assertIn("value is not", self.refused(True, {}, {f"+{key}": value}))

    def test_compaction(self) -> None:
        """No topic is made that would have to be compacted."""
        reason = self.refused(True, {}, {"+cleanup.policy": "COMPACTION"})
        self.assertIn("no compaction topics", reason)
        self.assertEqual(
            altered(True, {}, {"+cleanup.policy": "DELETE"}),
            {"cleanup.policy": "DELETE"},
        )


class MixedTests(SynchronousTestCase):
    """Topics of mixed messages."""

    def test_mixed(self) -> None:
        """They are refused unless they are enabled."""
        changes = {"+message.type": "MIXED"}
        check_message_type(changes, mixed=True)
        check_message_type({"+message.type": "FIFO"}, mixed=False)
        with self.assertRaises(InvalidParameter):
            check_message_type(changes, mixed=False)
