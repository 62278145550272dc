"""What takes hours and days, over a whole broker and in seconds."""

from __future__ import annotations

from rocketbroker.config.remoting import RemotingClientOptions
from rocketbroker.records.properties import ORIGIN_MESSAGE_ID, RETRY_TOPIC
from rocketbroker.records.record import StoredMessage
from rocketbroker.remoting.client import RemotingClient
from tests.broker.rig import send_ext
from tests.broker.test_heartbeats import body as heartbeat
from tests.broker.week import DAY, HOUR, MINUTE, WeekCase

RETRY = "%RETRY%G"
DEAD = "%DLQ%G"

#: The delays of messageDelayLevel from the third level on, in seconds: how long a
#: message waits after each failure.
DELAYS = [10, 30, *(n * 60 for n in range(1, 11)), 1200, 1800, 3600, 7200]


class RetryTests(WeekCase):
    """A consumer that fails each time."""

    def consumer(self) -> None:
        """A consumer of group G is there, as far as the broker knows."""
        self.ask(34, {}, heartbeat(["T", RETRY]))

    def give_back(self, message: StoredMessage) -> None:
        """Give a message back, as a client does whose listener failed."""
        fields = {
            "offset": str(message.position),
            "group": "G",
            "delayLevel": "0",
            "originMsgId": message.message_id,
            "originTopic": message.topic,
            "unitMode": "false",
            "maxReconsumeTimes": "16",
        }
        self.assertEqual(self.ask(36, fields).code, 0)

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
        ext = send_ext("T", d="1", properties="UNIQ_KEY\x01U1\x02TAGS\x01red\x02")
        self.assertEqual(self.ask(310, ext, b"doomed").code, 0)
        self.consumer()
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
        self.assertIsNone(broker.topics.config(DEAD))
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
        self.assertEqual(broker.delaying.delivered, 16)
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
