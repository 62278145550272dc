"""Topics made, changed, listed and deleted on request."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any, TypeVar

import attrs
from twisted.internet.defer import Deferred, succeed
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.admin.topic_admin import STEP_DELETED, TopicAdmin
from rocketbroker.broker.background_work import InThread
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.errors import (
    BrokerError,
    InvalidParameter,
    SystemFailure,
    TopicNotExist,
)
from rocketbroker.records.batches import encode
from rocketbroker.records.names import MAX_QUEUES
from rocketbroker.store.consumequeue.queue import Queue
from rocketbroker.store.interfaces import Draft, IQueue, IStore
from rocketbroker.testing.threads import Threads, at_once
from rocketbroker.wire.bodies.queues import MessageQueue
from rocketbroker.wire.bodies.topics import TopicConfig
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.fastjson import dumps, loads
from tests.broker.rig import HOST, Rig, answered, logged, send_ext, settings_of

T = TypeVar("T")


class Watched:
    """A store that notes in which thread its handles are made.

    @ivar made: for each handle, whether it was in another thread.
    """

    def __init__(self, store: IStore) -> None:
        self.made: list[bool] = []
        self._store = store
        self._in_thread = False

    def in_thread(self, function: Callable[[], T], /) -> Deferred[T]:
        """Run C{function} as if in a thread."""
        self._in_thread = True
        try:
            return succeed(function())
        finally:
            self._in_thread = False

    def queue(self, topic: str, queue_id: int) -> IQueue:
        """See L{IStore.queue}."""
        self.made.append(self._in_thread)
        return self._store.queue(topic, queue_id)

    def store_time(self, queue: IQueue, offset: int) -> int:
        """See L{IStore.store_time}."""
        return self._store.store_time(queue, offset)


class TopicAdminTests(SynchronousTestCase):
    """Requests 17, 18, 21, 202, 215, 305 and 351."""

    def setUp(self) -> None:
        """A broker that tells name servers at once."""
        self.make()

    def make(
        self, store: Any = None, in_thread: InThread = at_once, **options: Any
    ) -> None:
        """A broker with these settings."""
        self.rig = Rig({})
        self.addCleanup(self.rig.close)
        rig = self.rig
        self.announced: Deferred[None] = succeed(None)
        broker = rig.broker
        context = attrs.evolve(
            broker.context,
            settings=settings_of(
                broker=BrokerOptions(broker_name="broker-a", **options)
            ),
            store=store or rig.store,
            in_thread=in_thread,
        )
        self.slices = context.slices
        admin = TopicAdmin(
            context,
            broker.metadata,
            {"T": 2.5}.__getitem__,
            broker.timer.service.counts.forget,
            rig.batcher.flush,
            self.wait,
            broker.figures.creation_times,
        )
        admin.register(rig.table)

    def wait(self, max_seconds: float) -> Deferred[None]:
        """Wait for name servers."""
        self.waited = max_seconds
        return self.announced

    def fields(self, topic: str, **changes: str) -> dict[str, str]:
        """The fields of request 17, as the Java tool sends them."""
        return {
            "topic": topic,
            "defaultTopic": "TBW102",
            "readQueueNums": "4",
            "writeQueueNums": "4",
            "perm": "6",
            "topicFilterType": "SINGLE_TAG",
            "topicSysFlag": "0",
            "order": "false",
            **changes,
        }

    def create(self, topic: str, **changes: str) -> TopicConfig:
        """Make a topic; what it is then."""
        answer = self.rig.ask(17, self.fields(topic, **changes))
        self.assertEqual(answer.code, 0)
        config = self.rig.topics.config(topic)
        assert config is not None
        return config

    def refused(self, error: type[BrokerError], topic: str, **changes: str) -> str:
        """Why a topic is not made."""
        with self.assertRaises(error) as caught:
            self.rig.ask(17, self.fields(topic, **changes))
        return str(caught.exception.remark)

    def test_create(self) -> None:
        """A topic is what the request says."""
        config = self.create(
            "T",
            writeQueueNums="3",
            perm="4",
            topicFilterType="MULTI_TAG",
            topicSysFlag="2",
            order="true",
            attributes="+message.type=FIFO",
        )
        self.assertEqual(
            config,
            TopicConfig(
                topic_name="T",
                read_queue_nums=4,
                write_queue_nums=3,
                perm=4,
                topic_filter_type="MULTI_TAG",
                topic_sys_flag=2,
                order=True,
                attributes={"message.type": "FIFO"},
            ),
        )

    def test_logged(self) -> None:
        """Each change is one line of the log, with the address it came from."""
        (line,) = logged(lambda: self.create("T", perm="4"))
        self.assertIn("10.0.0.2:4711 created topic 'T': ", line)
        self.assertIn("perm=4", line)
        (line,) = logged(lambda: self.create("T", perm="6"))
        self.assertEqual(line, "10.0.0.2:4711 changed topic 'T': perm=6 (was 4)")
        self.assertEqual(logged(lambda: self.create("T", perm="6")), [])
        (line,) = logged(lambda: self.rig.ask(215, {"topic": "T"}))
        self.assertEqual(line, "10.0.0.2:4711 deleted topic 'T'")
        self.assertEqual(logged(lambda: self.rig.ask(215, {"topic": "T"})), [])

    def test_change(self) -> None:
        """A topic that is there is changed, and keeps its attributes."""
        self.create("T", attributes="+message.type=FIFO")
        config = self.create("T", readQueueNums="9")
        self.assertEqual(config.read_queue_nums, 9)
        self.assertEqual(config.attributes, {"message.type": "FIFO"})

    def test_unchanged(self) -> None:
        """A topic that is as asked already is left alone."""
        self.create("T")
        generation = self.rig.topics.generation
        self.create("T")
        self.assertEqual(self.rig.topics.generation, generation)

    def test_refused(self) -> None:
        """Names, system topics, numbers, permissions, types that cannot be."""
        bad = InvalidParameter
        self.assertIn("blank", self.refused(bad, " "))
        self.assertIn("illegal characters", self.refused(bad, "a.b"))
        self.assertIn("longer", self.refused(bad, "x" * 128))
        self.assertIn("system topic", self.refused(bad, "TBW102"))
        self.assertIn("queues", self.refused(bad, "T", readQueueNums="-1"))
        most = str(MAX_QUEUES + 1)
        self.assertIn("queues", self.refused(bad, "T", writeQueueNums=most))
        self.assertIn("permission", self.refused(bad, "T", perm="8"))
        mixed = "+message.type=MIXED"
        self.assertIn("MIXED", self.refused(bad, "T", attributes=mixed))
        wrong = "message.type"
        self.assertIn("format", self.refused(SystemFailure, "T", attributes=wrong))
        self.refused(SystemFailure, "T", topicFilterType="X")
        for key in ("perm", "readQueueNums", "writeQueueNums"):
            # It would be a topic without permissions, or without queues.
            remark = self.refused(SystemFailure, "T", **{key: "x"})
            self.assertIn(f"the field {key} is missing", remark)
        self.assertIsNone(self.rig.topics.config("T"))

    def test_allowed(self) -> None:
        """Settings allow system topics and mixed messages."""
        self.make(
            validate_system_topic_when_update_topic=False,
            enable_mixed_message_type=True,
        )
        self.assertEqual(self.create("TBW102").read_queue_nums, 4)
        self.create("T", attributes="+message.type=MIXED")

    def test_announced(self) -> None:
        """The answer waits for the name servers, but no longer than three seconds."""
        self.announced = Deferred()
        answer = self.rig.begin(17, self.fields("T"))
        assert isinstance(answer, Deferred)
        self.assertNoResult(answer)
        self.assertEqual(self.waited, 3.0)
        self.announced.callback(None)
        self.successResultOf(answer)

    def test_list(self) -> None:
        """Several topics are made by one request, or none of them."""
        good, other = {"topicName": "A", "perm": 4}, {"topicName": "B"}
        wrong = {"topicName": "a.b"}
        with self.assertRaises(InvalidParameter):
            self.rig.ask(18, {}, dumps({"topicConfigList": [good, wrong]}))
        self.assertIsNone(self.rig.topics.config("A"))
        self.rig.ask(18, {}, dumps({"topicConfigList": [good]}))
        self.rig.ask(18, {}, dumps({"topicConfigList": [good, other]}))
        self.assertIsNotNone(self.rig.topics.config("B"))
        generation = self.rig.topics.generation
        self.rig.ask(18, {}, dumps({"topicConfigList": [good, other]}))
        self.assertEqual(self.rig.topics.generation, generation)
        with self.assertRaises(SystemFailure):
            self.rig.ask(18, {}, b"[]")

    def test_delete(self) -> None:
        """A topic goes with its messages, its offsets and its pop retry topics."""
        self.create("T")
        self.create("%RETRY%G_T")
        self.rig.append()
        self.rig.scheduler.dispatch()
        self.rig.offsets.commit("G", "T", 0, 1)
        self.assertEqual(self.rig.ask(215, {"topic": "T"}).code, 0)
        self.assertIsNone(self.rig.topics.config("T"))
        self.assertIsNone(self.rig.topics.config("%RETRY%G_T"))
        self.assertEqual(self.rig.offsets.groups_of("T"), [])
        self.assertEqual(self.rig.store.queue("T", 0).max_offset, 0)

    def test_deletedWithManyGroups(self) -> None:
        """Thousands of pop retry topics go with a topic, some at each step."""
        self.create("T")
        groups = [f"G{number}" for number in range(2 * STEP_DELETED)]
        for group in groups:
            self.rig.topics.ensure(f"%RETRY%{group}_T", 1)
            self.rig.offsets.commit(group, "T", 0, 1)
            self.rig.offsets.commit(group, f"%RETRY%{group}_T", 0, 1)
        self.rig.offsets.commit("G0", "U", 0, 1)
        deleting = self.rig.begin(215, {"topic": "T"})
        self.assertIsNotNone(self.rig.topics.config("T"))
        self.rig.clock.advance(0)
        self.assertEqual(answered(deleting).code, 0)
        self.assertEqual(self.slices.steps, 4)
        self.assertEqual(self.rig.offsets.keys(), ["U@G0"])
        left = {"T", *(f"%RETRY%{group}_T" for group in groups)}
        self.assertEqual(left.intersection(self.rig.topics.names()), set())

    def test_sendInTheTurnOfADeletion(self) -> None:
        """A batch that was sent in the same turn before its topic is deleted goes with
        it, and does not make batch queues of those of the next topic."""
        self.rig.topic("T", 1, attributes={"queue.type": "BatchCQ"})
        body = encode([(0, b"a", b""), (0, b"b", b"")])
        ext = {**send_ext(properties="UNIQ_KEY\x01U\x02"), "m": "true"}
        sent = self.rig.begin(RequestCode.SEND_BATCH_MESSAGE, ext, body)
        deleted = self.rig.begin(215, {"topic": "T"})
        self.assertEqual((answered(sent).code, answered(deleted).code), (0, 0))
        self.rig.scheduler.dispatch()
        self.create("T")
        queue = self.rig.store.queue("T", 0)
        self.assertEqual(queue.max_offset, 0)
        assert type(queue) is Queue
        self.assertIs(queue.batch, None)

    def test_deletedAndMadeAgain(self) -> None:
        """A message that is sent to a topic of the same name before the files of the
        deleted one are removed is kept."""
        threads = Threads()
        self.make(in_thread=threads)
        self.create("T")
        self.rig.append()
        self.rig.scheduler.dispatch()
        deleting = self.rig.begin(215, {"topic": "T"})
        self.create("T")
        self.rig.append()
        threads.run()
        assert isinstance(deleting, Deferred)
        self.successResultOf(deleting)
        self.rig.scheduler.dispatch()
        queue = self.rig.store.queue("T", 0)
        self.assertEqual((queue.min_offset, queue.max_offset), (0, 1))
        self.assertEqual(queue.next_offset, 1)

    def test_cleanUnused(self) -> None:
        """Queues of topics that are gone go, with the offsets in them; others stay."""
        rig = self.rig
        names = ["T", "gone", "SCHEDULE_TOPIC_XXXX", "%LMQ%x"]
        drafts = [
            Draft(rig.store.queue(name, 0), b"x", b"", 0, 0, 0, HOST, 0, 0, None)
            for name in names
        ]
        self.create("T")
        rig.store.append(drafts)
        rig.scheduler.dispatch()
        rig.store.queue("asked", 0)
        for name in names:
            rig.offsets.commit("G", name, 0, 1)
        begun = rig.begin(316, {})
        (line,) = logged(lambda: rig.clock.advance(0))
        self.assertEqual(answered(begun).code, 0)
        self.assertEqual(
            line, "10.0.0.2:4711 deleted the queues of topic 'gone', which is gone"
        )
        left = [name for name in names if rig.store.queue(name, 0).max_offset]
        self.assertEqual(left, [name for name in names if name != "gone"])
        self.assertEqual(set(rig.offsets.topics_of("G")), set(left))
        self.assertNotIn("gone", rig.disk.list("/store/consumequeue"))

    def test_notKept(self) -> None:
        """A change that cannot be written is an error, and again when asking for the
        same, until it is written."""
        self.rig.disk.fail("pwrite", errno.ENOSPC, times=2)
        for _ in range(2):
            with self.assertRaises(SystemFailure) as caught:
                self.create("T")
            self.assertIn("No space left on device", str(caught.exception.remark))
        with self.assertRaises(SystemFailure):
            self.rig.ask(215, {"topic": "T"})
        self.rig.disk.heal()
        self.create("T")

    def test_deleteUnknown(self) -> None:
        """Deleting what is not there succeeds."""
        self.assertEqual(self.rig.ask(215, {"topic": "T"}).code, 0)

    def test_deleteRefused(self) -> None:
        """System topics stay, and a name must be given."""
        for name in ("", "TBW102"):
            with self.assertRaises(InvalidParameter):
                self.rig.ask(215, {"topic": name})

    def test_all(self) -> None:
        """All topics, with their version, in RocketMQ's shape."""
        self.create("T")
        answer = self.rig.ask(21, {})
        value = loads(answer.body)
        assert isinstance(value, dict)
        self.assertIn("T", value["topicConfigTable"])
        self.assertEqual(value["dataVersion"], self.rig.topics.version.to_json())
        self.assertEqual(value["topicQueueMappingDetailMap"], {})
        self.assertEqual(answer.ext, {})

    def test_one(self) -> None:
        """One topic; an error for one that is not there."""
        config = self.create("T")
        answer = self.rig.ask(351, {"topic": "T"})
        self.assertEqual(loads(answer.body), config.to_json())
        with self.assertRaises(TopicNotExist):
            self.rig.ask(351, {"topic": "U"})

    def test_system(self) -> None:
        """The names of the system's topics."""
        value = loads(self.rig.ask(305, {}).body)
        self.assertEqual(value, {"topicList": self.rig.topics.system_names()})

    def test_statistics(self) -> None:
        """The bounds of each queue, when it was last written to, and how often."""
        self.create("T", readQueueNums="2", writeQueueNums="1")
        self.rig.clock.advance(5)
        self.rig.append()
        self.rig.scheduler.dispatch()
        value = loads(self.rig.ask(202, {"topic": "T"}).body)
        assert isinstance(value, dict)
        self.assertEqual(value["topicPutTps"], 2.5)
        table = {
            MessageQueue.from_json(key): row
            for key, row in value["offsetTable"].items()
        }
        self.assertEqual(
            table,
            {
                MessageQueue("T", "broker-a", 0): {
                    "lastUpdateTimestamp": self.rig.wall_ms(),
                    "maxOffset": 1,
                    "minOffset": 0,
                },
                MessageQueue("T", "broker-a", 1): {
                    "lastUpdateTimestamp": 0,
                    "maxOffset": 0,
                    "minOffset": 0,
                },
            },
        )
        with self.assertRaises(TopicNotExist):
            self.rig.ask(202, {"topic": "U"})

    def test_statisticsHandles(self) -> None:
        """In a thread no handle of a queue is made: a queue might get two of them."""
        watched = Watched(self.rig.store)
        self.make(watched, watched.in_thread)
        self.create("T")
        self.assertEqual(self.rig.ask(202, {"topic": "T"}).code, 0)
        self.assertEqual(watched.made, [False] * 4)
