"""A consumer that is alone in its group."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.blocking.consumer import EARLIEST, LATEST, Consumer
from rocketbroker.blocking.routes import MessageQueue
from rocketbroker.errors import (
    ConfigurationError,
    ConnectionLost,
    NoPermission,
    RemoteProtocolError,
    TopicNotExist,
)
from rocketbroker.testing.scripted import answer
from rocketbroker.wire.command import Command
from tests.blocking.cluster import MemoryCluster, hang_up


class ConsumerTests(SynchronousTestCase):
    """With ten messages in each of four queues."""

    def setUp(self) -> None:
        self.cluster = MemoryCluster()
        for broker in self.cluster.brokers.values():
            for queue_id in (0, 1):
                for number in range(10):
                    own = b"TAGS\x01a\x02" if number % 2 else b"TAGS\x01b\x02"
                    body = f"{broker.name}/{queue_id}/{number}".encode()
                    broker.put("T", queue_id, body, properties=own)

    def consumer(self, expression: str = "*", **settings: Any) -> Consumer:
        """A consumer of group g."""
        return Consumer(self.cluster.client, "g", "T", expression, **settings)

    def drain(self, consumer: Consumer) -> list[bytes]:
        """All bodies there are."""
        bodies: list[bytes] = []
        while found := consumer.poll(1.0):
            bodies += [message.body for message in found]
        return bodies

    def test_all(self) -> None:
        """It gets every message of all queues once, of each queue in order."""
        for broker in self.cluster.brokers.values():
            broker.most = 3
        consumer = self.consumer()
        bodies = self.drain(consumer)
        self.assertEqual(len(bodies), 40)
        self.assertEqual(consumer.received, 40)
        for prefix in (b"b1/0/", b"b1/1/", b"b2/0/", b"b2/1/"):
            mine = [body for body in bodies if body.startswith(prefix)]
            self.assertEqual(mine, [b"%b%d" % (prefix, n) for n in range(10)])

    def test_goesOn(self) -> None:
        """Another one of the group goes on where it committed."""
        first = self.consumer()
        self.assertEqual(len(self.drain(first)), 40)
        first.commit()
        self.cluster.brokers["b2"].put("T", 1, b"new")
        self.assertEqual(self.drain(self.consumer()), [b"new"])

    def test_unreadableTopicIsTold(self) -> None:
        """Nothing would ever come of a topic that may not be read."""
        self.cluster.perm = 2
        with self.assertRaisesRegex(NoPermission, "T may not be read"):
            self.consumer().poll(0.0)

    def test_commitsWhatMoved(self) -> None:
        """Only queues that have moved are committed."""
        consumer = self.consumer()
        self.drain(consumer)
        consumer.commit()
        self.cluster.brokers["b2"].put("T", 1, b"new")
        self.drain(consumer)
        before = self.cluster.machine.codes().count(15)
        consumer.commit()
        self.assertEqual(before, 4)
        self.assertEqual(self.cluster.machine.codes().count(15), 5)

    def test_latest(self) -> None:
        """It can begin at the end."""
        consumer = self.consumer(begin=LATEST)
        self.assertEqual(self.drain(consumer), [])
        self.cluster.brokers["b1"].put("T", 0, b"new")
        self.assertEqual(self.drain(consumer), [b"new"])

    def test_newGroup(self) -> None:
        """Nothing is committed before the first pull, which makes the group; then where
        it began, too, if that was at the end."""
        for begin in (EARLIEST, LATEST):
            consumer = self.consumer(begin=begin)
            consumer.start()
            consumer.commit()
            self.assertNotIn(15, self.cluster.machine.codes())
        self.assertEqual(consumer.poll(0), [])
        consumer.commit()
        self.assertEqual(self.cluster.machine.codes().count(15), 4)

    def test_begin(self) -> None:
        """It begins at the earliest or the latest message, and nowhere else."""
        with self.assertRaisesRegex(ConfigurationError, "'first'"):
            self.consumer(begin="first")

    def test_someQueues(self) -> None:
        """It can be given its queues."""
        consumer = self.consumer(queues=[MessageQueue("T", "b2", 1)])
        self.assertEqual(len(self.drain(consumer)), 10)

    def test_waits(self) -> None:
        """When nothing comes it has waited as long as it was told."""
        consumer = self.consumer()
        self.drain(consumer)
        before = self.cluster.machine.now
        self.assertEqual(consumer.poll(2.0), [])
        self.assertAlmostEqual(self.cluster.machine.now, before + 2.0)

    def test_tags(self) -> None:
        """Of what the broker passes, only the wanted tags are given."""

        def passes_all(command: Command) -> None:
            assert command.ext is not None
            command.ext["subscription"] = "*"

        consumer = self.consumer("a")
        consumer.start()
        for broker in self.cluster.brokers.values():
            broker.faults = [passes_all] * 20
        bodies = self.drain(consumer)
        self.assertEqual(len(bodies), 20)
        self.assertTrue(all(int(body[-1:]) % 2 for body in bodies))

    def test_offsetMoved(self) -> None:
        """A position that is not there any more goes to where the broker says."""
        client = self.cluster.client
        broker = self.cluster.brokers["b1"]
        client.commit_offset(MessageQueue("T", "b1", 0), "g", 2)
        broker.first["T", 0] = 5
        bodies = self.drain(self.consumer(queues=[MessageQueue("T", "b1", 0)]))
        self.assertEqual(len(bodies), 10)

    def test_recovers(self) -> None:
        """A broker that fails is asked again; nothing is lost or doubled."""
        consumer = self.consumer()
        consumer.start()
        for broker in self.cluster.brokers.values():
            broker.most = 3
            broker.faults = [lambda command: None, hang_up, lambda command: answer(2)]
        bodies = self.drain(consumer)
        self.assertEqual(len(bodies), 40)
        self.assertEqual(len(set(bodies)), 40)

    def test_givesUp(self) -> None:
        """A broker that stays away is told; what others gave is given before."""
        consumer = self.consumer()
        consumer.start()
        self.cluster.brokers["b2"].faults = [hang_up] * 99
        bodies: list[bytes] = []
        with self.assertRaises(ConnectionLost):
            while True:
                bodies += [message.body for message in consumer.poll(0.1)]
        self.assertEqual(len(bodies), 20)

    def test_startFails(self) -> None:
        """When it cannot find out where to begin in one queue, it begins in none."""
        consumer = self.consumer()
        self.cluster.brokers["b2"].faults = [hang_up] * 3
        self.assertRaises(ConnectionLost, consumer.poll)
        self.assertEqual(consumer.positions, {})
        self.assertEqual(len(self.drain(consumer)), 40)

    def test_refused(self) -> None:
        """A refusal is told, after what other queues gave has been given."""
        consumer = self.consumer()
        consumer.start()
        self.cluster.brokers["b1"].faults = [lambda command: answer(16)]
        self.assertEqual(len(consumer.poll()), 30)
        self.assertRaises(NoPermission, consumer.poll)
        self.assertEqual(len(consumer.poll()), 10)

    def test_nonsense(self) -> None:
        """What is no message is told, and the position does not move."""

        def junk(command: Command) -> Command:
            fields = {
                "suggestWhichBrokerId": "0",
                "nextBeginOffset": "5",
                "minOffset": "0",
                "maxOffset": "10",
            }
            return answer(ext=fields, body=b"junk")

        queue = MessageQueue("T", "b1", 0)
        consumer = self.consumer(queues=[queue])
        consumer.start()
        self.cluster.brokers["b1"].faults = [junk] * 9
        self.assertRaises(RemoteProtocolError, consumer.poll)
        self.assertEqual(consumer.positions[queue], 0)

    def test_noTopic(self) -> None:
        """A topic that does not exist is told."""
        consumer = Consumer(self.cluster.client, "g", "U")
        self.assertRaises(TopicNotExist, consumer.poll)
