"""Dead letters: messages that a group has failed to consume too often."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.json_table import JsonTable
from rocketbroker.broker.metadata.groups import GroupTable
from rocketbroker.broker.metadata.topics import TopicTable
from rocketbroker.broker.send.dead_letters import (
    DeadLetters,
    FailureCounts,
    max_reconsumed,
)
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.errors import BrokerError, SystemFailure
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.threads import at_once
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.fastjson import dumps
from tests.broker.rig import UNIQUE, Rig, answered, send_ext

SEND = RequestCode.SEND_MESSAGE_V2


class LimitTests(SynchronousTestCase):
    """How often a group consumes a message again."""

    def test_clientWins(self) -> None:
        """What a client says counts before what its group says, even 0 and less."""
        group = SubscriptionGroupConfig(group_name="G", retry_max_times=5)
        for asked in (3, 0, -1, 1 << 30):
            self.assertEqual(max_reconsumed(group, 479, asked), asked)
        self.assertEqual(max_reconsumed(group, 479, None), 5)

    def test_oldClient(self) -> None:
        """A client before 3.4.9 cannot say it."""
        group = SubscriptionGroupConfig(group_name="G")
        self.assertEqual(max_reconsumed(group, 120, 3), 16)
        self.assertEqual(max_reconsumed(group, 121, 3), 3)


class TopicTests(SynchronousTestCase):
    """The topic of dead letters."""

    def table(self, limit: int = 1000) -> TopicTable:
        """A table of topics."""
        file = JsonTable(MemoryDisk(), "/config/topics.json", at_once, Clock())
        options = BrokerOptions(rocketbroker_max_auto_topics=limit)
        return TopicTable(options, file, lambda: 0)

    def letters(self, topics: TopicTable) -> DeadLetters:
        """Dead letters in these topics."""
        file = JsonTable(MemoryDisk(), "/config/groups.json", at_once, Clock())
        groups = GroupTable(BrokerOptions(), file, lambda: 0)
        return DeadLetters(topics, groups, lambda group: False)

    def test_made(self) -> None:
        """It is made with one queue that can be read and written, and made once."""
        topics = self.table()
        letters = self.letters(topics)
        self.assertEqual(letters.topic("G"), "%DLQ%G")
        config = topics.config("%DLQ%G")
        assert config is not None
        self.assertEqual((config.read_queue_nums, config.write_queue_nums), (1, 1))
        self.assertEqual(config.perm, 6)
        generation = topics.generation
        self.assertEqual(letters.topic("G"), "%DLQ%G")
        self.assertEqual(topics.generation, generation)

    def test_tooManyTopics(self) -> None:
        """However many topics there are, a message that has failed has a place."""
        topics = self.table(limit=0)
        self.assertEqual(self.letters(topics).topic("G"), "%DLQ%G")
        self.assertIsNotNone(topics.config("%DLQ%G"))

    def test_longName(self) -> None:
        """A name that the log does not take is not made a topic."""
        topics = self.table()
        letters = self.letters(topics)
        self.assertEqual(len(letters.topic("g" * 122)), 127)
        self.assertRaises(SystemFailure, letters.topic, "g" * 123)
        self.assertIsNone(topics.config("%DLQ%" + "g" * 123))


class CountTests(SynchronousTestCase):
    """Counts of what failed."""

    def test_counts(self) -> None:
        """Messages are counted by group and topic, and those from topics that nobody
        knows as of the group's retry topic."""
        rig = Rig({})
        self.addCleanup(rig.close)
        rig.topic("T")
        rig.topic("U")
        counts = FailureCounts(rig.topics)
        for topic in ("T", "U", "T", "made up", "x" * 1000, ""):
            counts.count("G", topic)
        wanted = {("G", "T"): 2, ("G", "U"): 1, ("G", "%RETRY%G"): 3}
        self.assertEqual(counts.messages, wanted)


class SentTests(SynchronousTestCase):
    """What clients send to retry topics themselves."""

    def setUp(self) -> None:
        """A group G that was there before."""
        self.rig = Rig({})
        self.addCleanup(self.rig.close)
        self.rig.topic("T")
        self.group()

    def group(self, most: int = 16) -> None:
        """Set up group G."""
        config = SubscriptionGroupConfig(group_name="G", retry_max_times=most)
        self.rig.groups.put([config])

    def send(
        self, times: int, limit: str | None = None, version: int = 479, more: str = ""
    ) -> Command:
        """Send a message that has failed so often."""
        properties = f"UNIQ_KEY\x01{UNIQUE}\x02RETRY_TOPIC\x01T\x02DELAY\x015\x02"
        ext = send_ext("%RETRY%G", properties=properties + more, j=str(times))
        if limit is not None:
            ext["l"] = limit
        request = Command(SEND, ext, b"body", opaque=1, version=version)
        answer = self.rig.table.responders[SEND](self.rig.connection, request)
        self.rig.batcher.flush()
        return answered(answer)

    def stored(self) -> tuple[int, int]:
        """How many wait to be consumed again, and how many are dead letters."""
        waiting = self.rig.records(4, "SCHEDULE_TOPIC_XXXX")
        return len(waiting), len(self.rig.records(0, "%DLQ%G"))

    def test_beyondLimit(self) -> None:
        """The count is that of the next time: at the limit there is one, beyond it the
        message is a dead letter at once, as it was sent."""
        self.send(3, "3")
        self.assertEqual(self.stored(), (1, 0))
        answer = self.send(4, "3")
        self.assertEqual(self.stored(), (1, 1))
        self.assertEqual(answer.code, 0)
        (dead,) = self.rig.records(0, "%DLQ%G")
        assert answer.ext is not None
        self.assertEqual(answer.ext["msgId"], dead.offset_id)
        self.assertEqual(answer.ext["queueId"], "0")
        self.assertEqual((dead.body, dead.reconsume_times), (b"body", 4))
        self.assertEqual(dead.properties["DELAY"], "-1")
        self.assertEqual(dead.properties["RETRY_TOPIC"], "T")
        self.assertEqual(self.rig.dead_letters.counts.messages, {("G", "T"): 1})

    def test_groupsLimit(self) -> None:
        """Without a limit of the client's own, the group's counts."""
        self.group(2)
        self.send(2)
        self.send(3)
        self.assertEqual(self.stored(), (1, 1))
        self.send(3, "9", version=120)
        self.assertEqual(self.stored(), (1, 2))

    def test_inOrder(self) -> None:
        """What an orderly group sends to its retry topic is a dead letter."""
        lock = {
            "consumerGroup": "G",
            "clientId": "c",
            "mqSet": [{"topic": "T", "brokerName": "broker-a", "queueId": 0}],
        }
        self.rig.ask(41, {}, dumps(lock))
        self.send(0, "16")
        self.assertEqual(self.stored(), (0, 1))

    def test_halfMessage(self) -> None:
        """A dead letter is no half message, whatever its properties say yet."""
        self.send(4, "3", more="TRAN_MSG\x01true\x02")
        self.assertEqual(self.stored(), (0, 1))

    def test_noTopic(self) -> None:
        """If there can be no topic for it, the sender keeps it."""
        group = "g" * 123
        self.rig.groups.put([SubscriptionGroupConfig(group_name=group)])
        self.rig.topics.ensure("%RETRY%G", 1)
        ext = send_ext("%RETRY%" + group, j="17")
        self.assertRaises(BrokerError, self.rig.ask, SEND, ext, b"x")
        self.assertEqual(self.rig.dead_letters.counts.messages, {})
