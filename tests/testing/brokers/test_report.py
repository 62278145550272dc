"""What a failed test shows of its broker."""

from __future__ import annotations

from collections.abc import Sequence

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.received import MessageView
from rocketbroker.errors import TopicNotExist
from rocketbroker.records.record import decode
from rocketbroker.routing.topic_view import MessageQueue
from rocketbroker.testing.brokers.report import report, shown
from tests.client.messages import stored_message, stored_record

QUEUE = MessageQueue("T", "broker-a", 0)


def nothing(topic: str) -> Sequence[MessageView]:
    """A topic without messages."""
    return []


class ReportTests(SynchronousTestCase):
    """L{report}."""

    def test_logAndEachTopicAreShown(self) -> None:
        """With the messages in the order in which they are given."""
        found = [MessageView(stored_message(offset), QUEUE) for offset in (0, 1)]
        self.assertEqual(
            report("one\ntwo\n", ["T"], lambda topic: found),
            "log of the broker:\n  one\n  two\ntopic T: 2 messages\n"
            "  queue 0 offset 0: 'x'\n  queue 0 offset 1: 'x'",
        )

    def test_lastLinesOfALongLogAreShown(self) -> None:
        """And how many came before."""
        lines = report("\n".join(map(str, range(102))), [], nothing).splitlines()
        self.assertEqual(lines[1:3], ["  (2 lines before)", "  2"])
        self.assertEqual(lines[-1], "  101")

    def test_firstMessagesOfAFullTopicAreShown(self) -> None:
        """And how many there are besides."""
        found = [MessageView(stored_message(offset), QUEUE) for offset in range(23)]
        lines = report("", ["T"], lambda topic: found).splitlines()
        self.assertEqual(lines[1], "topic T: 23 messages")
        self.assertEqual(lines[-2:], ["  queue 0 offset 19: 'x'", "  (3 more)"])

    def test_topicThatCannotBeReadIsNamed(self) -> None:
        """The test may have removed it, or killed the broker."""

        def refuse(topic: str) -> Sequence[MessageView]:
            raise TopicNotExist(f"no {topic}")

        lines = report("", ["T", "U"], refuse).splitlines()
        self.assertIn("topic T cannot be read: ", lines[1])
        self.assertIn("no U", lines[2])


class ShownTests(SynchronousTestCase):
    """L{shown}."""

    def test_tagAndKeysAreShown(self) -> None:
        """Behind the body."""
        stored = decode(stored_record(3, {"TAGS": "paid", "KEYS": "k1 k2"}))
        self.assertEqual(
            shown(MessageView(stored, QUEUE)),
            "queue 0 offset 3: 'x' tag paid keys k1 k2",
        )

    def test_longBodyIsCut(self) -> None:
        """Its length is told."""
        line = shown(MessageView(stored_message(0, size=500), QUEUE))
        self.assertIn(f"'{'x' * 99}... (500 bytes)", line)
