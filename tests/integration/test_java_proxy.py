"""RocketMQ's Proxy, unmodified, in cluster mode before our name server and broker, as
the official gRPC clients for Java and Node.js see it."""

from __future__ import annotations

import time
from typing import Any

from scripts.lab.javaclient import JavaError
from tests.integration.javacase import until
from tests.integration.proxied import PATIENCE, ProxyCase, User, text, texts

#: What the Proxy answers: there is no such topic.
TOPIC_NOT_FOUND = 40402

#: A group whose failed messages come back after a second.
SOON = {
    "groupRetryPolicy": {
        "type": "EXPONENTIAL",
        "exponentialRetryPolicy": {"initial": 1000, "max": 2000, "multiplier": 1},
    }
}


class ProxyTests(ProxyCase):
    """Producers of all message types, push and simple consumers."""

    def test_normal(self) -> None:
        """Messages arrive once, with all that they carry, at a consumer that began
        before they were sent and at one that began after."""

        def scenario(user: User) -> None:
            topic = user.topic("NORMAL")
            producer, early = user.producer(topic), user.push(topic)
            wanted = {}
            for number in range(10):
                words = {"tag": "t", "keys": f"a{number} b", "properties": {"x": "y"}}
                body = f"{number} \u4e2d"
                answer = user.send(producer, topic, body, **words)
                wanted[body] = answer["id"]
            late = user.push(topic)
            for consumer in (early, late):
                got = user.received(consumer, 10)
                self.assertEqual({text(m): m["id"] for m in got}, wanted)
                self.assertEqual(len(got), 10)
                for message in got:
                    keys = f"a{text(message)[0]} b"
                    self.assertEqual(message["keys"], keys)
                    self.assertEqual(message["tag"], "t")
                    self.assertEqual(message["properties"], {"x": "y"})
                    self.assertEqual(message["times"], 1)
                    self.assertEqual(message["topic"], topic)

        self.each(scenario)

    def test_refused(self) -> None:
        """A topic that is not there is not found; by the route a producer knows which
        messages a topic takes, and sends no others."""

        def scenario(user: User) -> None:
            topic = user.topic("NORMAL")
            producer = user.producer(topic)
            with self.assertRaises(JavaError) as caught:
                user.send(producer, "Nowhere", "x")
            self.assertEqual(caught.exception.code, TOPIC_NOT_FOUND)
            for words in ({"group": "g"}, {"delayMs": 1000}):
                with self.assertRaises(JavaError) as caught:
                    user.send(producer, topic, "x", **words)
                self.assertIn("type not match", caught.exception.text)

        self.each(scenario)

    def test_shared(self) -> None:
        """Members of a group share its messages; one that has gone leaves all of them
        to the other."""

        def scenario(user: User) -> None:
            topic, group = user.topic("NORMAL", queues=4), user.group()
            members = [user.simple(topic, group, awaitMs=1000) for _ in range(2)]
            producer = user.producer(topic)
            bodies = {str(number) for number in range(12)}
            for body in sorted(bodies):
                user.send(producer, topic, body)
            seen: list[str] = []
            for member in (*members, *members):
                for message in user.client("receive", name=member, most=4):
                    user.client("ack", name=member, id=message["id"])
                    seen.append(text(message))
            user.client("stop", name=members[0])
            left = user.receive(members[1], 12 - len(seen))
            self.assertEqual(sorted([*seen, *left]), sorted(bodies))

        self.each(scenario)

    def test_filters(self) -> None:
        """A consumer is given what it wants by tags or by SQL."""

        def scenario(user: User) -> None:
            topic = user.topic("NORMAL")
            tags = user.push(topic, expression="a || c")
            sql = user.push(topic, expression="n > 2 AND TAGS <> 'c'", kind="SQL92")
            producer = user.producer(topic)
            for number in range(8):
                words = {"tag": "abcd"[number % 4], "properties": {"n": str(number)}}
                user.send(producer, topic, str(number), **words)
            wanted = {"0", "2", "4", "6"}
            self.assertEqual(set(texts(user.received(tags, 4))), wanted)
            wanted = {"3", "4", "5", "7"}
            self.assertEqual(set(texts(user.received(sql, 4))), wanted)

        self.each(scenario)

    def test_fifo(self) -> None:
        """Messages of a message group are consumed in their order; one that fails holds
        up those behind it."""

        def scenario(user: User) -> None:
            topic = user.topic("FIFO")
            group = user.group(consumeMessageOrderly=True, **SOON)
            producer = user.producer(topic)
            consumer = user.push(topic, group, fails=1)
            for number in range(6):
                for key in ("left", "right"):
                    bad = {"bad": "1"} if (key, number) == ("left", 2) else {}
                    words = {"group": key, "properties": {"n": "0", **bad}}
                    user.send(producer, topic, f"{key}{number}", **words)
            got = user.received(consumer, 13)
            for key, numbers in (("left", "0122345"), ("right", "012345")):
                seen = [text(m) for m in got if m["group"] == key]
                self.assertEqual(seen, [key + number for number in numbers])
            self.assertEqual(len(got), 13)

        self.each(scenario)

    def test_delay(self) -> None:
        """A message with a time of delivery comes then and not before; one that was
        recalled does not come."""

        def scenario(user: User) -> None:
            topic = user.topic("DELAY")
            consumer, producer = user.push(topic), user.producer(topic)
            begun = time.time() * 1000
            user.send(producer, topic, "soon", delayMs=2000)
            answer = user.send(producer, topic, "recalled", delayMs=5500)
            handle = answer["handle"]
            recalled = user.client("recall", name=producer, topic=topic, handle=handle)
            self.assertEqual(recalled, answer["id"])
            user.send(producer, topic, "later", delayMs=6000)
            got = user.received(consumer, 2)
            # A consumer that was slow may have both at once, of two queues.
            self.assertEqual(sorted(texts(got)), ["later", "soon"])
            for message in got:
                delay = {"soon": 2000, "later": 6000}[text(message)]
                self.assertGreater(message["at"] - begun, delay - 1)

        self.each(scenario)

    def test_transactions(self) -> None:
        """What is committed arrives, by the producer's word or by its answer when it is
        checked back; what is rolled back does not."""

        def scenario(user: User) -> None:
            topic = user.topic("TRANSACTION")
            consumer = user.push(topic)
            producer = user.producer(topic, checks=True)
            for local, checked in (
                ("COMMIT", "nothing"),
                ("ROLLBACK", "nothing"),
                ("UNKNOWN", "COMMIT"),
                ("UNKNOWN", "ROLLBACK"),
            ):
                words = {"local": local, "properties": {"checked": checked}}
                user.send(producer, topic, f"{local} {checked}", **words)
            wanted = {"COMMIT nothing", "UNKNOWN COMMIT"}

            def got() -> set[str]:
                # An answer that comes late may be asked for twice.
                return set(texts(user.received(consumer, 0)))

            def asked() -> set[str]:
                return set(texts(user.received(producer, 0)))

            until(lambda: wanted <= got(), PATIENCE)
            until(lambda: "UNKNOWN ROLLBACK" in asked(), PATIENCE)
            self.assertIn("UNKNOWN ROLLBACK", asked())
            time.sleep(2)
            self.assertEqual(got(), wanted)

        self.each(scenario)

    def test_deadLetters(self) -> None:
        """A message that fails comes back, and is a dead letter after the last time
        that its group allows; the others are not held up."""

        def scenario(user: User) -> None:
            topic = user.topic("NORMAL")
            group = user.group(retryMaxTimes=1, **SOON)
            consumer = user.push(topic, group, fails=99)
            producer = user.producer(topic)
            bad = {"bad": "1"}
            user.send(producer, topic, "dead", keys="dead", properties=bad)
            user.send(producer, topic, "alive")
            dead = user.found(f"%DLQ%{group}", "dead")
            self.assertEqual(dead, [b"dead"])
            got = user.received(consumer, 3)
            self.assertEqual(texts(got).count("alive"), 1)
            times = [m["times"] for m in got if text(m) == "dead"]
            self.assertEqual(times, [1, 2])

        self.each(scenario)

    def test_simple(self) -> None:
        """What a simple consumer does not acknowledge comes back after the time that it
        has said, or that it changed to; what it does acknowledge is done."""

        def scenario(user: User) -> None:
            topic = user.topic("NORMAL")
            consumer, producer = user.simple(topic, user.group()), user.producer(topic)

            def first(body: str, invisible_ms: int) -> Any:
                # One after the other: a slow machine might have several back at once.
                user.send(producer, topic, body)
                got = user.receive(consumer, 1, invisibleMs=invisible_ms)
                self.assertEqual(list(got), [body])
                self.assertEqual(got[body]["times"], 1)
                return got[body]

            def again(body: str) -> Any:
                back = user.receive(consumer, 1)
                self.assertEqual(list(back), [body])
                self.assertEqual(back[body]["times"], 2)
                user.client("ack", name=consumer, id=back[body]["id"])
                return back[body]

            user.client("ack", name=consumer, id=first("done", 4000)["id"])
            changed = first("changed", 600_000)["id"]
            user.client("invisible", name=consumer, id=changed, ms=1000)
            again("changed")
            begun = time.time() * 1000
            first("left", 4000)
            self.assertGreater(again("left")["at"] - begun, 4000 - 1)

        self.each(scenario)
