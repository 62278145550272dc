"""What takes hours and days, over a whole broker and in seconds."""

from __future__ import annotations

from typing import Any

from rocketbroker.config.remoting import RemotingClientOptions
from rocketbroker.records.names import CHECK_MAX_TIME_TOPIC
from rocketbroker.records.properties import ORIGIN_MESSAGE_ID, RETRY_TOPIC
from rocketbroker.records.record import StoredMessage
from rocketbroker.remoting.client import RemotingClient
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig
from rocketbroker.wire.bodies.queues import LockBatchBody, MessageQueue
from rocketbroker.wire.fastjson import dumps, loads
from tests.broker.rig import heartbeat, send_ext
from tests.broker.week import DAY, HOUR, MINUTE, WeekCase

RETRY = "%RETRY%G"
DEAD = "%DLQ%G"

#: The delays of messageDelayLevel from the third level on, in seconds: how long a
#: message waits after each failure.
DELAYS = [10, 30, *(n * 60 for n in range(1, 11)), 1200, 1800, 3600, 7200]


#: How much time passes at once in a whole week; nothing is more precise.
STEP = 5 * MINUTE


class RetryTests(WeekCase):
    """A consumer that fails each time."""

    def again(self, offset: int, delay: float) -> StoredMessage:
        """The message at an offset of the retry topic, once it is there.

        @param delay: when it should come; nobody looks closely long before.
        """
        found: list[StoredMessage] = []
        self.pass_by(delay - 5, step=20)
        self.assertEqual(self.messages(RETRY, offset=offset), [])

        def is_there() -> bool:
            found.extend(self.messages(RETRY, offset=offset))
            return bool(found)

        self.until(is_there, MINUTE, step=0.5)
        self.assertEqual(len(found), 1, offset)
        return found[0]

    def first(self) -> StoredMessage:
        """A message of topic T, that G has got."""
        self.produce(b"doomed", "UNIQ_KEY\x01U1\x02TAGS\x01red\x02")
        self.heartbeat(["T", RETRY])
        (message,) = self.messages()
        return message

    def test_sixteenTimes(self) -> None:
        """A message comes again sixteen times, each time later, and then is a dead
        letter, with all that it was; nothing comes after it."""
        broker = self.running()
        message = first = self.first()
        waited = []
        for offset, delay in enumerate(DELAYS):
            failed_ms = self.wall_ms()
            self.give_back(message)
            message = self.again(offset, delay)
            waited.append((message.store_ms - failed_ms) // 1000)
            self.assertEqual(message.reconsume_times, offset + 1)
            self.assertEqual(message.body, b"doomed")
        for seconds, delay in zip(waited, DELAYS, strict=True):
            self.assertTrue(delay <= seconds <= delay + 1, f"{waited}")
        self.assertIsNone(broker.metadata.topics.config(DEAD))
        self.give_back(message)
        (dead,) = self.messages(DEAD)
        self.assertEqual(dead.body, b"doomed")
        self.assertEqual((dead.tags, dead.unique_key), ("red", "U1"))
        self.assertEqual(dead.properties[RETRY_TOPIC], "T")
        self.assertEqual(dead.properties[ORIGIN_MESSAGE_ID], first.offset_id)
        self.assertEqual(
            (dead.born_ms, dead.born_host), (first.born_ms, first.born_host)
        )
        self.pass_by(7 * DAY, step=300)
        self.assertEqual(len(self.messages(RETRY)), 16)
        self.assertEqual(len(self.messages(DEAD)), 1)
        self.assertEqual(broker.schedule.service.delivered, 16)
        self.stop(broker)

    def test_restarts(self) -> None:
        """A message that waits for two hours comes once, when it was meant to, though
        the broker is stopped twice meanwhile."""
        broker = self.running()
        message = self.first()
        for offset, delay in enumerate(DELAYS[:15]):
            self.give_back(message)
            message = self.again(offset, delay)
        failed_ms = self.wall_ms()
        self.give_back(message)
        for _ in range(2):
            self.pass_by(HOUR / 2, step=300)
            self.stop(broker)
            self.pass_by(10 * MINUTE, step=300)
            self.client = RemotingClient(self.network, RemotingClientOptions())
            broker = self.running()
            self.assertEqual(len(self.messages(RETRY)), 15)
        message = self.again(15, failed_ms / 1000 + 7200 - self.wall_ms() / 1000)
        self.assertTrue(7200 <= (message.store_ms - failed_ms) / 1000 <= 7202)
        self.pass_by(DAY, step=300)
        self.assertEqual(len(self.messages(RETRY)), 16)


class WholeWeekTests(WeekCase):
    """All that waits and all that expires, in one broker."""

    def setUp(self) -> None:
        """A broker that filters."""
        super().setUp()
        self.work = self.running(enablePropertyFilter="true")
        self.began = self.network.seconds()
        self.happened: dict[str, float] = {}

    def half(self, key: str, more: str = "") -> None:
        """A half message of a producer who never says anything again."""
        own = f"UNIQ_KEY\x01{key}\x02TRAN_MSG\x01true\x02PGROUP\x01PG\x02"
        self.produce(key.encode(), own + more, 4)

    def lock(self, client_id: str) -> bool:
        """Whether a client gets queue 0 of T."""
        queue = MessageQueue("T", "b", 0)
        body = LockBatchBody(client_id=client_id, consumer_group="G", mq_set=[queue])
        answer = loads(self.ask(41, {}, dumps(body)).body)
        assert isinstance(answer, dict)
        return bool(answer["lockOKMQSet"])

    def commit(self, group: str, topic: str) -> None:
        """A group has come to offset 1 of a topic."""
        ext = {"consumerGroup": group, "topic": topic}
        ext |= {"queueId": "0", "commitOffset": "1"}
        self.assertEqual(self.ask(15, ext).code, 0)

    def begin(self) -> None:
        """All that is to wait, and all that is to expire."""
        self.produce(b"doomed", "UNIQ_KEY\x01U1\x02")
        self.produce(b"later", "DELAY\x0118\x02")
        self.half("forgotten")
        self.half("spared", "CHECK_IMMUNITY_TIME_IN_SECONDS\x01600000\x02")
        self.heartbeat(["T", RETRY])
        filtered: Any = loads(heartbeat(["T"], group="F"))
        (data,) = filtered["consumerDataSet"][0]["subscriptionDataSet"]
        data |= {"expressionType": "SQL92", "subString": "a > 5"}
        self.assertEqual(self.ask(34, {}, dumps(filtered)).code, 0)
        self.give_back(self.messages()[0])

    def expect_locks(self) -> None:
        """A client that does not ask for its queue again has it for a minute."""
        self.assertTrue(self.lock("first"))
        self.pass_by(59)
        self.assertFalse(self.lock("second"))
        self.pass_by(2)
        self.assertTrue(self.lock("second"))

    def expect_forgotten(self) -> None:
        """Of topics and groups that are deleted no offset is left."""
        ext = send_ext("Old", d="1")
        self.assertEqual(self.ask(310, ext, b"old").code, 0)
        config = SubscriptionGroupConfig(group_name="Gone").to_json()
        self.assertEqual(self.ask(200, {}, dumps(config)).code, 0)
        for group, topic in (("G", "T"), ("Gone", "T"), ("G", "Old")):
            self.commit(group, topic)
        self.assertEqual(self.ask(215, {"topic": "Old"}).code, 0)
        gone = {"groupName": "Gone", "cleanOffset": "true"}
        self.assertEqual(self.ask(207, gone).code, 0)

    def look(self) -> None:
        """Note what has happened for the first time, and after how many hours."""
        broker = self.work
        for name, has_happened in (
            ("later", lambda: b"later" in self.found("T", 1)),
            ("dead", lambda: b"doomed" in self.found(DEAD)),
            ("forgotten", lambda: b"forgotten" in self.found(CHECK_MAX_TIME_TOPIC)),
            ("spared", lambda: b"spared" in self.found(CHECK_MAX_TIME_TOPIC)),
            ("silent", lambda: not broker.clients.consumers.groups()),
            ("filter", lambda: not broker.clients.filters.all()),
            ("log", lambda: broker.store.min_position > 0),
            ("queue", lambda: broker.store.queue("T", 0).min_offset > 0),
        ):
            if name not in self.happened and has_happened():
                self.happened[name] = (self.network.seconds() - self.began) / HOUR

    def found(self, topic: str, offset: int = 0) -> list[bytes]:
        """The bodies of a topic."""
        return [message.body for message in self.messages(topic, offset=offset)]

    def test_week(self) -> None:
        """A consumer fails until its message is a dead letter, a message waits for two
        hours, producers never answer, clients go silent, and files become old."""
        self.begin()
        self.expect_locks()
        self.expect_forgotten()
        seen = 0
        while (passed := self.network.seconds() - self.began) < 7 * DAY:
            self.pass_by(STEP, STEP)
            self.look()
            if "dead" not in self.happened:
                for message in self.messages(RETRY, offset=seen):
                    self.give_back(message)
                    seen += 1
            if passed // HOUR > (passed - STEP) // HOUR:
                self.produce(b"tick" * 1000)
        self.assertEqual(seen, 16)
        step = STEP / HOUR
        for name, least, most in (
            ("silent", 0.0, 3 * step),
            ("later", 2.0, 2.0 + step),
            # Two rounds before the first step, then one in each, and the last asks
            # nobody.
            ("forgotten", 13 * step, 15 * step),
            ("dead", sum(DELAYS) / HOUR, sum(DELAYS) / HOUR + 20 * step),
            ("filter", 24.0, 24.0 + 4 * step),
            ("spared", 72.0, 72.0 + 2 * step),
            # Files are removed in one hour of the day.
            ("log", 72.0, 97.0),
            ("queue", 72.0, 98.0),
        ):
            happened = self.happened.get(name, -1.0)
            self.assertTrue(least <= happened <= most, f"{name}: {self.happened}")
        self.expect_end()

    def expect_end(self) -> None:
        """What is left after the week is there after a restart, and no more."""
        broker = self.work
        first = broker.store.queue("T", 0).min_offset
        log_begin = broker.store.min_position
        self.assertEqual(broker.transactions.counts.topics["T"].open, 0)
        self.stop(broker)
        self.client = RemotingClient(self.network, RemotingClientOptions())
        broker = self.work = self.running(enablePropertyFilter="true")
        self.assertEqual(broker.store.min_position, log_begin)
        ticks = self.messages("T", 0, first)
        self.assertEqual(ticks[0].queue_offset, first)
        self.assertEqual({message.body[:4] for message in ticks}, {b"tick"})
        self.assertEqual(broker.clients.filters.all(), [])
        self.assertEqual(broker.metadata.offsets.groups_of("Old"), [])
        self.assertEqual(broker.metadata.offsets.topics_of("Gone"), [])
        self.assertEqual(broker.metadata.offsets.query("G", "T", 0), 1)
        self.stop(broker)
