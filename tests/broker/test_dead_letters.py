"""When a group has given up, and where it goes."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.dead_letters import DeadLetters, most_reconsumed
from rocketbroker.broker.state import TableFile
from rocketbroker.broker.topics import TopicTable
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.errors import SystemFailure
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.threads import at_once
from rocketbroker.wire.groups import SubscriptionGroupConfig


class LimitTests(SynchronousTestCase):
    """How often a group consumes a message again."""

    def test_clientWins(self) -> None:
        """What a client says counts before what its group says, even 0 and less."""
        group = SubscriptionGroupConfig(group_name="G", retry_max_times=5)
        for said in (3, 0, -1, 1 << 30):
            self.assertEqual(most_reconsumed(group, 479, said), said)
        self.assertEqual(most_reconsumed(group, 479, None), 5)

    def test_oldClient(self) -> None:
        """A client before 3.4.9 cannot say it."""
        group = SubscriptionGroupConfig(group_name="G")
        self.assertEqual(most_reconsumed(group, 120, 3), 16)
        self.assertEqual(most_reconsumed(group, 121, 3), 3)


class TopicTests(SynchronousTestCase):
    """The topic of dead letters."""

    def table(self, most_made: int = 1000) -> TopicTable:
        """A table of topics."""
        file = TableFile(MemoryDisk(), "/config/topics.json", at_once)
        return TopicTable(BrokerOptions(), file, lambda: 0, most_made=most_made)

    def test_made(self) -> None:
        """It is made with one queue that can be read and written, and made once."""
        topics = self.table()
        letters = DeadLetters(topics)
        self.assertEqual(letters.topic("G"), "%DLQ%G")
        config = topics.config("%DLQ%G")
        assert config is not None
        self.assertEqual((config.read_queue_nums, config.write_queue_nums), (1, 1))
        self.assertEqual(config.perm, 6)
        generation = topics.generation
        self.assertEqual(letters.topic("G"), "%DLQ%G")
        self.assertEqual(topics.generation, generation)

    def test_tooManyTopics(self) -> None:
        """Clients that invent groups cannot fill the table by it; a topic that is
        there is used."""
        topics = self.table()
        DeadLetters(topics).topic("G")
        full = self.table(most_made=len(topics.names()))
        letters = DeadLetters(full)
        letters.topic("G")
        self.assertTrue(full.is_full)
        self.assertEqual(letters.topic("G"), "%DLQ%G")
        error = self.assertRaises(SystemFailure, letters.topic, "H")
        self.assertEqual(error.remark, "topic[%DLQ%H] not exist")

    def test_longName(self) -> None:
        """A name that the log does not take is not made a topic."""
        topics = self.table()
        letters = DeadLetters(topics)
        self.assertEqual(len(letters.topic("g" * 122)), 127)
        self.assertRaises(SystemFailure, letters.topic, "g" * 123)
        self.assertIsNone(topics.config("%DLQ%" + "g" * 123))

    def test_counts(self) -> None:
        """Dead letters are counted by group and topic."""
        letters = DeadLetters(self.table())
        for topic in ("T", "T", "U"):
            letters.count("G", topic)
        self.assertEqual(letters.counts, {("G", "T"): 2, ("G", "U"): 1})
