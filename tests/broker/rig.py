"""A broker over a store in memory, stepped by a test, without ports and connections."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import attrs
from twisted.internet.defer import Deferred, fail
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import Clock
from twisted.logger import capturedLogs, formatEvent
from twisted.python.failure import Failure

from rocketbroker.app.testing.mode import TestingMode
from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.broker import Broker
from rocketbroker.broker.context import BrokerContext, Caller
from rocketbroker.broker.json_table import JsonTable
from rocketbroker.broker.services import Services
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.config.keyed import text_of
from rocketbroker.config.store import StoreOptions
from rocketbroker.config.workers import worker_count
from rocketbroker.errors import ConnectionLost, StoreError
from rocketbroker.files.interfaces import IFile
from rocketbroker.records import record
from rocketbroker.records.ids import UniqueKeys
from rocketbroker.remoting.interfaces import ITurns
from rocketbroker.remoting.turns import Turns
from rocketbroker.store.interfaces import PUT_OK, Draft, IStore
from rocketbroker.store.message_store import Store
from rocketbroker.store.sharing.append_lock import APPEND_NAME
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.master_link import ScriptedLink
from rocketbroker.testing.replicas import ScriptedReplicas
from rocketbroker.testing.threads import Threads, at_once
from rocketbroker.wire.bodies.topics import TopicConfig
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import JSON, Command
from rocketbroker.wire.fastjson import dumps
from rocketbroker.wire.frames import encode

HOST = bytes([10, 0, 0, 1, 0, 0, 0x2A, 0x9F])
PORT = 10911
HOST_TEXT = "0A00000100002A9F"

#: The time of day when a rig begins.
WALL_MS = 1_700_000_000_000

#: How many messages are looked for by a unique key.
MAX_UNIQUE = 2

UNIQUE = "7F000001000018B4AAC2000012345678"

#: What the names of a send's fields stand for, in request 10.
LONG_NAMES = {
    "a": "producerGroup",
    "b": "topic",
    "c": "defaultTopic",
    "d": "defaultTopicQueueNums",
    "e": "queueId",
    "f": "sysFlag",
    "g": "bornTimestamp",
    "h": "flag",
    "i": "properties",
    "j": "reconsumeTimes",
    "k": "unitMode",
    "m": "batch",
    "n": "bname",
}

SMALL = {
    "storePathRootDir": "/store",
    "mappedFileSizeCommitLog": "65536",
    "mappedFileSizeConsumeQueue": "2000",
    "maxHashSlotNum": "100",
    "maxIndexNum": "1000",
}


def services_of(
    clock: IReactorTime,
    store: StoreOptions | None = None,
    broker: BrokerOptions | None = None,
) -> Services:
    """The services of a broker with these settings."""
    return Services(clock, settings_of(store, broker), lambda: WALL_MS)


def settings_of(
    store: StoreOptions | None = None, broker: BrokerOptions | None = None
) -> BrokerSettings:
    """The settings of a broker with these options."""
    settings = BrokerSettings.from_properties(SMALL)
    return attrs.evolve(
        settings, store=store or settings.store, broker=broker or settings.broker
    )


class NoNameServers:
    """A client that reaches nobody."""

    def invoke(
        self, address: str, command: Command, timeout: float
    ) -> Deferred[Command]:
        """Fail."""
        return fail(ConnectionLost(f"nobody listens at {address}"))

    def oneway(self, address: str, command: Command) -> None:
        """Nobody hears it."""


class NoLookup:
    """Neither DNS nor an address server."""

    def resolve(self, host: str) -> list[str]:
        """Nobody is known."""
        raise OSError(f"{host} is not known")

    def own(self) -> list[str]:
        """This machine has no address but loopback."""
        return []

    def fetch(self, url: str, max_bytes: int) -> str:
        """There is no page."""
        raise OSError(f"{url} does not answer")


class Known:
    """DNS and pages, as a test sets them."""

    def __init__(self) -> None:
        self.hosts: dict[str, list[str]] = {}
        self.pages: dict[str, str] = {}
        self.addresses: list[str] = []

    def own(self) -> list[str]:
        """The addresses of this machine."""
        return self.addresses

    def resolve(self, host: str) -> list[str]:
        """The addresses of a host."""
        if host not in self.hosts:
            raise OSError(f"{host} is not known")
        return self.hosts[host]

    def fetch(self, url: str, max_bytes: int) -> str:
        """The text of a page."""
        if url not in self.pages:
            raise OSError(f"{url} does not answer")
        return self.pages[url][:max_bytes]


def context_of(
    clock: IReactorTime,
    settings: BrokerSettings | None = None,
    store: IStore | None = None,
    in_thread: InThread = at_once,
    turns: ITurns | None = None,
    wall_ms: Callable[[], int] = lambda: WALL_MS,
) -> BrokerContext:
    """The context of a broker, for tests of its parts: what is not given is a double.

    @param store: None where no part touches it.
    """
    given = settings or settings_of()
    disk = MemoryDisk()
    return BrokerContext(
        settings=given,
        port=10911,
        clock=clock,
        wall_ms=wall_ms,
        files=disk,
        store=store or Store(disk, given.store, wall_ms, HOST),
        in_thread=in_thread,
        client=NoNameServers(),
        lookup=NoLookup(),
        turns=turns or Turns(),
        unique_keys=UniqueKeys(b"\x0a\0\0\1", 1, 2, wall_ms),
        followers=[],
        replica_server=lambda store, in_thread, membership: ScriptedReplicas(),
        master_link=lambda store, in_thread: ScriptedLink(),
    )


class Rig:
    """A whole broker whose tables and store are open, but which has not started.

    Time moves when C{clock} is advanced, threads run when C{threads} is told to. A test
    that changes C{start_ms} sets the time of day.

    @ivar broker: the broker; its parts are attributes of the rig, too.
    @ivar table: the responders of its main port.
    @ivar connection: the one that requests come from.
    @ivar seen: its store, as it sees it.
    @ivar replicas: its slaves. L{link}: what it gets the log by, if it is a slave.
    """

    def __init__(
        self,
        settings: dict[str, str],
        threads: bool = False,
        disk: MemoryDisk | None = None,
        start_ms: int = WALL_MS,
        client: Caller | None = None,
        wrap: Callable[[Store], Any] = lambda store: store,
        testing: bool = False,
    ) -> None:
        """
        @param settings: RocketMQ's keys.
        @param threads: whether what blocks waits for C{self.threads.run()}; if not, it
            is done at once.
        @param disk: what an earlier one has left.
        @param start_ms: the time of day.
        @param client: calls name servers; if none is given, nobody is reached.
        @param wrap: makes of the store what the broker is to see of it.
        @param testing: whether it is in testing mode, with C{self.testing}.
        """
        self.start_ms = start_ms
        self.clock = Clock()
        self.disk = disk or MemoryDisk()
        self.threads = Threads()
        self.settings = BrokerSettings.from_properties(
            {
                **SMALL,
                "brokerIP1": "10.0.0.1",
                "brokerName": "broker-a",
                "brokerClusterName": "cluster-a",
                "defaultQueryMaxNum": str(MAX_UNIQUE),
                **settings,
            }
        )
        mode = self.testing = TestingMode(self.clock, self.wall_ms)
        wall_ms = mode.time.wall_ms if testing else self.wall_ms
        files = mode.files(self.disk) if testing else self.disk
        store = Store(
            files,
            self.settings.store,
            wall_ms,
            HOST,
            is_shared=worker_count(self.settings.broker.workers) > 0,
        )
        self.seen = wrap(store)
        self.replicas, self.link = ScriptedReplicas(), ScriptedLink()
        context = BrokerContext(
            settings=self.settings,
            port=PORT,
            clock=mode.time if testing else self.clock,
            wall_ms=wall_ms,
            files=files,
            store=self.seen,
            in_thread=self.threads if threads else at_once,
            client=client or NoNameServers(),
            lookup=NoLookup(),
            turns=Turns(),
            unique_keys=UniqueKeys(b"\x0a\0\0\1", 1, 2, wall_ms),
            followers=[],
            replica_server=lambda store, in_thread, membership: self.replicas,
            master_link=lambda store, in_thread: self.link,
        )
        broker = self.broker = Broker(context)
        broker.open()
        self.store = store
        self._name_parts(broker)
        if testing:
            mode.serve(broker)
            self.table = mode.front(broker.main)
        self.connection = RecordedConnection(b"\x0a\0\0\2", 4711)

    def _name_parts(self, broker: Broker) -> None:
        self.topics = broker.metadata.topics
        self.groups = broker.metadata.groups
        self.offsets = broker.metadata.offsets
        self.consumers = broker.clients.consumers
        self.producers = broker.clients.producers
        self.filters = broker.clients.filters
        self.group_commit = broker.appends.group_commit
        self.long_polling = broker.pull.long_polling
        self.scheduler = broker.storage.scheduler
        self.batcher = broker.appends.batcher
        self.transactions = broker.transactions
        self.dead_letters = broker.send.dead_letters
        self.sending = broker.send.sending
        self.send_back = broker.send.send_back
        self.schedule = broker.schedule.service
        self.pull_checks = broker.pull.checks
        self.broadcasts = broker.pull.broadcasts
        self.pulling = broker.pull.pulling
        self.statistics = broker.figures.statistics
        self.table = broker.main

    def wall_ms(self) -> int:
        """The time of day, as far as the clock has been advanced."""
        return self.start_ms + int(self.clock.seconds() * 1000)

    def file(self, name: str) -> JsonTable:
        """The file of a table."""
        return JsonTable(self.disk, f"/store/config/{name}.json", at_once, Clock())

    def topic(self, name: str = "T", queues: int = 4, **more: object) -> None:
        """Make a topic, whose file is written."""
        numbers = {"read_queue_nums": queues, "write_queue_nums": queues}
        values: dict[str, Any] = {**numbers, **more}
        self.topics.put([TopicConfig(topic_name=name, **values)])
        self.threads.run()

    def close(self) -> None:
        """Close the store, so that its files can go, even if its disk is broken."""
        with suppress(StoreError):
            self.store.close()

    def change(self, **values: object) -> Command:
        """Change settings as an administrator does (request 25)."""
        lines = [f"{key}={text_of(value)}\n" for key, value in values.items()]
        return self.ask(25, {}, "".join(lines).encode())

    def append(
        self,
        body: bytes = b"body",
        wait: bool = True,
        properties: bytes = b"",
        queue_id: int = 0,
    ) -> Draft:
        """Append a message to a queue of topic T, past the intake."""
        queue = self.store.queue("T", queue_id)
        draft = Draft(queue, body, properties, 0, 0, 0, HOST, 0, 0, None, wait=wait)
        self.store.append([draft])
        assert draft.status == PUT_OK, draft.status
        return draft

    def stall(self, call: str, seconds: float) -> None:
        """Let the next such call of the disk take so long; everybody waits for it."""

        def watch(made: str) -> None:
            if made == call:
                self.disk.watch = None
                self.clock.rightNow += seconds

        self.disk.watch = watch

    def hold_lock(self) -> IFile:
        """Let another process hold the append lock until this file is closed; with
        workers in the settings."""
        file = self.disk.open(f"/store/{APPEND_NAME}")
        assert file.lock_alone(0)
        return file

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
        if entry.run is not None and entry.run(self.connection, frame, 0, 1 << 24)[0]:
            return True
        return entry.responder(self.connection, frame[8 : 8 + size], frame[8 + size :])

    def answers(self) -> list[Command]:
        """The commands that were sent to the connection since the last look."""
        found = self.connection.answers()
        self.connection.frames.clear()
        return found

    def records(
        self, queue_id: int = 0, topic: str = "T"
    ) -> list[record.StoredMessage]:
        """The messages of a queue."""
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


def fields_for(code: int, ext: dict[str, str]) -> dict[str, str]:
    """The fields of a send under the names that they have in a request: in 10 they are
    long."""
    if code != RequestCode.SEND_MESSAGE:
        return ext
    return {LONG_NAMES.get(name, name): value for name, value in ext.items()}


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


def logged(step: Callable[[], object]) -> list[str]:
    """The lines of the log that a step writes."""
    with capturedLogs() as events:
        step()
    return [formatEvent(event) for event in events]


def heartbeat(topics: list[str] | None = None, **changes: Any) -> bytes:
    """A heartbeat as the Java client writes it."""
    consumer = {
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
        "consumeType": changes.pop("consumeType", "CONSUME_PASSIVELY"),
        "groupName": changes.pop("group", "G"),
        "messageModel": "CLUSTERING",
        "subscriptionDataSet": [
            {
                "classFilterMode": False,
                "codeSet": [],
                "expressionType": "TAG",
                "subString": "*",
                "subVersion": 1700000000000,
                "tagsSet": [],
                "topic": topic,
            }
            for topic in topics or ["T"]
        ],
        "unitMode": False,
    }
    value: dict[str, object] = {
        "clientID": "10.0.0.9@1",
        "consumerDataSet": [consumer],
        "heartbeatFingerprint": 0,
        "producerDataSet": [{"groupName": "P"}],
        "withoutSub": False,
    }
    return dumps({**value, **changes})
