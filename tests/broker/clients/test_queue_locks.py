"""Whose turn it is in a queue."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.clients import queue_locks
from rocketbroker.broker.clients.queue_locks import LIFE_SECONDS, MAX_TEXT, QueueLocks
from rocketbroker.broker.long_requests import LongRequests
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.store import StoreOptions
from rocketbroker.errors import InvalidParameter, SystemFailure
from rocketbroker.remoting.cooperative_tasks import Slices
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.wire.bodies.queues import LockBatchBody, MessageQueue
from rocketbroker.wire.command import Command
from rocketbroker.wire.fastjson import dumps, loads
from tests.broker.rig import answered, settings_of

#: As the official client writes it.
CAPTURED = (
    b'{"clientId":"c","consumerGroup":"g","mqSet":[{"brokerName":"b","queueId":0,'
    b'"topic":"T"}],"onlyThisBroker":false}'
)


class QueueLockTests(SynchronousTestCase):
    """Requests 41 and 42."""

    def setUp(self) -> None:
        """A broker without any lock."""
        self.make()

    def make(self, strict: bool = False, replicas: int = 1) -> None:
        """A broker with these settings."""
        self.clock = Clock()
        slices = Slices(self.clock)
        self.locks = QueueLocks(
            self.clock.seconds,
            slices,
            LongRequests(slices),
            settings_of(
                StoreOptions(total_replicas=replicas),
                BrokerOptions(lock_in_strict_mode=strict),
            ),
        )
        self.table = ResponderTable()
        self.locks.register(self.table)
        self.connection = RecordedConnection()

    def ask(self, code: int, body: bytes) -> Command:
        """A request, and its answer."""
        responder = self.table.responders[code]
        return answered(responder(self.connection, Command(code, None, body)))

    def lock(
        self,
        client: str,
        *numbers: int,
        group: str = "G",
        topic: str = "T",
        only: bool = False,
        code: int = 41,
    ) -> list[int]:
        """The numbers of the queues that a client is told it has."""
        body = LockBatchBody(
            client_id=client,
            consumer_group=group,
            mq_set=[MessageQueue(topic, "b", number) for number in numbers],
            only_this_broker=only,
        )
        answer = self.ask(code, dumps(body))
        self.assertEqual(answer.code, 0)
        if code == 42:
            self.assertEqual(answer.body, b"")
            return []
        value = loads(answer.body)
        assert isinstance(value, dict)
        queues = [MessageQueue.from_json(queue) for queue in value["lockOKMQSet"]]
        self.assertEqual({queue.topic for queue in queues} - {topic}, set())
        return [queue.queue_id for queue in queues]

    def unlock(self, client: str, *numbers: int) -> None:
        """A client gives queues back."""
        self.lock(client, *numbers, code=42)

    def test_captured(self) -> None:
        """A client's request gets an answer that it can read."""
        answer = self.ask(41, CAPTURED)
        self.assertEqual(
            answer.body,
            b'{"lockOKMQSet":[{"brokerName":"b","queueId":0,"topic":"T"}]}',
        )
        self.assertEqual(self.ask(42, CAPTURED).body, b"")
        self.assertEqual(self.lock("other", 0, group="g"), [0])

    def test_owner(self) -> None:
        """A queue is of one client until it gives it back; the owner may ask again."""
        self.assertEqual(self.lock("a", 0, 1), [0, 1])
        self.assertEqual(self.lock("b", 1, 2), [2])
        self.assertEqual(self.lock("a", 0, 1, 2), [0, 1])
        self.unlock("a", 1)
        self.assertEqual(self.lock("b", 0, 1), [1])

    def test_foreignUnlock(self) -> None:
        """Nobody gives back what another one has, or what nobody has."""
        self.lock("a", 0)
        self.unlock("b", 0, 5)
        self.assertEqual(self.lock("b", 0), [])

    def test_groupsAndTopics(self) -> None:
        """Each group, and each topic, has locks of its own."""
        self.assertEqual(self.lock("a", 0), [0])
        self.assertEqual(self.lock("b", 0, group="H"), [0])
        self.assertEqual(self.lock("b", 0, topic="U"), [0])

    def test_expiry(self) -> None:
        """A lock lives for 60 seconds to the end of the last, and no longer."""
        self.lock("a", 0)
        self.clock.advance(60)
        self.assertEqual(self.lock("b", 0), [])
        self.clock.advance(0.001)
        self.assertEqual(self.lock("b", 0), [0])
        self.assertEqual(self.lock("a", 0), [])

    def test_renewed(self) -> None:
        """Each request of the owner lets the lock live anew; others' do not."""
        self.lock("a", 0)
        self.clock.advance(LIFE_SECONDS)
        self.lock("a", 0)
        self.clock.advance(LIFE_SECONDS)
        self.assertEqual(self.lock("b", 0), [])
        self.clock.advance(0.001)
        self.assertEqual(self.lock("b", 0), [0])

    def test_disconnected(self) -> None:
        """A client that goes without a word keeps its queues until they expire; one
        that is there again under the same id has them at once."""
        self.lock("a", 0)
        self.connection.close()
        self.connection = RecordedConnection(port=1)
        self.assertEqual(self.lock("b", 0), [])
        self.assertEqual(self.lock("a", 0), [0])

    def test_sameIdTwice(self) -> None:
        """Two clients under one id share their locks."""
        self.lock("a", 0)
        self.connection = RecordedConnection(port=1)
        self.assertEqual(self.lock("a", 0), [0])
        self.unlock("a", 0)
        self.assertEqual(self.lock("b", 0), [0])

    def test_twiceInOneRequest(self) -> None:
        """A queue that is named twice is one."""
        self.assertEqual(self.lock("a", 0, 0), [0])
        self.assertEqual(self.locks.count, 1)
        self.unlock("a", 0, 0)
        self.assertEqual(self.locks.count, 0)

    def test_scan(self) -> None:
        """Expired locks are forgotten, the others stay."""
        self.lock("a", 0, 1)
        self.clock.advance(1)
        self.lock("a", 1)
        self.clock.advance(LIFE_SECONDS)
        self.locks.scan()
        self.assertEqual(self.locks.count, 1)
        self.assertEqual(self.lock("b", 0, 1), [0])
        self.unlock("b", 0)
        self.clock.advance(1)
        self.locks.scan()
        self.assertEqual(self.locks.count, 0)

    def test_isLocked(self) -> None:
        """A group consumes in order while one of its locks lives."""
        self.assertFalse(self.locks.is_locked("G"))
        self.lock("a", 0)
        self.clock.advance(LIFE_SECONDS)
        self.assertTrue(self.locks.is_locked("G"))
        self.assertFalse(self.locks.is_locked("H"))
        self.clock.advance(0.001)
        self.assertFalse(self.locks.is_locked("G"))

    def test_full(self) -> None:
        """With as many locks as may be, those there are go on, and new ones wait."""
        self.lock("a", 0)
        self.locks.count = queue_locks.MAX_LOCKS - 1
        self.assertEqual(self.lock("a", 0, 1, 2), [0, 1])
        self.assertEqual(self.lock("b", 0, group="H"), [])
        self.unlock("a", 1)
        self.assertEqual(self.lock("b", 0, 1, group="H"), [0])

    def test_strict(self) -> None:
        """Strict mode needs most of the replicas' votes, and there is one."""
        for replicas, granted in ((1, [0]), (2, []), (3, [])):
            self.make(strict=True, replicas=replicas)
            self.assertEqual(self.lock("a", 0), granted)
        self.assertEqual(self.lock("b", 1, only=True), [1])
        self.assertEqual(self.lock("b", 0, only=True), [])
        self.unlock("a", 0)
        self.assertEqual(self.lock("b", 0, only=True), [0])

    def test_notStrict(self) -> None:
        """Otherwise this broker decides, however many replicas there are."""
        self.make(strict=False, replicas=3)
        self.assertEqual(self.lock("a", 0), [0])

    def test_malformed(self) -> None:
        """A body of another form is refused with a reason."""
        for body in (b"", b"[]", b"{", b'{"mqSet":7}', b'{"mqSet":[7]}'):
            with self.assertRaises(SystemFailure):
                self.ask(41, body)
            with self.assertRaises(SystemFailure):
                self.ask(42, body)
        self.assertEqual(loads(self.ask(41, b"{}").body), {"lockOKMQSet": []})

    def test_longNames(self) -> None:
        """Names that nobody has are not kept."""
        self.assertEqual(self.lock("a" * MAX_TEXT, 0), [0])
        long = "x" * (MAX_TEXT + 1)
        with self.assertRaises(InvalidParameter):
            self.lock(long, 1)
        with self.assertRaises(InvalidParameter):
            self.lock("a", 1, group=long)
        with self.assertRaises(InvalidParameter):
            self.lock("a", 1, topic=long)
        self.assertEqual(self.locks.count, 1)
