"""Reading queues."""

from __future__ import annotations

import pickle

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.puller import (
    FOUND,
    NOTHING_MATCHED,
    NOTHING_NEW,
    OFFSET_MOVED,
    Puller,
    messages,
)
from rocketbroker.blocking.routes import MessageQueue
from rocketbroker.blocking.settings import Settings
from rocketbroker.errors import (
    ConnectionLost,
    NoPermission,
    PullOffsetMoved,
    RemoteProtocolError,
    RequestTimeout,
)
from rocketbroker.records import batches, compression, sysflags
from rocketbroker.records.malformed import Malformed
from rocketbroker.testing.scripted import answer
from rocketbroker.wire.command import Command
from tests.blocking.cluster import Fault, MemoryCluster, hang_up, silent
from tests.examples import examples
from tests.records.samples import VECTOR, example

QUEUE = MessageQueue("T", "b1", 0)


class PullerTestCase(SynchronousTestCase):
    """With a queue of 100 messages, every third with tag a."""

    def setUp(self) -> None:
        self.cluster = MemoryCluster()
        self.client = self.cluster.client
        self.broker = self.cluster.brokers["b1"]
        self.broker.first["T", 0] = 50
        for number in range(100):
            own = b"TAGS\x01a\x02" if number % 3 == 0 else b""
            self.broker.put("T", 0, b"%d" % number, properties=own)

    def offsets(self, puller: Puller, start: int, until: int) -> list[int]:
        """The offsets of what is read."""
        return [
            message.queue_offset
            for chunk in puller.read(QUEUE, start, until)
            for message in messages(chunk.data)
        ]


class PullTests(PullerTestCase):
    """One pull."""

    def test_found(self) -> None:
        """It brings messages and says where to go on."""
        pulled = Puller(self.client).pull(QUEUE, 60, 5)
        self.assertEqual(pulled[:4], (FOUND, 65, 50, 150))
        found = [message.queue_offset for message in messages(pulled.data)]
        self.assertEqual(found, [60, 61, 62, 63, 64])

    def test_statuses(self) -> None:
        """What is not found has a reason."""
        puller = Puller(self.client)
        self.assertEqual(puller.pull(QUEUE, 150)[:2], (NOTHING_NEW, 150))
        self.assertEqual(puller.pull(QUEUE, 7)[:2], (OFFSET_MOVED, 50))
        self.assertEqual(puller.pull(QUEUE, 200)[:2], (OFFSET_MOVED, 150))
        filtered = Puller(self.client, expression="zz")
        self.assertEqual(filtered.pull(QUEUE, 60)[:2], (NOTHING_MATCHED, 150))

    def test_refused(self) -> None:
        """A refusal is an error."""
        self.broker.faults = [lambda command: answer(16, remark="no")]
        self.assertRaises(NoPermission, Puller(self.client).pull, QUEUE, 60)

    def test_header(self) -> None:
        """The subscription travels along; nothing is committed or waited for."""
        Puller(self.client, "g", "a", max_messages=7, max_bytes=9).pull(QUEUE, 60)
        ext = self.cluster.machine.requests[-1][1].ext
        self.assertEqual(
            ext,
            {
                "consumerGroup": "g",
                "topic": "T",
                "queueId": "0",
                "queueOffset": "60",
                "maxMsgNums": "7",
                "sysFlag": "4",
                "commitOffset": "0",
                "suspendTimeoutMillis": "0",
                "subscription": "a",
                "subVersion": "0",
                "expressionType": "TAG",
                "maxMsgBytes": "9",
                "lo": "false",
            },
        )

    def test_suspend(self) -> None:
        """A broker that may wait gets that much more time to answer."""
        self.broker.faults = [silent]
        before = self.cluster.machine.now
        with self.assertRaises(RequestTimeout):
            Puller(self.client).pull(QUEUE, 150, suspend=5.0)
        ext = self.cluster.machine.requests[-1][1].ext or {}
        self.assertEqual((ext["sysFlag"], ext["suspendTimeoutMillis"]), ("6", "5000"))
        self.assertEqual(self.cluster.machine.now, before + 6.0)

    def test_travels(self) -> None:
        """A puller can be pickled."""
        puller = Puller(Client(Settings("a:1")), "g", "a", 7, 9, 2)
        again = pickle.loads(pickle.dumps(puller))
        self.assertEqual(again.client.settings, puller.client.settings)


class ReadTests(PullerTestCase):
    """Ranges."""

    @examples()
    @given(
        st.integers(50, 150),
        st.integers(50, 150),
        st.integers(1, 40),
        st.integers(1, 200),
        st.integers(1, 6),
    )
    def test_exact(
        self, start: int, until: int, gives: int, asks: int, in_flight: int
    ) -> None:
        """Whatever is asked and given at once: each message once, in order."""
        self.broker.most = gives
        puller = Puller(self.client, max_messages=asks, in_flight=in_flight)
        self.assertEqual(self.offsets(puller, start, until), list(range(start, until)))

    def test_chunks(self) -> None:
        """Chunks adjoin and say how many messages they hold."""
        self.broker.most = 7
        at = 55
        for chunk in Puller(self.client, max_messages=16).read(QUEUE, 55, 130):
            self.assertEqual(chunk.start, at)
            at = chunk.until
            self.assertEqual(len(list(messages(chunk.data))), at - chunk.start)
        self.assertEqual(at, 130)

    def test_learns(self) -> None:
        """What is given at once is soon asked for: no pull comes back with less."""
        self.broker.most = 10
        puller = Puller(self.client, max_messages=64)
        self.offsets(puller, 50, 150)
        self.assertLessEqual(puller.pulls, 18)

    def test_grows(self) -> None:
        """When all comes whole for a while, more is asked for again."""
        self.broker.most = 1
        puller = Puller(self.client, max_messages=64, in_flight=1)
        self.offsets(puller, 50, 60)
        self.broker.most = 1000
        first = puller.pulls
        self.offsets(puller, 50, 150)
        self.assertLess(puller.pulls - first, 90)

    def test_inFlight(self) -> None:
        """Several pulls are under way before the first answer is taken."""
        reading = Puller(self.client, max_messages=10).read(QUEUE, 50, 150)
        next(reading)
        self.assertEqual(self.cluster.machine.codes("b1:10911"), [11] * 4)
        reading.close()
        connection = self.client.connections.to("b1:10911")
        self.assertEqual(connection.under_way, 0)

    def test_recovers(self) -> None:
        """Lost connections and busy brokers cost time, and no message."""

        def busy(command: Command) -> Command:
            return answer(2)

        usual: Fault = lambda command: None  # noqa: E731
        for in_flight in (1, 2, 3, 4):
            self.broker.faults = [usual, busy, usual, hang_up, usual, usual, silent]
            puller = Puller(self.client, max_messages=8, in_flight=in_flight)
            self.assertEqual(self.offsets(puller, 50, 150), list(range(50, 150)))
            self.assertGreaterEqual(puller.retries, 2)

    def test_givesUp(self) -> None:
        """A broker that is gone is told after as many tries as allowed."""
        self.broker.faults = [hang_up] * 99
        with self.assertRaises(ConnectionLost):
            self.offsets(Puller(self.client, in_flight=1), 50, 150)
        self.assertEqual(len(self.broker.faults), 96)

    def test_final(self) -> None:
        """What another try cannot cure is told at once."""
        self.broker.faults = [lambda command: answer(16)]
        with self.assertRaises(NoPermission):
            self.offsets(Puller(self.client), 50, 150)

    def test_tooOld(self) -> None:
        """Offsets that are not there any more are an error, not fewer messages."""
        with self.assertRaises(PullOffsetMoved) as caught:
            self.offsets(Puller(self.client), 40, 60)
        self.assertIn("holds 50 to 150, 40 is wanted", str(caught.exception))

    def test_tooNew(self) -> None:
        """Offsets that are not there yet are waited for a little, and then an error."""
        puller = Puller(self.client)
        before = self.cluster.machine.now
        with self.assertRaises(PullOffsetMoved) as caught:
            self.offsets(puller, 140, 160)
        self.assertIn("150 is wanted", str(caught.exception))
        self.assertAlmostEqual(self.cluster.machine.now, before + 0.4)

    def test_passedOver(self) -> None:
        """If the broker passes over a message, what it gives behind is not doubled."""
        self.broker.damaged = {("T", 0, 53), ("T", 0, 60)}
        whole = [n for n in range(50, 150) if n not in (53, 60)]
        for in_flight in (1, 4):
            puller = Puller(self.client, max_messages=4, in_flight=in_flight)
            self.assertEqual(self.offsets(puller, 50, 150), whole)

    def test_filtered(self) -> None:
        """With an expression only what matches comes, from the same range."""
        for gives in (1, 2, 32):
            self.broker.most = gives
            puller = Puller(self.client, expression="a")
            found = self.offsets(puller, 52, 101)
            self.assertEqual(found, list(range(53, 101, 3)))

    def test_filteredAndTrouble(self) -> None:
        """The same when brokers fail; offsets that are gone are an error."""
        self.broker.faults = [hang_up, lambda command: answer(2)]
        puller = Puller(self.client, expression="a")
        self.assertEqual(self.offsets(puller, 52, 60), [53, 56, 59])
        self.assertEqual(puller.retries, 2)
        with self.assertRaises(PullOffsetMoved):
            self.offsets(puller, 40, 60)
        with self.assertRaises(PullOffsetMoved):
            self.offsets(puller, 140, 160)

    def test_more(self) -> None:
        """A broker that gives more than it was asked for is not believed."""

        def generous(command: Command) -> Command:
            fields = {
                "suggestWhichBrokerId": "0",
                "nextBeginOffset": "99999",
                "minOffset": "0",
                "maxOffset": "99999",
            }
            return answer(ext=fields, body=b"junk")

        self.broker.faults = [generous]
        with self.assertRaises(RemoteProtocolError):
            self.offsets(Puller(self.client), 50, 60)
        self.broker.faults = [generous]
        with self.assertRaises(RemoteProtocolError):
            self.offsets(Puller(self.client, expression="a"), 50, 60)


class MessagesTests(SynchronousTestCase):
    """What was pulled becomes messages."""

    def test_plain(self) -> None:
        """Records, one after the other."""
        found = list(messages(VECTOR * 3))
        self.assertEqual([message.body for message in found], [b"hi"] * 3)
        self.assertEqual(list(messages(b"")), [])

    def test_compressed(self) -> None:
        """Bodies are made large unless they are wanted as they are."""
        small = compression.compress(b"hello", compression.ZSTD)
        data = example(body=small, sys_flag=0x201)
        self.assertEqual([m.body for m in messages(data)], [b"hello"])
        self.assertEqual([m.body for m in messages(data, False)], [small])
        with self.assertRaises(Malformed):
            list(messages(data, most=4))

    def test_innerBatch(self) -> None:
        """Inner batches come apart."""
        body = batches.encode([(0, b"a", b""), (0, b"b", b"")])
        flag = sysflags.NEED_UNWRAP | sysflags.INNER_BATCH
        data = example(body=body, sys_flag=flag) + VECTOR
        self.assertEqual([m.body for m in messages(data)], [b"a", b"b", b"hi"])

    def test_torn(self) -> None:
        """What is no message is told after those before it."""
        found = messages(VECTOR + b"junk")
        self.assertEqual(next(found).body, b"hi")
        self.assertRaises(Malformed, next, found)
