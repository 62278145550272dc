"""What operators and pollers ask with the official libraries, of our broker."""

from __future__ import annotations

import time
from typing import Any

from scripts.lab.javaclient import JavaError, body_of
from tests.integration.javacase import JavaCase, fresh, until


class Operators(JavaCase):
    """Tables of topics, groups and the broker; offsets; messages by key."""

    def ask(self, question: str, **words: object) -> Any:
        """What an operator is answered."""
        words = {"broker": "broker-a", "address": self.cluster.address, **words}
        return self.java("operator", question=question, **words)

    def soon(self, question: str, **words: object) -> Any:
        """What is answered once it is not an error and not empty."""
        found: list[Any] = []

        def there() -> bool:
            try:
                found.append(self.ask(question, **words))
            except JavaError:
                return False
            return bool(found[-1])

        self.assertTrue(until(there), question)
        return found[-1]

    def test_offsets(self) -> None:
        """By time and committed; a reset reaches who is consuming, each time."""
        topic, producer, group = self.topic(1), self.producer(), fresh("G")
        words = {"topic": topic, "queue": 0, "group": group}
        for number in range(10):
            self.java.send(producer, topic, b"first %d" % number)
        time.sleep(1.1)
        middle = int(time.time() * 1000)
        time.sleep(1.1)
        for number in range(10):
            self.java.send(producer, topic, b"second %d" % number)
        consumer = self.consumer(topic, group)
        self.assertEqual(len(self.java.received(consumer, 20)), 20)
        self.assertEqual(self.ask("searchOffset", time=middle, **words), 10)
        self.assertEqual(self.ask("maxOffset", **words), 20)

        def committed() -> bool:
            (row,) = self.soon("consumeStats", **words).values()
            return bool(row["consumerOffset"] == 20)

        self.assertTrue(until(committed))
        (offset,) = self.ask("reset", time=middle, **words).values()
        self.assertEqual(offset, 10)
        got = self.java.received(consumer, 30)
        again = sorted(body_of(message) for message in got[20:])
        self.assertEqual(again, [b"second %d" % number for number in range(10)])

    def test_tables(self) -> None:
        """Who is there, what they read, how they are; and what the broker is."""
        topic, producer, group = self.topic(2), self.producer(), fresh("G")
        sent = self.java.send(producer, topic, b"x", keys="order-77 alias-77")
        consumer = self.consumer(topic, group)
        self.java.received(consumer, 1)
        self.assertEqual(len(self.ask("topicStats", topic=topic)), 2)
        self.assertEqual(self.soon("groups", topic=topic), [group])
        found = self.ask("connections", group=group)
        (member,) = found["connectionSet"]
        self.assertEqual(found["messageModel"], "CLUSTERING")
        self.assertIn(topic, found["subscriptionTable"])
        words = {"group": group, "client": member["clientId"], "topic": topic}
        queues = self.soon("runningInfo", **words)["mqTable"]
        self.assertEqual(sum(topic in queue for queue in queues), 2)
        self.soon("view", topic=topic, message=sent["msgId"])
        direct = self.ask("directly", message=sent["msgId"], **words)
        self.assertEqual(direct["consumeResult"], "CR_SUCCESS")
        for key in ("order-77", "alias-77"):
            query = self.java("query", topic=topic, key=key, most=10)
            self.assertEqual([body_of(message) for message in query], [b"x"])
        self.assertIn("putTps", self.ask("runtime"))
        self.assertEqual(self.ask("settings")["brokerName"], "broker-a")
        self.java("stop", name=consumer)
        with self.assertRaises(JavaError) as caught:
            self.ask("connections", group=group)
        self.assertEqual(caught.exception.code, 206)

    def test_litePull(self) -> None:
        """A client that polls gets everything, once."""
        topic, producer = self.topic(), self.producer()
        bodies = {b"%d" % number for number in range(30)}
        for body in bodies:
            self.java.send(producer, topic, body)
        words = {"topic": topic, "group": fresh("G"), "atLeast": 30}
        got = self.java("litePull", timeoutMs=60000, **words)
        self.assertEqual(len(got), 30)
        self.assertEqual({body_of(message) for message in got}, bodies)


class Operators49(Operators):
    """The same with the oldest libraries."""

    version = "4.9.8"
