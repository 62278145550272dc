"""The data path of a broker over a store in memory, stepped by a test."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from rocketbroker.broker.admin.message_queries import MessageQueries
from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.clients.consumers import ConsumerRegistry
from rocketbroker.broker.clients.producers import ProducerRegistry
from rocketbroker.broker.clients.sql_filters import Filters
from rocketbroker.broker.json_table import JsonTable
from rocketbroker.broker.messages.delay_messages import DelayMessages
from rocketbroker.broker.messages.lmq import Lmq
from rocketbroker.broker.metadata.groups import GroupTable
from rocketbroker.broker.metadata.offsets import OffsetTable
from rocketbroker.broker.metadata.topics import TopicTable
from rocketbroker.broker.pull.broadcast_offsets import BroadcastOffsets
from rocketbroker.broker.pull.denied_pulls import DeniedPulls
from rocketbroker.broker.pull.long_polling import LongPolling
from rocketbroker.broker.pull.pull import Pulling
from rocketbroker.broker.pull.pull_checks import PullChecks
from rocketbroker.broker.schedule.delay_offsets import DelayOffsets
from rocketbroker.broker.schedule.schedule_service import ScheduleService
from rocketbroker.broker.send.append_batcher import AppendBatcher
from rocketbroker.broker.send.dead_letters import DeadLetters
from rocketbroker.broker.send.send import Sending
from rocketbroker.broker.send.send_back import SendBack
from rocketbroker.broker.storage.group_commit import GroupCommit
from rocketbroker.broker.storage.store_scheduler import StoreScheduler
from rocketbroker.broker.transaction.service import Transactions
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.store import StoreOptions
from rocketbroker.errors import StoreError
from rocketbroker.records import record
from rocketbroker.records.ids import UniqueKeys
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.store.interfaces import PUT_OK, Draft
from rocketbroker.store.message_store import Store
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.threads import Threads, at_once
from rocketbroker.wire.bodies.topics import TopicConfig
from rocketbroker.wire.command import JSON, Command
from rocketbroker.wire.frames import encode

HOST = bytes([10, 0, 0, 1, 0, 0, 0x2A, 0x9F])
HOST_TEXT = "0A00000100002A9F"

#: The time of day when a rig begins.
WALL_MS = 1_700_000_000_000

#: How many messages are looked for by a unique key.
MAX_UNIQUE = 2

UNIQUE = "7F000001000018B4AAC2000012345678"

SMALL = {
    "storePathRootDir": "/store",
    "mappedFileSizeCommitLog": "65536",
    "mappedFileSizeConsumeQueue": "2000",
    "maxHashSlotNum": "100",
    "maxIndexNum": "1000",
}


class Rig:
    """All parts of the data path, wired as the broker does it.

    Time moves when C{clock} is advanced, threads run when C{threads} is told to. Who
    changes C{start_ms} sets the clock. Groups in C{ordered} consume in order.
    """

    def __init__(
        self,
        settings: dict[str, str],
        threads: bool = False,
        disk: MemoryDisk | None = None,
        start_ms: int = WALL_MS,
    ) -> None:
        """
        @param settings: RocketMQ's keys.
        @param threads: whether what blocks waits for C{self.threads.run()}; if not, it
            is done at once.
        @param disk: what an earlier one has left.
        @param start_ms: the time of day.
        """
        self.start_ms = start_ms
        properties = {
            **SMALL,
            "brokerIP1": "10.0.0.1",
            "brokerName": "broker-a",
            "brokerClusterName": "cluster-a",
            **settings,
        }
        options = BrokerOptions.from_properties(properties)
        store_options = StoreOptions.from_properties(properties)
        self.clock = Clock()
        self.disk = disk or MemoryDisk()
        self.threads = Threads()
        in_thread = self.threads if threads else at_once
        self.store = Store(self.disk, store_options, self.wall_ms, HOST)
        light = store_options.enable_lmq
        self.topics = TopicTable(options, self.file("t"), self.wall_ms, light=light)
        self.store.know_topics(self.topics.is_batch)
        self.store.open()
        self.groups = GroupTable(options, self.file("g"), self.wall_ms, light)
        self.offsets = OffsetTable(options, self.file("o"), self.wall_ms)
        self.consumers = ConsumerRegistry(
            self.clock.seconds, lambda group, members: None
        )
        self.filters = Filters(options, self.file("f"), self.wall_ms)
        self.group_commit = GroupCommit(
            self.clock, self.store, store_options, in_thread
        )
        self.long_polling = LongPolling(self.clock, self.store, options)
        self.scheduler = StoreScheduler(
            self.clock,
            self.store,
            store_options,
            self.group_commit,
            self.long_polling.wake,
            in_thread,
        )
        most = store_options.max_message_size
        self.batcher = AppendBatcher(
            self.store,
            self.group_commit,
            options,
            most,
            self.scheduler.appended,
            self.clock.seconds,
        )
        delay_messages = DelayMessages(store_options.message_delay_level)
        self.lights = Lmq(self.store, store_options.enable_lmq)
        self._make_transactions(options, store_options, delay_messages, in_thread)
        self.ordered: set[str] = set()
        self._make_sending(delay_messages, options, most)
        self._make_send_back(delay_messages, options, in_thread)
        self._make_delaying(delay_messages, in_thread)
        self._make_pulling(options, in_thread)
        self._make_table(in_thread)
        self.connection = RecordedConnection(b"\x0a\0\0\2", 4711)

    def _make_table(self, in_thread: InThread) -> None:
        """Who answers what."""
        self.queries = MessageQueries(
            self.store, self.topics, self.scheduler.dispatch, in_thread, MAX_UNIQUE
        )
        self.table = ResponderTable()
        for part in (
            self.sending,
            self.send_back,
            self.transactions.ends,
            self.pulling,
            self.queries,
        ):
            part.register(self.table)

    def _make_pulling(self, options: BrokerOptions, in_thread: InThread) -> None:
        """The way out."""
        self.refusals = DeniedPulls()
        self.checks = PullChecks(
            self.store,
            self.topics,
            self.groups,
            self.consumers,
            self.filters,
            self.refusals,
            options,
        )
        self.broadcasts = BroadcastOffsets(
            self.store,
            self.topics,
            self.consumers,
            self.offsets,
            options,
            self.clock.seconds,
        )
        self.pulling = Pulling(
            self.store,
            self.checks,
            self.offsets,
            self.broadcasts,
            self.long_polling,
            options,
            self.scheduler.dispatch,
            in_thread,
            self.clock.seconds,
        )

    def _make_transactions(
        self,
        options: BrokerOptions,
        store_options: StoreOptions,
        delay_messages: DelayMessages,
        in_thread: InThread,
    ) -> None:
        """What half messages become."""
        self.producers = ProducerRegistry(self.clock.seconds)
        self.transactions = Transactions(
            self.clock,
            self.store,
            options,
            store_options,
            self.file("transactionMetrics"),
            self.offsets,
            self.topics,
            self.producers,
            delay_messages,
            self.lights,
            self.batcher,
            self.group_commit,
            self.scheduler,
            HOST,
            self.wall_ms,
            in_thread,
        )

    def _make_sending(
        self, delay_messages: DelayMessages, options: BrokerOptions, most: int
    ) -> None:
        """The way in."""
        self.dead_letters = DeadLetters(
            self.topics, self.groups, self.ordered.__contains__
        )
        self.sending = Sending(
            self.store,
            self.topics,
            self.groups,
            self.batcher,
            self.dead_letters,
            delay_messages,
            self.lights,
            options,
            most,
            HOST,
            UniqueKeys(b"\x0a\0\0\1", 1, 2, self.wall_ms),
            self.transactions.counts.prepared,
            self.wall_ms,
        )

    def _make_send_back(
        self, delay_messages: DelayMessages, options: BrokerOptions, in_thread: InThread
    ) -> None:
        """The way in for the second time."""
        self.send_back = SendBack(
            self.store,
            self.topics,
            self.groups,
            self.batcher,
            delay_messages,
            self.lights,
            self.dead_letters,
            options,
            in_thread,
        )

    def _make_delaying(
        self, delay_messages: DelayMessages, in_thread: InThread
    ) -> None:
        """The way back of what waits."""
        self.delay_offsets = DelayOffsets(self.file("delayOffset"), 200, self.wall_ms)
        self.schedule = ScheduleService(
            self.clock,
            self.store,
            self.delay_offsets,
            delay_messages,
            self.lights,
            self.group_commit,
            self.scheduler.appended,
            self.sending.counter,
            1,
            self.wall_ms,
            in_thread,
        )

    def wall_ms(self) -> int:
        """The time of day, as far as the clock has been advanced."""
        return self.start_ms + int(self.clock.seconds() * 1000)

    def file(self, name: str) -> JsonTable:
        """The file of a table."""
        return JsonTable(self.disk, f"/store/config/{name}.json", at_once)

    def topic(self, name: str = "T", queues: int = 4, **more: object) -> None:
        """Make a topic."""
        numbers = {"read_queue_nums": queues, "write_queue_nums": queues}
        values: dict[str, Any] = {**numbers, **more}
        self.topics.put([TopicConfig(topic_name=name, **values)])

    def close(self) -> None:
        """Close the store, so that its files can go, even if its disk is broken."""
        with suppress(StoreError):
            self.store.close()

    def append(
        self, body: bytes = b"body", wait: bool = True, properties: bytes = b""
    ) -> Draft:
        """Append a message to queue 0 of topic T, past the intake."""
        queue = self.store.queue("T", 0)
        draft = Draft(queue, body, properties, 0, 0, 0, HOST, 0, 0, None, wait=wait)
        self.store.append([draft])
        assert draft.status == PUT_OK, draft.status
        return draft

    # Requests.

    def ask(self, code: int, ext: dict[str, str], body: bytes = b"") -> Command:
        """A request by the general way, in a turn of its own, and its answer."""
        answer = self.begin(code, ext, body)
        self.batcher.flush()
        return answered(answer)

    def begin(
        self, code: int, ext: dict[str, str] | None, body: bytes = b""
    ) -> Deferred[Command | None] | Command | None:
        """A request by the general way, in a turn that does not end yet.

        @raise BrokerError: it is refused.
        """
        responder = self.table.responders[code]
        return responder(self.connection, Command(code, ext, body, opaque=1))

    def hot(
        self,
        code: int,
        ext: dict[str, str],
        body: bytes = b"",
        opaque: int = 1,
        flag: int = 0,
    ) -> bool:
        """A request by the hot way; whether it was taken."""
        frame = encode(Command(code, ext, body, opaque=opaque, flag=flag), JSON)
        size = int.from_bytes(frame[5:8], "big")
        header = b'{"code":%d,' % code
        assert frame[8:].startswith(header), frame
        (entry,) = [hot for hot in self.table.hot.values() if hot.code == code]
        return entry.responder(self.connection, frame[8 : 8 + size], frame[8 + size :])

    def answers(self) -> list[Command]:
        """What was sent to the connection since the last look."""
        found = self.connection.answers()
        self.connection.frames.clear()
        return found

    def records(
        self, queue_id: int = 0, topic: str = "T"
    ) -> list[record.StoredMessage]:
        """What a queue holds."""
        self.scheduler.dispatch()
        queue = self.store.queue(topic, queue_id)
        offset = queue.min_offset
        found: list[record.StoredMessage] = []
        while offset < queue.max_offset:
            result = self.store.read(queue, offset, 32, 1 << 20, None)
            found.extend(record.decode_all(b"".join(result.records)))
            offset = result.next_offset
        return found


def answered(answer: object) -> Command:
    """The command that a responder has answered with by now."""
    if isinstance(answer, Deferred):
        got: list[object] = []
        answer.addBoth(got.append)
        assert got, "no answer yet"
        answer = got[0]
        if isinstance(answer, Failure):
            answer.raiseException()
    assert isinstance(answer, Command), answer
    return answer


def send_ext(
    topic: str = "T",
    queue_id: int | str = 0,
    properties: str = f"UNIQ_KEY\x01{UNIQUE}\x02WAIT\x01true\x02",
    **more: str,
) -> dict[str, str]:
    """The fields of a send, as a client of 5.x writes them."""
    return {
        "a": "PG",
        "b": topic,
        "c": "TBW102",
        "d": "4",
        "e": str(queue_id),
        "f": "0",
        "g": "1700000000000",
        "h": "0",
        "i": properties,
        "j": "0",
        "k": "false",
        "m": "false",
        "n": "broker-a",
        **more,
    }


def pull_ext(
    offset: int | str = 0, queue_id: int | str = 0, **more: str
) -> dict[str, str]:
    """The fields of a pull with its own subscription, that does not wait."""
    return {
        "consumerGroup": "G",
        "topic": "T",
        "queueId": str(queue_id),
        "queueOffset": str(offset),
        "maxMsgNums": "32",
        "sysFlag": "4",
        "commitOffset": "0",
        "suspendTimeoutMillis": "15000",
        "subVersion": "0",
        "subscription": "*",
        "expressionType": "TAG",
        **more,
    }
