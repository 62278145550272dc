# -*- test-case-name: tests.broker.admin.test_group_admin -*-
"""Groups created, changed, listed and deleted on request: 200, 201, 207, 225, 352; what
they may read and do read: 43, 300, 343, 345, 353; and the connections of clients: 203,
204, 328.

Rules: docs/facts/admin.md 2.3."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, final

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from rocketbroker.broker.admin.queue_tables import entry_text, table_of
from rocketbroker.broker.clients.consumers import ConsumerGroup, ConsumerRegistry
from rocketbroker.broker.clients.members import Member
from rocketbroker.broker.clients.producers import ProducerRegistry
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.json_bodies import (
    GROUP_OBJECTS,
    STEP_ENTRIES,
    bounded,
    read,
    with_body,
)
from rocketbroker.broker.metadata.room import MetadataRoom
from rocketbroker.broker.stats.creation_times import CreationTimes
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import (
    InvalidParameter,
    SubscriptionGroupNotExist,
    SystemFailure,
    error_of_response,
)
from rocketbroker.records.names import MAX_QUEUES, group_problem
from rocketbroker.remoting.audit_line import differences
from rocketbroker.remoting.cooperative_tasks import soon
from rocketbroker.remoting.interfaces import IConnection, IResponderTable
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.fastjson import Written, dumps
from rocketbroker.wire.headers.admin import (
    DeleteSubscriptionGroupRequestHeader,
    GetConsumerConnectionListRequestHeader,
    GetProducerConnectionListRequestHeader,
    GetSubscriptionGroupConfigRequestHeader,
    QuerySubscriptionByConsumerRequestHeader,
    QueryTopicConsumeByWhoRequestHeader,
    QueryTopicsByConsumerRequestHeader,
    UpdateGroupForbiddenRequestHeader,
)

#: How many members of a group are written in one step: half a millisecond.
STEP_MEMBERS: Final = 32


@final
class GroupAdmin:
    """Answers requests about groups and clients."""

    _log = Logger()

    def __init__(
        self,
        context: BrokerContext,
        metadata: MetadataRoom,
        consumers: ConsumerRegistry,
        producers: ProducerRegistry,
        times: CreationTimes,
    ) -> None:
        """
        @param times: of the requests that make groups.
        """
        self._times = times
        self._options = context.settings.broker
        self._slices = context.administrators.before_slices(context.slices)
        self._long = context.long_requests
        self._address = context.address
        #: Monotonic time, in which members are L{seen
        #: <rocketbroker.broker.clients.members.Member>}.
        self._seconds = context.clock.seconds
        self._wall_ms = context.wall_ms
        self._groups = metadata.groups
        self._offsets = metadata.offsets
        self._consumers = consumers
        self._producers = producers

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._options = settings.broker

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        for code, responder in (
            (RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, self.create),
            (RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, self.create_list),
            (RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, self.all_groups),
            (RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, self.one_group),
            (RequestCode.DELETE_SUBSCRIPTIONGROUP, self.delete),
            (RequestCode.GET_ALL_CONSUMER_OFFSET, self.all_offsets),
            (RequestCode.GET_CONSUMER_CONNECTION_LIST, self.consumer_connections),
            (RequestCode.GET_PRODUCER_CONNECTION_LIST, self.producer_connections),
            (RequestCode.GET_ALL_PRODUCER_INFO, self.all_producers),
            (RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, self.groups_of_topic),
            (RequestCode.QUERY_TOPICS_BY_CONSUMER, self.topics_of_group),
            (RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER, self.subscription),
            (RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN, self.forbidden),
        ):
            table.register(code, responder)

    def create(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        """Request 200: make or change a group."""
        return Deferred.fromCoroutine(self._create(connection, request))

    async def _create(self, connection: IConnection, request: Command) -> Command:
        with self._times.of_groups():
            config = bounded(request, lambda value: value, objects=GROUP_OBJECTS)
            await self._store(connection, [config])
            return response_to(request)

    def create_list(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        """Request 225: make or change several groups, all or none."""
        return self._long.begin(request, self._create_all(connection, request))

    async def _create_all(self, connection: IConnection, request: Command) -> Command:
        most = self._options.rocketbroker_max_request_entries
        with self._times.of_groups():
            entries = await self._long.entries(
                connection, request, "groupConfigList", "groups", most, GROUP_OBJECTS
            )
            await self._store(connection, entries)
            return response_to(request)

    async def _store(self, connection: IConnection, entries: list[object]) -> None:
        """Check group by group, and then take all of them at once."""
        configs: list[SubscriptionGroupConfig] = []

        def check() -> Iterator[None]:
            for number, entry in enumerate(entries, 1):
                config = read(SubscriptionGroupConfig.from_json, entry)
                check_group(config)
                # Its text, which the file has soon, is made now, not with all others.
                _ = config.member
                configs.append(config)
                if number % STEP_ENTRIES == 0:
                    yield

        await soon(self._slices, connection, check())
        known = [self._groups.config(config.group_name) for config in configs]
        self._groups.put(configs)
        await self._long.go_on(connection, self._lines(connection, known, configs))
        await self._groups.kept()

    def _lines(
        self,
        connection: IConnection,
        known: list[SubscriptionGroupConfig | None],
        configs: list[SubscriptionGroupConfig],
    ) -> Iterator[None]:
        """Log the groups that are new or changed, some at each step.

        @param known: of each what it was before.
        """
        for number, config in enumerate(configs, 1):
            before = known[number - 1]
            if before != config:
                self._log.info(
                    "{peer} {verb} group {group!r}: {changes}",
                    peer=connection.who,
                    verb="created" if before is None else "changed",
                    group=config.group_name,
                    changes=differences(
                        {} if before is None else before.to_json(), config.to_json()
                    ),
                )
            if number % STEP_ENTRIES == 0:
                yield

    def all_groups(self, connection: IConnection, request: Command) -> Command:
        """Request 201: the whole table."""
        return with_body(request, self._groups.to_json())

    def one_group(self, connection: IConnection, request: Command) -> Command:
        """Request 352: one group's settings; the group is made if that is allowed."""
        name = GetSubscriptionGroupConfigRequestHeader.complete(request.ext).group
        config = self._groups.find(name)
        if config is None:
            raise SubscriptionGroupNotExist(f"No group in this broker. group: {name}")
        return with_body(request, config.to_json())

    def delete(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        """Request 207: forget a group, and its offsets if that is asked for."""
        header = DeleteSubscriptionGroupRequestHeader.complete(request.ext)
        self._groups.delete(header.group_name)
        if header.clean_offset:
            self._offsets.forget_group(header.group_name)
        self._log.info(
            "{peer} deleted group {group!r:.300}{offsets}",
            peer=connection.who,
            group=header.group_name,
            offsets=" and its offsets" if header.clean_offset else "",
        )
        return self._groups.kept().addCallback(lambda _: response_to(request))

    def all_offsets(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        """Request 43: the whole table of offsets."""
        made = self._offsets.made(connection)
        return made.addCallback(lambda value: with_body(request, value))

    def consumer_connections(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        """Request 203: the members of a consumer group and its subscriptions."""
        header = GetConsumerConnectionListRequestHeader.from_ext(request.ext)
        group = self._consumers.group(header.consumer_group)
        if group is None:
            raise error_of_response(
                ResponseCode.CONSUMER_NOT_ONLINE,
                f"the consumer group[{header.consumer_group}] not online",
            )
        return Deferred.fromCoroutine(
            self._consumer_connections(connection, request, group)
        )

    async def _consumer_connections(
        self, connection: IConnection, request: Command, group: ConsumerGroup
    ) -> Command:
        """An answer with thousands of topics and members is written in slices."""
        texts: list[str] = []
        subscriptions = list(group.subscriptions.items())
        others = {
            "consumeFromWhere": group.consume_from_where,
            "consumeType": group.consume_type,
            "messageModel": group.message_model,
        }
        members = list(group.members.values())

        def write() -> Iterator[None]:
            for at in range(0, len(subscriptions), STEP_ENTRIES):
                for topic, subscription in subscriptions[at : at + STEP_ENTRIES]:
                    texts.append(entry_text(topic, subscription))
                yield

        await self._slices.run(connection, write())
        answer = await self._with_members(
            connection,
            request,
            members,
            {**others, "subscriptionTable": table_of(texts)},
        )
        assert answer is not None
        return answer

    def producer_connections(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        """Request 204: the members of a producer group."""
        header = GetProducerConnectionListRequestHeader.from_ext(request.ext)
        members = self._producers.members(header.producer_group)
        if not members:
            raise SystemFailure(
                f"the producer group[{header.producer_group}] not exist"
            )
        return self._with_members(connection, request, list(members), {})

    def _with_members(
        self,
        connection: IConnection,
        request: Command,
        members: list[Member],
        others: dict[str, object],
    ) -> Deferred[Command | None]:
        """An answer with thousands of members is written in slices."""
        texts: list[str] = []
        written = self._slices.run(connection, member_texts(members, texts))

        def answer(_: None) -> Command:
            members = Written(["[", ",".join(texts), "]"])
            return with_body(request, {"connectionSet": members, **others})

        return written.addCallback(answer)

    def groups_of_topic(self, connection: IConnection, request: Command) -> Command:
        """Request 300: the groups of a topic: those online and those with offsets.

        5.3.3 lists the topic instead of the groups that are online
        (docs/facts/admin.md 2.1); releases before and after it do it like this.
        """
        topic = QueryTopicConsumeByWhoRequestHeader.complete(request.ext).topic
        groups = {
            *self._consumers.groups_of_topic(topic),
            *self._offsets.groups_of(topic),
        }
        return with_body(request, {"groupList": sorted(groups)})

    def all_producers(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        """Request 328: the members of all producer groups."""
        texts: dict[str, list[str]] = {}
        written = self._slices.run(connection, self._producer_texts(texts))

        def answer(_: None) -> Command:
            groups = {
                group: Written(["[", ",".join(members), "]"])
                for group, members in texts.items()
            }
            return with_body(request, {"data": groups})

        return written.addCallback(answer)

    def _producer_texts(self, texts: dict[str, list[str]]) -> Iterator[None]:
        """Write the members of all producer groups.

        @param texts: gets the texts, by group.
        """
        for group in self._producers.names():
            written = texts[group] = []
            yield from member_texts(
                self._producers.members(group), written, self._producer_json
            )
            yield

    def _producer_json(self, member: Member) -> dict[str, object]:
        """A producer; its host is written as Java writes an address."""
        silent_ms = (self._seconds() - member.seen) * 1000
        return {
            "clientId": member.client_id,
            "language": member.language,
            "lastUpdateTimestamp": self._wall_ms() - int(silent_ms),
            "remoteIP": f"/{member.connection.peer}",
            "version": member.version,
        }

    def topics_of_group(self, connection: IConnection, request: Command) -> Command:
        """Request 343: the topics in which a group has offsets."""
        group = QueryTopicsByConsumerRequestHeader.complete(request.ext).group
        topics = sorted(self._offsets.topics_of(group))
        return with_body(request, {"brokerAddr": self._address, "topicList": topics})

    def subscription(self, connection: IConnection, request: Command) -> Command:
        """Request 345: to what of a topic a group with members subscribes."""
        header = QuerySubscriptionByConsumerRequestHeader.complete(request.ext)
        if header.topic is None:
            raise SystemFailure("the field topic is missing")
        value: dict[str, object] = {"group": header.group, "topic": header.topic}
        found = self._consumers.subscription(header.group, header.topic)
        if found is not None:
            value["subscriptionData"] = found.to_json()
        return with_body(request, value)

    def forbidden(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        """Request 353: forbid a group to read a topic, or allow it; and whether it may
        read it."""
        header = UpdateGroupForbiddenRequestHeader.complete(request.ext)
        group, topic = header.group, header.topic
        if header.readable is not None:
            self._groups.forbid_read(group, topic, not header.readable)
            self._log.info(
                "{peer} {verb} group {group!r:.300} to read topic {topic!r:.300}",
                peer=connection.who,
                verb="allowed" if header.readable else "forbade",
                group=group,
                topic=topic,
            )
        readable = not self._groups.read_forbidden(group, topic)
        value = {"group": group, "readable": readable, "topic": topic}
        return self._groups.kept().addCallback(lambda _: with_body(request, value))


def connection_json(member: Member) -> dict[str, object]:
    """A client as tools see it."""
    return {
        "clientAddr": member.connection.peer,
        "clientId": member.client_id,
        "language": member.language,
        "version": member.version,
    }


def member_texts(
    members: list[Member],
    texts: list[str],
    to_json: Callable[[Member], dict[str, object]] = connection_json,
) -> Iterator[None]:
    """Write members as tools see them, some at each step.

    @param texts: gets the texts.
    """
    for at in range(0, len(members), STEP_MEMBERS):
        for member in members[at : at + STEP_MEMBERS]:
            texts.append(dumps(to_json(member)).decode())
        yield


def check_group(config: SubscriptionGroupConfig) -> None:
    """Refuse a group that no client could use.

    RocketMQ takes any name here; the topics of a group whose name it would not take on
    first use (docs/facts/broker.md 11.8) could not exist.

    @raise InvalidParameter: the name, or the number of queues of its retry topic.
    @raise SystemFailure: an attribute: there are none for groups.
    """
    problem = group_problem(config.group_name)
    if problem is not None or not config.group_name:
        raise InvalidParameter(problem or "the group has no name")
    if not 0 <= config.retry_queue_nums <= MAX_QUEUES:
        raise InvalidParameter(
            f"a topic has from 0 to {MAX_QUEUES} queues, not {config.retry_queue_nums}"
        )
    for key in config.attributes:
        raise SystemFailure(f"unsupported key: {key.lstrip('+-')}")
