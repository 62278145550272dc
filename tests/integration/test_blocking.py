"""The blocking client against servers as a user starts them."""

from __future__ import annotations

import atexit
import pickle
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.consumer import Consumer
from rocketbroker.blocking.messages import Message
from rocketbroker.blocking.producer import Producer
from rocketbroker.blocking.puller import NOTHING_NEW, Puller, messages
from rocketbroker.blocking.session import connect
from rocketbroker.blocking.settings import Settings
from rocketbroker.errors import (
    ConfigurationError,
    ConnectionLost,
    MessageIllegal,
    PullOffsetMoved,
    TopicNotExist,
)
from rocketbroker.records import compression, ids
from rocketbroker.records.sysflags import COMPRESSED
from scripts.lab.servers import Cluster

#: How long something may take; nothing is asserted about it. Of a request that takes
#: longer than its client waits the message may be there twice.
SECONDS = 60.0

#: How many messages the tests of throughput send; nothing is asserted about time.
MANY = 5000


def mixed(topic: str, count: int) -> Iterator[Message]:
    """Messages of many sizes, with tags, keys and properties."""
    chance = random.Random(count)
    blob = chance.randbytes(20_000)
    for number in range(count):
        size = chance.choice([1, 10, 100, 1000, 4095, 4096, 20_000])
        yield Message(
            topic,
            blob[:size],
            tags=f"tag{number % 5}",
            keys=[f"k{number}", "all"],
            properties={"number": str(number), "grün": "ü€"},
            flag=number,
        )


def until(what: Callable[[], bool]) -> bool:
    """Wait for something that comes by itself; whether it came."""
    end = time.monotonic() + SECONDS
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


class Shared:
    """One cluster for all tests, until the process ends: trial has nothing for it."""

    cluster: ClassVar[Cluster | None] = None

    @classmethod
    def get(cls) -> Cluster:
        """The cluster, started with the first test that asks."""
        if cls.cluster is None:
            cluster = Cluster()
            atexit.register(cluster.stop)
            cls.cluster = cluster.start()
            with Client(Settings(cluster.names)) as client:
                until(lambda: bool(client.masters()))
        return cls.cluster


class ImportTests(SynchronousTestCase):
    """What an import of the package costs."""

    def test_lazy(self) -> None:
        """Importing the package imports nothing else until a name is used."""
        program = (
            "import sys, rocketbroker.blocking\n"
            "print([n for n in sys.modules if n.startswith('rocketbroker.')])"
        )
        found = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )
        self.assertEqual(found.stdout, "['rocketbroker.blocking']\n")


class BlockingTests(SynchronousTestCase):
    """Each test has topics of its own."""

    def setUp(self) -> None:
        """A client, and a topic named after the test."""
        self.cluster = Shared.get()
        self.client = Client(Settings(self.cluster.names, seconds=SECONDS))
        self.addCleanup(self.client.close)
        self.topic = self.id().rpartition(".")[2]
        self.client.create_topic(self.topic, queues=4)

    def count(self) -> int:
        """How many messages the topic's queues hold; all of them can be read."""
        queues = self.client.queues(self.topic)

        def total() -> int:
            return sum(self.client.max_offset(queue) for queue in queues)

        until(lambda: total() >= self.sent)
        return total()

    def compare(self, expected: list[Message]) -> None:
        """Everything that was sent is there, once, as it was."""
        self.sent = len(expected)
        self.assertEqual(self.count(), self.sent)
        puller = pickle.loads(pickle.dumps(Puller(self.client)))
        self.addCleanup(puller.client.close)
        found = {}
        for queue in self.client.queues(self.topic):
            start, until = self.client.min_offset(queue), self.client.max_offset(queue)
            offset = start
            for chunk in puller.read(queue, start, until):
                for stored in messages(chunk.data):
                    self.assertEqual(stored.queue_offset, offset)
                    self.assertEqual(stored.queue_id, queue.queue_id)
                    found[stored.properties["number"]] = stored
                    offset += 1
            self.assertEqual(offset, until)
        self.assertEqual(len(found), self.sent)
        for message in expected:
            stored = found[message.properties["number"]]
            self.assertEqual(stored.body, message.body)
            self.assertEqual(stored.flag, message.flag)
            self.assertEqual(stored.tags, message.properties["TAGS"])
            self.assertEqual(" ".join(stored.keys), message.properties["KEYS"])
            self.assertEqual(stored.properties["grün"], "ü€")

    def test_topics(self) -> None:
        """A topic that was created is known, with its queues; others are not."""
        self.assertIn(self.topic, self.client.topics())
        self.assertEqual(len(self.client.queues(self.topic)), 4)
        self.assertEqual(self.client.masters(), {"broker-a": self.cluster.address})
        self.assertRaises(TopicNotExist, self.client.queues, "nowhere")

    def test_send(self) -> None:
        """One message: its ids say where it is, and it is there."""
        result = Producer(self.client).send(Message(self.topic, b"one", tags="t"))
        self.assertEqual((result.status, result.queue_offset), (0, 0))
        where = ids.parse_offset_id(result.offset_ids[0])
        stored = self.client.view(self.cluster.address, where.position, self.topic)
        self.assertEqual((stored.body, stored.tags), (b"one", "t"))
        self.assertEqual(stored.unique_key, result.message_id)
        self.assertEqual(stored.offset_id, result.offset_ids[0])

    def test_sendAll(self) -> None:
        """Many messages, one by one with many under way, compressed where large."""
        expected = list(mixed(self.topic, MANY))
        producer = Producer(self.client)
        results = list(producer.send_all(expected))
        self.assertEqual(len({one.message_id for one in results}), MANY)
        self.compare(expected)

    def test_sendBatch(self) -> None:
        """Many messages in batches; as many offset ids as messages."""
        expected = list(mixed(self.topic, MANY))
        results = Producer(self.client).send_batch(expected)
        offset_ids = [one for result in results for one in result.offset_ids]
        self.assertEqual(len(set(offset_ids)), MANY)
        self.compare(expected)

    def test_compression(self) -> None:
        """All kinds of compression come back as they were sent."""
        kinds = (compression.LZ4, compression.ZSTD, compression.ZLIB)
        for number, kind in enumerate(kinds):
            producer = Producer(self.client, kind=kind)
            body = b"%d" % number * 5000
            result = producer.send(Message(self.topic, body))
            where = ids.parse_offset_id(result.offset_ids[0])
            stored = self.client.view(self.cluster.address, where.position)
            self.assertTrue(stored.sys_flag & COMPRESSED)
            self.assertLess(len(stored.body), 1000)
            self.assertEqual(stored.plain_body(), body)

    def test_tooLarge(self) -> None:
        """The broker refuses a body that is too long for it, and goes on."""
        producer = Producer(
            self.client, max_body_bytes=10 * 1024 * 1024, compress_over=1 << 30
        )
        with self.assertRaises(MessageIllegal):
            producer.send(Message(self.topic, bytes(4 * 1024 * 1024 + 1)))
        producer.send(Message(self.topic, bytes(4 * 1024 * 1024)))

    def test_created(self) -> None:
        """The first send creates a topic."""
        topic = f"{self.topic}New"
        result = Producer(self.client).send(Message(topic, b"one"))
        self.assertEqual(result.status, 0)
        self.assertTrue(until(lambda: topic in self.client.topics()))
        self.assertEqual(len(self.client.queues(topic)), 4)

    def test_session(self) -> None:
        """A session gives each message to a group, and again what it did not end."""
        with connect(self.cluster.names, seconds=SECONDS) as mq:
            for number in range(20):
                mq.send(self.topic, f"grün {number}", tag="paid", keys=[f"k{number}"])
            found = mq.receive(self.topic, group="session", wait=1.0)
            texts = []
            for message in found:
                texts.append(message.text)
                if message.text != "grün 7":
                    message.ack()
            self.assertEqual(len(set(texts)), 20)
        with connect(self.cluster.names, seconds=SECONDS) as mq:
            found = mq.receive(self.topic, group="session", wait=1.0)
            again = {message.text for message in found}
        self.assertIn("grün 7", again)
        self.assertLessEqual(len(again), 5)

    def test_delayed(self) -> None:
        """A message with a delay level comes when its time has come."""
        Producer(self.client).send(Message(self.topic, b"later", delay_level=1))
        (message,) = Consumer(self.client, "delayed", self.topic).poll(SECONDS)
        self.assertEqual(message.body, b"later")
        self.assertGreaterEqual(message.store_ms - message.born_ms, 1000)

    def test_brokersAddress(self) -> None:
        """A broker's address given for a name server's is told as that."""
        with (
            Client(Settings(self.cluster.address)) as client,
            self.assertRaisesRegex(ConfigurationError, "no name server"),
        ):
            Producer(client).send(Message(self.topic, b"x"))

    def test_consumer(self) -> None:
        """A group gets everything, goes on where it committed, and filters by tag."""
        expected = list(mixed(self.topic, 500))
        Producer(self.client).send_batch(expected)
        self.sent = 500
        self.count()
        consumer = Consumer(self.client, "g", self.topic)
        bodies = []
        while found := consumer.poll(0.5):
            bodies += [message.body for message in found]
        self.assertEqual(len(bodies), 500)
        consumer.commit()
        Producer(self.client).send(Message(self.topic, b"new", tags="tag3"))
        (message,) = Consumer(self.client, "g", self.topic).poll(SECONDS)
        self.assertEqual(message.body, b"new")
        tagged = Consumer(self.client, "h", self.topic, "tag3 || none")
        count = 0
        while found := tagged.poll(0.5):
            self.assertEqual({message.tags for message in found}, {"tag3"})
            count += len(found)
        self.assertEqual(count, 101)

    def test_offsets(self) -> None:
        """Ends, times and committed offsets of a queue."""
        queue = self.client.queues(self.topic)[0]
        self.assertEqual(self.client.max_offset(queue), 0)
        self.assertEqual(self.client.earliest_store_time(queue), -1)
        producer = Producer(self.client)
        for _ in range(5):
            producer.send(Message(self.topic, b"x"), queue)
        self.sent = 5
        self.count()
        self.assertEqual(self.client.min_offset(queue), 0)
        self.assertEqual(self.client.max_offset(queue), 5)
        stored = self.client.earliest_store_time(queue)
        self.assertEqual(self.client.offset_by_time(queue, stored), 0)
        self.assertEqual(self.client.offset_by_time(queue, stored + 86_400_000), 5)
        self.client.commit_offset(queue, "g", 3)
        self.assertEqual(self.client.committed_offset(queue, "g"), 3)

    def test_pull(self) -> None:
        """What is not there is told; a broker that may wait answers when it comes."""
        queue = self.client.queues(self.topic)[0]
        puller = Puller(self.client)
        self.assertEqual(puller.pull(queue, 0).status, NOTHING_NEW)
        with self.assertRaises(PullOffsetMoved):
            list(puller.read(queue, 0, 1))
        with Client(Settings(self.cluster.names)) as other:
            pending = puller.submit(queue, 0, suspend=SECONDS)
            Producer(other).send(Message(self.topic, b"x"), queue)
            (message,) = messages(puller.collect(pending).data)
        self.assertEqual(message.body, b"x")

    def test_threads(self) -> None:
        """A producer can be shared by threads: each message is stored once."""
        producer = Producer(self.client)

        def send(number: int) -> list[str]:
            return [
                producer.send(Message(self.topic, b"%d/%d" % (number, n))).message_id
                for n in range(100)
            ]

        with ThreadPoolExecutor(8) as pool:
            sent = [key for keys in pool.map(send, range(8)) for key in keys]
        self.assertEqual(len(set(sent)), 800)
        self.assertEqual(producer.sent, 800)
        self.sent = 800
        self.assertEqual(self.count(), 800)

    def test_nobody(self) -> None:
        """Name servers that are not there are told; one that is suffices."""
        with Client(Settings("127.0.0.1:1")) as client:
            self.assertRaises(ConnectionLost, client.topics)
        with Client(Settings(f"127.0.0.1:1;{self.cluster.names}")) as client:
            self.assertIn(self.topic, client.topics())
