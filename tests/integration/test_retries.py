"""Official consumers that fail, against our broker."""

from __future__ import annotations

from typing import Any

from scripts.lab.javaclient import JavaError, body_of
from tests.integration.javacase import JavaCase, fresh, until


class FailingConsumers(JavaCase):
    """Messages come again, until they are dead letters."""

    def dead_letters(self, group: str) -> list[Any]:
        """The dead letters of a group, once there is something."""
        words = {"group": fresh("G"), "topic": f"%DLQ%{group}", "broker": "broker-a"}
        found: list[Any] = []

        def is_there() -> bool:
            try:
                answer = self.java(
                    "pull", offset=0, most=32, tags="*", queue=0, **words
                )
            except JavaError:
                return False
            found.extend(answer.get("messages", []))
            return bool(found)

        until(is_there, 180)
        return found

    def test_retry(self) -> None:
        """What a consumer fails at comes again, as what it was, until it succeeds."""
        topic, producer = self.topic(1), self.producer()
        consumer = self.consumer(topic, tags="red", failUntil=2, level=1)
        self.java.send(
            producer, topic, b"hard", tags="red", keys="k", properties={"a": "b"}
        )
        got = self.java.received(consumer, 3, 180)
        self.assertEqual([m["times"] for m in got], [0, 1, 2])
        for message in got:
            self.assertEqual(message["topic"], topic)
            self.assertEqual(body_of(message), b"hard")
            self.assertEqual((message["tags"], message["keys"]), ("red", "k"))
            self.assertEqual(message["properties"]["a"], "b")
            self.assertEqual(message["born"], got[0]["born"])
            self.assertEqual(message["msgId"], got[0]["msgId"])
        self.assertEqual(
            {m["properties"]["ORIGIN_MESSAGE_ID"] for m in got[1:]},
            {got[1]["properties"]["ORIGIN_MESSAGE_ID"]},
        )

    def test_deadLetter(self) -> None:
        """What fails more often than the consumer allows is a dead letter."""
        topic, producer, group = self.topic(1), self.producer(), fresh("G")
        consumer = self.consumer(topic, group, failUntil=99, level=1, mostTimes=1)
        self.java.send(producer, topic, b"doomed", tags="red")
        (dead,) = self.dead_letters(group)
        self.assertEqual((body_of(dead), dead["tags"]), (b"doomed", "red"))
        self.assertEqual(dead["times"], 2)
        self.assertEqual(dead["properties"]["RETRY_TOPIC"], topic)
        got = self.java.received(consumer, 2, 1)
        self.assertEqual([m["times"] for m in got], [0, 1])

    def test_deadLetterInOrder(self) -> None:
        """A consumer in order tries again by itself, then gives the message up, and
        goes on with the next one."""
        topic, producer, group = self.topic(1), self.producer(), fresh("G")
        consumer = self.consumer(topic, group, orderly=True, failUntil=99, mostTimes=1)
        self.java.send(producer, topic, b"doomed", tags="red")
        (dead,) = self.dead_letters(group)
        self.assertEqual((body_of(dead), dead["tags"]), (b"doomed", "red"))
        # A client of 4.9 sends the count as it is, one of 5.x the next.
        self.assertEqual(dead["times"], 1 if self.version == "4.9.8" else 2)
        self.assertEqual(dead["properties"]["RETRY_TOPIC"], topic)
        got = self.java.received(consumer, 2, 1)
        self.assertEqual([m["times"] for m in got], [0, 1])
        self.java.send(producer, topic, b"next")
        got = self.java.received(consumer, 3, 90)
        self.assertEqual(body_of(got[2]), b"next")


class FailingConsumers49(FailingConsumers):
    """The same with the oldest client."""

    version = "4.9.8"
