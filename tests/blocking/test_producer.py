"""Sending."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterator

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.messages import Message
from rocketbroker.blocking.producer import BATCH_BYTES, Producer
from rocketbroker.blocking.routes import MessageQueue
from rocketbroker.blocking.settings import Settings
from rocketbroker.errors import (
    ConnectionLost,
    MessageIllegal,
    NoPermission,
    RemoteProtocolError,
    RequestTimeout,
    SystemBusy,
    TopicNotExist,
)
from rocketbroker.records import compression
from rocketbroker.records.record import StoredMessage, decode
from rocketbroker.records.sysflags import COMPRESSED
from rocketbroker.testing.scripted import answer
from tests.blocking.cluster import MemoryBroker, MemoryCluster, hang_up, silent


class ProducerTestCase(SynchronousTestCase):
    """With a cluster in memory."""

    def setUp(self) -> None:
        self.begin()

    def begin(self) -> None:
        """A new cluster with a new producer."""
        self.cluster = MemoryCluster()
        self.producer = Producer(self.cluster.client)

    def brokers(self) -> list[MemoryBroker]:
        """Both."""
        return list(self.cluster.brokers.values())

    def stored(self) -> list[StoredMessage]:
        """All messages, of all brokers."""
        return [
            decode(data)
            for broker in self.brokers()
            for queue in broker.queues.values()
            for data in queue
        ]


class SendTests(ProducerTestCase):
    """One message."""

    def test_stored(self) -> None:
        """It is stored as given, and the result says where."""
        message = Message("T", b"x", "a", ["k"], {"u": "v"}, flag=7)
        result = self.producer.send(message)
        (found,) = self.stored()
        self.assertEqual((found.body, found.flag, found.tags), (b"x", 7, "a"))
        self.assertEqual((found.keys, found.properties["u"]), (["k"], "v"))
        self.assertEqual(found.unique_key, result.message_id)
        self.assertEqual(result.offset_ids, (found.offset_id,))
        self.assertEqual((result.status, result.queue_offset), (0, 0))
        self.assertEqual(result.queue.queue_id, found.queue_id)
        self.assertEqual(self.producer.sent, 1)

    def test_header(self) -> None:
        """The header has all that a broker looks at."""
        self.producer.send(Message("T", b"x"), MessageQueue("T", "b1", 1))
        (command,) = self.cluster.brokers["b1"].sends
        ext = dict(command.ext or {})
        self.assertEqual(command.code, 310)
        self.assertIn("UNIQ_KEY", ext.pop("i"))
        self.assertGreater(int(ext.pop("g")), 1_700_000_000_000)
        self.assertEqual(
            ext,
            {
                "a": "CLIENT_INNER_PRODUCER",
                "b": "T",
                "c": "TBW102",
                "d": "4",
                "e": "1",
                "f": "0",
                "h": "0",
                "j": "0",
                "k": "false",
                "m": "false",
                "n": "b1",
            },
        )

    def test_turns(self) -> None:
        """Messages go to all queues in turn."""
        for _ in range(8):
            self.producer.send(Message("T", b"x"))
        places = Counter((m.store_host, m.queue_id) for m in self.stored())
        self.assertEqual(sorted(places.values()), [4, 4])
        self.assertEqual([len(broker.sends) for broker in self.brokers()], [4, 4])

    def test_compressed(self) -> None:
        """A body of the threshold's size is compressed, a smaller one is not."""
        for kind in (compression.LZ4, compression.ZSTD, compression.ZLIB):
            producer = Producer(self.cluster.client, compress_over=100, kind=kind)
            body = b"hello" * 20
            queue = MessageQueue("T", "b1", 0)
            producer.send(Message("T", body), queue)
            producer.send(Message("T", body[1:]), queue)
            found = [decode(data) for data in self.cluster.brokers["b1"].queues["T", 0]]
            self.assertEqual(found[-2].sys_flag & 0x701, kind << 8 | 1)
            self.assertEqual(found[-2].plain_body(), body)
            self.assertEqual(found[-1].sys_flag, 0)

    def test_limits(self) -> None:
        """A body may be as long as allowed, and not empty."""
        producer = Producer(self.cluster.client, max_body_bytes=10)
        producer.send(Message("T", bytes(10)))
        self.assertRaises(MessageIllegal, producer.send, Message("T", bytes(11)))
        self.assertRaises(MessageIllegal, producer.send, Message("T", b""))
        self.assertRaises(MessageIllegal, producer.send, Message("a.b", b"x"))

    def test_statuses(self) -> None:
        """Stored less safely than wanted is a result, not an error."""
        for status in (10, 11, 12):
            for broker in self.brokers():
                broker.status = status
            result = self.producer.send(Message("T", b"x"))
            self.assertEqual(result.status, status)

    def test_travels(self) -> None:
        """A producer can be pickled."""
        producer = Producer(Client(Settings("a:1")), "g", 5, compression.ZSTD)
        again = pickle.loads(pickle.dumps(producer))
        self.assertEqual(again.client.settings, producer.client.settings)
        self.assertEqual(again.sent, 0)


class RetryTests(ProducerTestCase):
    """Sends that fail."""

    def test_otherBroker(self) -> None:
        """The next try goes to another broker, under the same unique key."""
        for fault in (hang_up, silent, lambda command: answer(2)):
            self.begin()
            self.cluster.brokers["b1"].faults = [fault] * 9
            results = [self.producer.send(Message("T", b"x")) for _ in range(4)]
            self.assertEqual({one.queue.broker for one in results}, {"b2"})
            self.assertGreaterEqual(self.producer.retries, 1)
            self.assertEqual(
                sorted(message.unique_key or "" for message in self.stored()),
                sorted(one.message_id for one in results),
            )

    def test_givesUp(self) -> None:
        """After as many tries as allowed the last failure is told."""
        for fault, error in (
            (hang_up, ConnectionLost),
            (silent, RequestTimeout),
            (lambda command: answer(2), SystemBusy),
        ):
            self.begin()
            self.producer.patience = 0.0
            for broker in self.brokers():
                broker.faults = [fault] * 9
            self.assertRaises(error, self.producer.send, Message("T", b"x"))
            left = sum(len(broker.faults) for broker in self.brokers())
            self.assertEqual(left, 15)

    def stop_all(self, seconds: float) -> float:
        """Stop all brokers for a while, and restart the name servers, which know no
        topic without them; when it is over."""
        machine = self.cluster.machine
        servers = {**machine.servers}
        end = machine.now + seconds
        for stream in machine.streams:
            stream.hung_up = True
        machine.servers.clear()
        for name in ("ns1:9876", "ns2:9876"):
            machine.servers[name] = lambda command: answer(17, remark="No topic route")

        def restart() -> None:
            if machine.now >= end:
                machine.servers.update(servers)

        machine.meanwhile = restart
        return end

    def test_restartOfAllServersIsRiddenOver(self) -> None:
        """It is said once. A send to one queue, and several under way, ride over it,
        too."""
        send, queue = self.producer.send, MessageQueue("T", "b1", 0)
        sends: list[Callable[[Message], object]] = [
            send,
            lambda message: send(message, queue),
            lambda message: [*self.producer.send_all([message] * 9)],
            lambda message: self.producer.send_batch([message] * 9),
        ]
        send(Message("T", b"x"))
        for each in sends:
            end = self.stop_all(60.0)
            with self.assertLogs("rocketbroker.blocking", "WARNING") as logs:
                each(Message("T", b"y"))
            self.assertEqual(len(logs.output), 1, logs.output)
            self.assertLess(self.cluster.machine.now - end, 5.0)
        self.assertEqual(len(self.stored()), 21)

    def test_patienceHasAnEnd(self) -> None:
        """Then the last failure is told; a topic that was never there is one at
        once."""
        self.producer.send(Message("T", b"x"))
        self.stop_all(300.0)
        begin = self.cluster.machine.now
        for topic, least, most in (("T", 110.0, 120.0), ("Never", 0.0, 0.0)):
            begin = self.cluster.machine.now
            with self.assertRaises(TopicNotExist):
                self.producer.send(Message(topic, b"y"))
            passed = self.cluster.machine.now - begin
            self.assertTrue(least <= passed <= most, passed)

    def test_final(self) -> None:
        """A message that the broker refuses is not tried elsewhere."""
        for broker in self.brokers():
            broker.faults = [lambda command: answer(13, remark="too large")]
        with self.assertRaises(MessageIllegal):
            self.producer.send(Message("T", b"x"))
        self.assertEqual(self.producer.retries, 0)

    def test_givenQueue(self) -> None:
        """A message for one queue is not tried elsewhere."""
        self.cluster.brokers["b1"].faults = [lambda command: answer(16)]
        with self.assertRaises(NoPermission):
            self.producer.send(Message("T", b"x"), MessageQueue("T", "b1", 0))

    def test_nonsense(self) -> None:
        """A success without sense is not taken for one."""
        self.producer.patience = 0.0
        for broker in self.brokers():
            broker.faults = [lambda command: answer(ext={"queueOffset": "x"})] * 9
        self.assertRaises(RemoteProtocolError, self.producer.send, Message("T", b"x"))


class SendAllTests(ProducerTestCase):
    """Many messages, several under way."""

    def test_order(self) -> None:
        """Results come in the order of messages, whichever broker has them."""
        bodies = [b"%d" % number for number in range(50)]
        messages = [Message("T", body) for body in bodies]
        results = list(self.producer.send_all(messages, in_flight=7))
        ids = {message.unique_key: message.body for message in self.stored()}
        self.assertEqual([ids[one.message_id] for one in results], bodies)
        self.assertEqual(self.producer.sent, 50)

    def test_lazy(self) -> None:
        """Messages are taken only as far ahead as sends may be under way."""
        taken = []

        def source() -> Iterator[Message]:
            for number in range(10):
                taken.append(number)
                yield Message("T", b"x")

        results = self.producer.send_all(source(), in_flight=3)
        next(results)
        self.assertEqual(len(taken), 4)

    def test_failures(self) -> None:
        """What fails on the way is sent again; nothing is lost."""
        self.cluster.brokers["b1"].faults = [
            lambda command: None,
            lambda command: answer(2),
            lambda command: None,
            hang_up,
        ]
        bodies = [b"%d" % number for number in range(40)]
        results = list(
            self.producer.send_all([Message("T", body) for body in bodies], 8)
        )
        self.assertEqual(len(results), 40)
        self.assertEqual({message.body for message in self.stored()}, set(bodies))
        self.assertGreaterEqual(self.producer.retries, 2)

    def test_failsForGood(self) -> None:
        """What cannot be sent is told, and nothing is left behind."""
        for broker in self.brokers():
            broker.faults = [lambda command: answer(13)] * 9
        with self.assertRaises(MessageIllegal):
            list(self.producer.send_all([Message("T", b"x")] * 5))
        self.assertEqual(self.cluster.client.connections.to("b1:10911").under_way, 0)


class BatchTests(ProducerTestCase):
    """Several messages in one request."""

    def test_one(self) -> None:
        """Messages that fit go in one request, each with its own key."""
        messages = [Message("T", b"%d" % n, tags="a", flag=n) for n in range(5)]
        (result,) = self.producer.send_batch(messages)
        found = self.stored()
        self.assertEqual(
            [message.body for message in found], [b"0", b"1", b"2", b"3", b"4"]
        )
        self.assertEqual([message.flag for message in found], [0, 1, 2, 3, 4])
        self.assertEqual(
            tuple(message.unique_key for message in found), result.message_ids
        )
        self.assertEqual(
            tuple(message.offset_id for message in found), result.offset_ids
        )
        self.assertEqual(self.producer.sent, 5)
        (command,) = [send for broker in self.brokers() for send in broker.sends]
        self.assertEqual((command.code, (command.ext or {})["m"]), (320, "true"))

    def test_split(self) -> None:
        """More than fits goes in several requests, none larger than the limit."""
        messages = [Message("T", bytes(BATCH_BYTES // 4)) for _ in range(10)]
        results = self.producer.send_batch(messages)
        self.assertEqual([len(one.message_ids) for one in results], [3, 3, 3, 1])
        for broker in self.brokers():
            for command in broker.sends:
                self.assertLessEqual(len(command.body), BATCH_BYTES)
        self.assertEqual(len(self.stored()), 10)

    def test_large(self) -> None:
        """A message that is alone goes as it is, compressed too."""
        (result,) = self.producer.send_batch([Message("T", bytes(2 * BATCH_BYTES))])
        (found,) = self.stored()
        self.assertTrue(found.sys_flag & COMPRESSED)
        self.assertEqual(found.unique_key, result.message_id)

    def test_waiting(self) -> None:
        """Messages that wait and those that do not go apart."""
        waits = [True, True, False, False, True]
        results = self.producer.send_batch([Message("T", b"x", wait=w) for w in waits])
        self.assertEqual([len(one.message_ids) for one in results], [2, 2, 1])
        texts = {
            (send.ext or {})["i"]
            for broker in self.brokers()
            for send in broker.sends
            if send.code == 320
        }
        self.assertEqual(texts, {"", "WAIT\x01false\x02"})

    def test_delayed(self) -> None:
        """A delayed message goes alone: a broker refuses it in a batch."""
        levels = [0, 2, 2, 0]
        results = self.producer.send_batch(
            [Message("T", b"x", delay_level=level) for level in levels]
        )
        self.assertEqual([len(one.message_ids) for one in results], [1, 1, 1, 1])
        self.assertEqual(
            sorted(message.properties.get("DELAY", "") for message in self.stored()),
            ["", "", "2", "2"],
        )

    def test_refused(self) -> None:
        """A batch has one topic, which is no retry topic."""
        with self.assertRaises(MessageIllegal):
            self.producer.send_batch([Message("T", b"x"), Message("U", b"x")])
        with self.assertRaises(MessageIllegal):
            self.producer.send_batch([Message("%RETRY%g", b"x")] * 2)
        self.assertEqual(self.producer.send_batch([]), [])

    def test_givenQueue(self) -> None:
        """All requests go to the queue that is given."""
        queue = MessageQueue("T", "b2", 1)
        results = self.producer.send_batch([Message("T", b"x")] * 3, queue)
        self.assertEqual([one.queue for one in results], [queue])
