# -*- test-case-name: tests.broker.admin.test_topic_admin -*-
"""Topics created, changed, listed and deleted on request: 17, 18, 21, 215, 351, 305,
202, static ones 513; and queues of topics that are gone (316).

A change is answered when it is in the file and the name servers know it, so that the
client can use the topic at once. Name servers that cannot be reached delay the answer
for L{ANNOUNCE_SECONDS} at most.

Rules: docs/facts/admin.md 2.1."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, final

import attrs
from twisted.internet.defer import Deferred, gatherResults
from twisted.logger import Logger

from rocketbroker.broker.admin.queue_tables import QueueTables, entry_text, table_of
from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.json_bodies import (
    STEP_ENTRIES,
    check_count,
    read,
    with_body,
)
from rocketbroker.broker.metadata.room import MetadataRoom
from rocketbroker.broker.metadata.topic_attributes import (
    altered,
    check_message_type,
    parsed,
)
from rocketbroker.broker.metadata.topics import (
    INHERIT,
    READ,
    WRITE,
)
from rocketbroker.broker.stats.creation_times import Creation, CreationTimes
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import (
    InvalidParameter,
    SystemBusy,
    SystemFailure,
    TopicNotExist,
)
from rocketbroker.records.names import MAX_QUEUES, is_lmq, topic_problem
from rocketbroker.remoting.audit_line import differences
from rocketbroker.remoting.cooperative_tasks import soon
from rocketbroker.remoting.interfaces import IConnection, IResponderTable
from rocketbroker.routing.static_topics import check
from rocketbroker.store.interfaces import IQueue
from rocketbroker.wire.bodies.mappings import (
    LogicQueueMappingItem,
    TopicQueueMappingDetail,
    items_of,
)
from rocketbroker.wire.bodies.queues import MessageQueue
from rocketbroker.wire.bodies.topics import TopicConfig, TopicConfigAndQueueMapping
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.fields import Fields
from rocketbroker.wire.headers.admin import (
    CreateTopicRequestHeader,
    DeleteTopicRequestHeader,
    GetTopicConfigRequestHeader,
    GetTopicStatsInfoRequestHeader,
)

#: So many topics are deleted in one step. All offsets are looked at for each step, some
#: milliseconds where there are very many.
STEP_DELETED: Final = 128

#: How often the topics of a list are checked again that were changed meanwhile.
MAX_ROUNDS: Final = 3

#: How long an answer waits for name servers: less than the five seconds for which
#: tools wait for it.
ANNOUNCE_SECONDS: Final = 3.0


@final
class TopicAdmin:
    """The responder of requests that administer topics."""

    _log = Logger()

    def __init__(
        self,
        context: BrokerContext,
        metadata: MetadataRoom,
        put_tps: Callable[[str], float],
        forget_timers: Callable[[str], None],
        append: Callable[[], None],
        announced: Callable[[float], Deferred[None]],
        times: CreationTimes,
    ) -> None:
        """
        @param put_tps: how many messages came into a topic a second, in the last
            minute.
        @param forget_timers: called with a topic that was deleted.
        @param append: appends what was sent in this turn so far.
        @param announced: fires once the name servers know all changes, or
            after so many seconds.
        @param times: of the requests that make topics.
        """
        self._times = times
        slices = context.administrators.before_slices(context.slices)
        self._store = context.store
        self._options = context.settings.broker
        self._topics = metadata.topics
        self._mappings = metadata.mappings
        self._offsets = metadata.offsets
        self._put_tps = put_tps
        self._forget_timers = forget_timers
        self._append = append
        self._slices = slices
        self._long = context.long_requests
        self._in_thread: InThread = context.in_thread
        self._queue_tables = QueueTables(slices, context.in_thread)
        self._announced = announced

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._options = settings.broker

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        for code, responder in (
            (RequestCode.UPDATE_AND_CREATE_TOPIC, self.create),
            (RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC, self.create_static),
            (RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, self.create_list),
            (RequestCode.DELETE_TOPIC_IN_BROKER, self.delete),
            (RequestCode.CLEAN_UNUSED_TOPIC, self.clean_unused),
            (RequestCode.GET_ALL_TOPIC_CONFIG, self.all_topics),
            (RequestCode.GET_TOPIC_CONFIG, self.one_topic),
            (RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER, self.system_topics),
            (RequestCode.GET_TOPIC_STATS_INFO, self.statistics),
        ):
            table.register(code, responder)

    def create(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        """Request 17: make or change a topic."""
        return Deferred.fromCoroutine(self._create(connection, request))

    async def _create(self, connection: IConnection, request: Command) -> Command:
        with self._times.of_topics() as creation:
            header = CreateTopicRequestHeader.complete(request.ext, ("defaultTopic",))
            creation.is_system = self._topics.is_system(header.topic)
            wanted = TopicConfig(
                topic_name=header.topic,
                read_queue_nums=header.read_queue_nums,
                write_queue_nums=header.write_queue_nums,
                perm=header.perm,
                topic_filter_type=header.topic_filter_type,
                topic_sys_flag=header.topic_sys_flag or 0,
                order=header.order,
            )
            config = self._checked(wanted, parsed(header.attributes))
            if config is None:
                await self._topics.kept(header.topic)
                return response_to(request)
            known = self._topics.stored([header.topic])
            self._topics.put([config])
            self._log_changes(connection, known, [config])
            await self._settled([config])
            return response_to(request)

    def create_static(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        """Request 513: make or change a topic and the mapping of its queues.

        As in RocketMQ the topic is taken even if the mapping is not; attributes and
        order stay as they are.
        """
        return self._long.begin(request, self._map_queues(connection, request))

    async def _map_queues(self, connection: IConnection, request: Command) -> Command:
        """Read and check queue by queue, and then take all of them at once."""
        header = CreateTopicRequestHeader.complete(request.ext, ("defaultTopic",))
        most = self._options.rocketbroker_max_request_entries
        detail, rows = await self._long.read(connection, request, mapping_of, most)
        check_count(sum(map(_length, rows.values())), "queues of a mapping", most)
        if detail.topic != header.topic:
            raise InvalidParameter(
                f"the mapping is of topic {detail.topic!r:.300}, not of {header.topic}"
            )
        problems: list[SystemFailure] = []
        await soon(
            self._slices, connection, read_rows(rows, detail.hosted_queues, problems)
        )
        before = self._topics.config(header.topic) or TopicConfig()
        wanted = attrs.evolve(
            before,
            topic_name=header.topic,
            read_queue_nums=header.read_queue_nums,
            write_queue_nums=header.write_queue_nums,
            perm=header.perm,
            topic_filter_type=header.topic_filter_type,
            topic_sys_flag=header.topic_sys_flag or 0,
            attributes={},
        )
        # Also one that is the same: name servers look at mappings when topics change.
        config = self._checked(wanted, {}) or self._known(header.topic)
        known = self._topics.stored([header.topic])
        self._topics.put([config])
        self._log_changes(connection, known, [config])
        for problem in problems:
            raise problem
        self._mappings.put(detail, bool(header.force))
        self._log.info(
            "{peer} mapped {count} queues of topic {topic!r} of epoch {epoch}",
            peer=connection.who,
            count=len(rows),
            topic=header.topic,
            epoch=detail.epoch,
        )
        await self._settled([config])
        await self._mappings.kept()
        return response_to(request)

    def create_list(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        """Request 18: make or change several topics, all or none.

        Topics that are already as asked stay; RocketMQ then leaves out the others, too.
        """
        return self._long.begin(request, self._create_list(connection, request))

    async def _create_list(self, connection: IConnection, request: Command) -> Command:
        with self._times.of_topics() as creation:
            return await self._create_all(connection, request, creation)

    async def _create_all(
        self, connection: IConnection, request: Command, creation: Creation
    ) -> Command:
        """Check topic by topic, and then take all of them at once."""
        most = self._options.rocketbroker_max_request_entries
        entries = await self._long.entries(
            connection, request, "topicConfigList", "topics", most
        )
        wanted: list[TopicConfig] = []
        #: By place in the list: the topic as it was, and as it is to be.
        checked: dict[int, tuple[TopicConfig | None, TopicConfig | None]] = {}

        def check(places: Sequence[int]) -> Iterator[None]:
            for number, at in enumerate(places, 1):
                if at == len(wanted):
                    wanted.append(read(TopicConfig.from_json, entries[at]))
                one = wanted[at]
                creation.is_system |= self._topics.is_system(one.topic_name)
                (before,) = self._topics.stored([one.topic_name])
                checked[at] = before, self._checked_entry(one)
                if number % STEP_ENTRIES == 0:
                    yield

        places: Sequence[int] = range(len(entries))
        for _ in range(MAX_ROUNDS):
            await soon(self._slices, connection, check(places))
            names = [one.topic_name for one in wanted]
            # Some may have been changed while others were checked.
            now = enumerate(self._topics.stored(names))
            places = [at for at, other in now if checked[at][0] is not other]
            if not places:
                break
        else:
            raise SystemBusy(
                f"{len(places)} of these topics are changed all the time: ask again "
                "later"
            )
        changed = [
            (before, config)
            for before, config in map(checked.__getitem__, range(len(wanted)))
            if config is not None
        ]
        if not changed:
            await self._topics.kept(*names)
            return response_to(request)
        configs = [config for _, config in changed]
        self._topics.put(configs)
        lines = self._lines(connection, [before for before, _ in changed], configs)
        await self._long.go_on(connection, lines)
        await self._settled(configs)
        return response_to(request)

    def _checked_entry(self, wanted: TopicConfig) -> TopicConfig | None:
        """L{_checked}, of a topic whose attributes are the changes of them."""
        changes = dict(wanted.attributes)
        config = self._checked(attrs.evolve(wanted, attributes={}), changes)
        if config is not None:
            # Its text, which the file has soon, is made now and not with all others.
            _ = config.member
        return config

    def _checked(
        self, wanted: TopicConfig, changes: dict[str, str]
    ) -> TopicConfig | None:
        """The topic as it is to be stored; None if it is like that already.

        @raise BrokerError: it may not be.
        """
        name = wanted.topic_name
        problem = topic_problem(name)
        if problem is not None:
            raise InvalidParameter(problem)
        options = self._options
        if options.validate_system_topic_when_update_topic and self._topics.is_system(
            name
        ):
            raise InvalidParameter(f"The topic[{name}] is conflict with system topic.")
        check_message_type(changes, options.enable_mixed_message_type)
        check_queues(wanted)
        current = self._topics.config(name)
        attributes = altered(
            current is None, {} if current is None else current.attributes, changes
        )
        config = attrs.evolve(wanted, attributes=attributes)
        return None if config == current else config

    def _lines(
        self,
        connection: IConnection,
        known: list[TopicConfig | None],
        configs: list[TopicConfig],
    ) -> Iterator[None]:
        """Log new and changed topics, some at each step.

        @param known: of each what it was before.
        """
        for at in range(0, len(configs), STEP_ENTRIES):
            end = at + STEP_ENTRIES
            self._log_changes(connection, known[at:end], configs[at:end])
            yield

    def _log_changes(
        self,
        connection: IConnection,
        known: list[TopicConfig | None],
        configs: list[TopicConfig],
    ) -> None:
        """Log each of these topics that is not as it was."""
        for before, config in zip(known, configs, strict=True):
            if before == config:
                # Only the mapping of its queues is another.
                continue
            self._log.info(
                "{peer} {verb} topic {topic!r}: {changes}",
                peer=connection.who,
                verb="created" if before is None else "changed",
                topic=config.topic_name,
                changes=differences(
                    {} if before is None else before.to_json(), config.to_json()
                ),
            )

    def _settled(self, configs: list[TopicConfig]) -> Deferred[None]:
        names = [config.topic_name for config in configs]
        announced = self._announced(ANNOUNCE_SECONDS)
        done = gatherResults([self._topics.saved(*names), announced])
        return done.addCallback(lambda _: self._topics.kept(*names))

    def delete(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        """Request 215: forget a topic, its queues and all offsets in it.

        Name servers hear of it with the next registration.
        """
        name = DeleteTopicRequestHeader.from_ext(request.ext).topic
        if not name.strip():
            raise InvalidParameter("The specified topic is blank.")
        if self._topics.is_system(name):
            raise InvalidParameter(f"The topic[{name}] is conflict with system topic.")
        self._store.check_lock()
        names = [name]
        if self._options.clear_retry_topic_when_delete_topic:
            for group in self._offsets.groups_of(name):
                names += [f"%RETRY%{group}_{name}", f"%RETRY%{group}+{name}"]
        names = [
            known
            for known in names
            if known == name or self._topics.config(known) is not None
        ]
        # The topic last, so that a request that is asked again finds its groups.
        names.reverse()
        return Deferred.fromCoroutine(self._delete_all(connection, request, names))

    async def _delete_all(
        self, connection: IConnection, request: Command, names: list[str]
    ) -> Command:
        if len(names) <= STEP_DELETED:
            self._delete(connection, names)
        else:
            await self._slices.run(connection, self._deleted(connection, names))
        await self._in_thread(self._store.remove_deleted)
        await self._topics.kept(*names)
        return response_to(request)

    def _deleted(self, connection: IConnection, names: list[str]) -> Iterator[None]:
        for at in range(0, len(names), STEP_DELETED):
            self._delete(connection, names[at : at + STEP_DELETED])
            yield

    def _delete(self, connection: IConnection, names: list[str]) -> None:
        """Forget these topics, and all about them."""
        # What was sent before goes with the topic: its checks were by the settings of
        # this one, and the next one may have queues of another kind.
        self._append()
        for name in names:
            if self._topics.delete(name):
                self._log.info(
                    "{peer} deleted topic {topic!r}", peer=connection.who, topic=name
                )
            self._mappings.delete(name)
            self._forget_timers(name)
            # In the same turn: messages sent from now on belong to a new topic.
            self._store.delete_topic(name)
        self._offsets.forget_topic(*names)

    def clean_unused(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        """Request 316: delete the queues of topics that are not in the table, but for
        those of the system and LMQs; and the offsets in them.
        """
        done = self._slices.run(connection, self._forget_unused(connection))
        return done.addCallback(
            lambda _: self._in_thread(self._store.remove_deleted)
        ).addCallback(lambda _: response_to(request))

    def _forget_unused(self, connection: IConnection) -> Iterator[None]:
        names: dict[str, None] = {}
        for queue in self._store.queues():
            if queue.next_offset > 0:
                names[queue.topic] = None
            yield
        unused = [name for name in names if self._is_unused(name)]
        yield
        for at in range(0, len(unused), STEP_DELETED):
            # One may have been made again meanwhile.
            gone = list(filter(self._is_unused, unused[at : at + STEP_DELETED]))
            for name in gone:
                self._log.info(
                    "{peer} deleted the queues of topic {topic!r:.300}, which is gone",
                    peer=connection.who,
                    topic=name,
                )
                self._store.delete_topic(name)
            self._offsets.forget_topic(*gone)
            yield

    def _is_unused(self, name: str) -> bool:
        """Whether a topic is not in the table, nor one of the system or an LMQ."""
        return not (
            self._topics.config(name) is not None
            or self._topics.is_system(name)
            or is_lmq(name)
        )

    def all_topics(self, connection: IConnection, request: Command) -> Command:
        """Request 21: the whole table."""
        value = self._topics.to_json()
        value["mappingDataVersion"] = self._mappings.version.to_json()
        value["topicQueueMappingDetailMap"] = self._mappings.details_json()
        value["topicQueueMappingInfoMap"] = {}
        return with_body(request, value, ext={})

    def one_topic(self, connection: IConnection, request: Command) -> Command:
        """Request 351: one topic's settings; with C{lo} its queues' mapping, too."""
        header = GetTopicConfigRequestHeader.from_ext(request.ext)
        config = self._known(header.topic)
        detail = self._mappings.details.get(header.topic) if header.lo else None
        answer = TopicConfigAndQueueMapping(config=config, mapping=detail)
        return with_body(request, answer.to_json())

    def _known(self, name: str) -> TopicConfig:
        """The topic.

        @raise TopicNotExist: there is no such topic.
        """
        config = self._topics.config(name)
        if config is None:
            raise TopicNotExist(f"No topic in this broker. topic: {name}")
        return config

    def system_topics(self, connection: IConnection, request: Command) -> Command:
        """Request 305: the topics of the system."""
        return with_body(request, {"topicList": self._topics.system_names()})

    def statistics(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        """Request 202: the offsets of each queue of a topic, and its rate."""
        name = GetTopicStatsInfoRequestHeader.from_ext(request.ext).topic
        config = self._topics.config(name)
        if config is None:
            raise TopicNotExist(f"topic[{name}] not exist")
        count = max(config.read_queue_nums, config.write_queue_nums)
        return Deferred.fromCoroutine(
            self._statistics(connection, request, name, count)
        )

    async def _statistics(
        self, connection: IConnection, request: Command, name: str, count: int
    ) -> Command:
        tables = self._queue_tables
        queues = await tables.places(connection, [(name, count)], self._store.queue)
        tps = self._put_tps(name)
        members = await tables.read(queues, self._bounds)
        return with_body(
            request, {"offsetTable": table_of(members), "topicPutTps": tps}
        )

    def _bounds(self, queue: IQueue) -> str:
        """I{Blocking.} The bounds of a queue and when it was last written to."""
        least, most = queue.min_offset, queue.max_offset
        at = self._store.store_time(queue, most - 1) if most > least else 0
        return entry_text(
            MessageQueue(queue.topic, self._options.broker_name, queue.queue_id),
            {
                "lastUpdateTimestamp": max(at, 0),
                "maxOffset": max(most, 0),
                "minOffset": max(least, 0),
            },
        )


def mapping_of(value: object) -> tuple[TopicQueueMappingDetail, dict[int, object]]:
    """The mapping in the body of request 513, and its queues, which are not read yet.

    @raise RemoteProtocolError: it is none.
    """
    rows = Fields(value, "a mapping of queues").numbered("hostedQueues", _as_it_is)
    assert isinstance(value, dict)
    detail = TopicQueueMappingDetail.from_json({**value, "hostedQueues": None})
    return detail, rows


def _as_it_is(row: object) -> object:
    """A row that is read later."""
    return row


def _length(row: object) -> int:
    return len(row) if isinstance(row, list) else 1


def read_rows(
    rows: dict[int, object],
    found: dict[int, tuple[LogicQueueMappingItem, ...]],
    problems: list[SystemFailure],
) -> Iterator[None]:
    """Read and check the queues of a mapping, some at each step.

    @param found: gets them.
    @param problems: gets the first reason why they cannot be taken.
    """
    since = 0
    for number, row in rows.items():
        items = found[number] = read(items_of, row)
        try:
            check(items)
        except SystemFailure as problem:
            problems[:] = problems or [problem]
        for item in items:
            since += 1
            # Its text, which the file has soon, is made now and not with all others.
            _ = item.text
            if since % STEP_ENTRIES == 0:
                yield


def check_queues(config: TopicConfig) -> None:
    """Refuse numbers and permissions that no topic can have.

    @raise InvalidParameter: these.
    """
    for count in (config.read_queue_nums, config.write_queue_nums):
        if not 0 <= count <= MAX_QUEUES:
            raise InvalidParameter(
                f"a topic has from 0 to {MAX_QUEUES} queues, not {count}"
            )
    if not 0 <= config.perm <= (READ | WRITE | INHERIT):
        raise InvalidParameter(f"{config.perm} is not a permission from 0 to 7")
