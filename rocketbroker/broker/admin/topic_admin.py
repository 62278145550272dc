# -*- test-case-name: tests.broker.admin.test_topic_admin -*-
"""Topics created, changed, listed and deleted on request: 17, 18, 21, 215, 351, 305,
202, static ones 513; and queues of topics that are gone (316).

A change is answered when it is in the file and the name servers know it, so that the
client can use the topic at once. Name servers that cannot be reached delay the answer
for L{ANNOUNCE_SECONDS} at most.

Rules: docs/facts/admin.md 2.1."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, final

import attrs
from twisted.internet.defer import Deferred, gatherResults
from twisted.logger import Logger

from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.json_bodies import decoded, with_body
from rocketbroker.broker.metadata.offsets import OffsetTable
from rocketbroker.broker.metadata.queue_mappings import QueueMappings
from rocketbroker.broker.metadata.topic_attributes import (
    altered,
    check_message_type,
    parsed,
)
from rocketbroker.broker.metadata.topics import (
    INHERIT,
    READ,
    WRITE,
    TopicTable,
)
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import InvalidParameter, TopicNotExist
from rocketbroker.records.names import MAX_QUEUES, is_lmq, topic_problem
from rocketbroker.remoting.changes import differences
from rocketbroker.remoting.interfaces import IConnection, IResponderTable, ISlices
from rocketbroker.store.interfaces import IQueue, IStore
from rocketbroker.wire.bodies.mappings import TopicQueueMappingDetail
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

#: How long an answer waits for name servers: less than the five seconds for which
#: tools wait for it.
ANNOUNCE_SECONDS: Final = 3.0


@final
class TopicAdmin:
    """Answers requests about topics."""

    _log = Logger()

    def __init__(
        self,
        store: IStore,
        options: BrokerOptions,
        topics: TopicTable,
        mappings: QueueMappings,
        offsets: OffsetTable,
        put_tps: Callable[[str], float],
        forget_timers: Callable[[str], None],
        slices: ISlices,
        in_thread: InThread,
        announced: Callable[[float], Deferred[None]],
    ) -> None:
        """
        @param put_tps: how many messages came into a topic a second, in the last
            minute.
        @param forget_timers: called with a topic that was deleted.
        @param announced: fires once the name servers know all changes, or
            after so many seconds.
        """
        self._store = store
        self._options = options
        self._topics = topics
        self._mappings = mappings
        self._offsets = offsets
        self._put_tps = put_tps
        self._forget_timers = forget_timers
        self._slices = slices
        self._in_thread = in_thread
        self._announced = announced

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._options = settings.broker

    def register(self, table: IResponderTable) -> None:
        """Answer on a port."""
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
        header = CreateTopicRequestHeader.complete(request.ext, ("defaultTopic",))
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
            kept = self._topics.kept(header.topic)
            return kept.addCallback(lambda _: response_to(request))
        self._put(connection, [config])
        return self._settled([config]).addCallback(lambda _: response_to(request))

    def create_static(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        """Request 513: make or change a topic and the mapping of its queues.

        As in RocketMQ the topic is taken even if the mapping is not; attributes and
        order stay as they are.
        """
        header = CreateTopicRequestHeader.complete(request.ext, ("defaultTopic",))
        detail = decoded(request, TopicQueueMappingDetail.from_json)
        if detail.topic != header.topic:
            raise InvalidParameter(
                f"the mapping is of topic {detail.topic!r:.300}, not of {header.topic}"
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
        self._put(connection, [config])
        self._mappings.put(detail, bool(header.force))
        self._log.info(
            "{peer} mapped the queues of topic {topic!r}: {detail}",
            peer=connection.peer,
            topic=header.topic,
            detail=detail.to_json(),
        )
        done = self._settled([config]).addCallback(lambda _: self._mappings.kept())
        return done.addCallback(lambda _: response_to(request))

    def create_list(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        """Request 18: make or change several topics, all or none.

        Topics that are already as asked stay; RocketMQ then leaves out the others, too.
        """
        configs = []
        all_wanted = decoded(request, topic_list)
        for wanted in all_wanted:
            changes = dict(wanted.attributes)
            config = self._checked(attrs.evolve(wanted, attributes={}), changes)
            if config is not None:
                configs.append(config)
        if not configs:
            kept = self._topics.kept(*[wanted.topic_name for wanted in all_wanted])
            return kept.addCallback(lambda _: response_to(request))
        self._put(connection, configs)
        return self._settled(configs).addCallback(lambda _: response_to(request))

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

    def _put(self, connection: IConnection, configs: list[TopicConfig]) -> None:
        """Store new and changed topics, and log each."""
        known = [self._topics.config(config.topic_name) for config in configs]
        self._topics.put(configs)
        for before, config in zip(known, configs, strict=True):
            self._log.info(
                "{peer} {verb} topic {topic!r}: {changes}",
                peer=connection.peer,
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
    ) -> Command | Deferred[Command | None]:
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
        for known in names:
            if self._topics.config(known) is not None:
                self._log.info(
                    "{peer} deleted topic {topic!r}", peer=connection.peer, topic=known
                )
            self._topics.delete(known)
            self._mappings.delete(known)
            self._offsets.forget_topic(known)
            self._forget_timers(known)
            # In the same turn: messages sent from now on belong to a new topic.
            self._store.delete_topic(known)
        return (
            self._in_thread(self._store.remove_deleted)
            .addCallback(lambda _: self._topics.kept(*names))
            .addCallback(lambda _: response_to(request))
        )

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
        for name in names:
            if not (
                self._topics.config(name) is not None
                or self._topics.is_system(name)
                or is_lmq(name)
            ):
                self._log.info(
                    "{peer} deleted the queues of topic {topic!r:.300}, which is gone",
                    peer=connection.peer,
                    topic=name,
                )
                self._offsets.forget_topic(name)
                self._store.delete_topic(name)
            yield

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
        # Handles are made in this thread alone, or one queue might get two of them.
        queues = [self._store.queue(name, queue_id) for queue_id in range(count)]
        tps = self._put_tps(name)
        return self._in_thread(lambda: self._statistics(queues)).addCallback(
            lambda table: with_body(request, {"offsetTable": table, "topicPutTps": tps})
        )

    def _statistics(self, queues: list[IQueue]) -> dict[object, object]:
        """I{Blocking.} By queue: its bounds and when it was last written to."""
        table: dict[object, object] = {}
        for queue in queues:
            least, most = queue.min_offset, queue.max_offset
            at = self._store.store_time(queue, most - 1) if most > least else 0
            key = MessageQueue(queue.topic, self._options.broker_name, queue.queue_id)
            table[key] = {
                "lastUpdateTimestamp": max(at, 0),
                "maxOffset": max(most, 0),
                "minOffset": max(least, 0),
            }
        return table


def topic_list(value: object) -> list[TopicConfig]:
    """The topics in the body of request 18."""
    fields = Fields(value, "a list of topics")
    return fields.beans("topicConfigList", TopicConfig.from_json)


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
