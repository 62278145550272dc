"""The official Java client 5.3.3 as a push consumer in the request mode POP."""

from __future__ import annotations

import time
from collections import Counter

from rocketbroker.wire.fastjson import dumps
from scripts.lab.javaclient import PATIENCE, body_of
from tests.integration.asker import Asker
from tests.integration.javacase import JavaCase, fresh

#: The least that the client asks for, in ms.
INVISIBLE_MS = 5000


class PopConsumer(JavaCase):
    """Members of a group that is told to pop."""

    def setUp(self) -> None:
        """A group of its own."""
        super().setUp()
        self.group = fresh("G")

    def pop_mode(self, topic: str, group: str) -> None:
        """Let a group pop."""
        mode = {"consumerGroup": group, "mode": "POP", "popShareQueueNum": 0}
        ask = Asker(self.cluster)
        self.addCleanup(ask.close)
        ask.done(401, {}, dumps({**mode, "topic": topic}))

    def member(self, topic: str, **words: object) -> str:
        """A started member of the group."""
        return self.consumer(
            topic, self.group, pop=True, **{"invisibleMs": INVISIBLE_MS, **words}
        )

    def test_once(self) -> None:
        """Two members get each message once between them, by all queues."""
        topic, producer = self.topic(), self.producer()
        self.pop_mode(topic, self.group)
        members = [self.member(topic) for _ in range(2)]
        sent = {b"%d" % n for n in range(200)}
        for body in sent:
            self.java.send(producer, topic, body)
        end = time.monotonic() + PATIENCE
        got: Counter[bytes] = Counter()
        while len(got) < len(sent) and time.monotonic() < end:
            found = [each for name in members for each in self.java.received(name, 0)]
            got = Counter(map(body_of, found))
        self.assertEqual(got.keys(), sent)
        time.sleep(INVISIBLE_MS / 1000 + 5)
        found = [each for name in members for each in self.java.received(name, 0)]
        twice = [b for b, n in Counter(map(body_of, found)).items() if n > 1]
        self.assertEqual(twice, [])

    def test_failed(self) -> None:
        """What fails comes again after a time, with its count; then it is over."""
        topic, producer = self.topic(1), self.producer()
        self.pop_mode(topic, self.group)
        member = self.member(topic, failUntil=1, level=0)
        self.java.send(producer, topic, b"again")
        found = self.java.received(member, 2)
        self.assertEqual([body_of(each) for each in found], [b"again"] * 2)
        self.assertEqual([each["times"] for each in found], [0, 1])
        self.assertEqual({each["topic"] for each in found}, {topic})
