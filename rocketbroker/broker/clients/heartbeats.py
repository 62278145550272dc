# -*- test-case-name: tests.broker.clients.test_heartbeats -*-
"""Heartbeats (request 34), farewells (35), and checks of subscriptions (46).

Rules: docs/facts/broker.md 15.1 to 15.3.

A heartbeat of the second version may leave out its subscriptions because the broker
knows them. A broker that was restarted since does not know them, and asks for them by
IS_SUB_CHANGE; RocketMQ does not ask, and stays without them.

A long heartbeat is read and taken over in slices, a group at a time, and answered at
the end of them. What the same connection says meanwhile of its groups waits for that,
so that the last word counts.

The retry topic of a new group is created here, so its first members could not find it
when they started. A client asks for the route of a new topic in one round of
rebalancing and uses its queues in the next. Rounds are 20 s apart, so a message that
failed would come again only after that time. Two rules make it faster:

  - The answer and the notice, which both start a round, are sent when the name servers
    know the topic, as in RocketMQ. Otherwise it takes one round more.
  - Both often start the same round. So a member is notified once more when it asks for
    the list of members for the first time: it is within a round then, and another one
    follows. RocketMQ does not do this: with clients of 4.9 on a busy machine, four of
    eight first retries came 20 s late."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar, final

from twisted.internet.defer import Deferred

from rocketbroker.broker.clients.consumers import ConsumerRegistry
from rocketbroker.broker.clients.producers import ProducerRegistry
from rocketbroker.broker.clients.sql_filters import (
    Filters,
    check_kind,
)
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.json_bodies import body_in_steps, decoded, unreadable
from rocketbroker.broker.metadata.groups import GroupTable
from rocketbroker.broker.metadata.topics import (
    READ,
    UNIT_SUBSCRIPTION,
    WRITE,
    TopicTable,
)
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import InvalidParameter, RemoteProtocolError, SystemBusy
from rocketbroker.filtering import tags
from rocketbroker.records.names import retry_topic
from rocketbroker.remoting.interfaces import (
    Answer,
    IConnection,
    IResponderTable,
    ISlices,
)
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig
from rocketbroker.wire.bodies.heartbeats import (
    MAX_SUBSCRIPTIONS,
    MAX_VALUES,
    CheckClientRequestBody,
    ConsumerData,
    HeartbeatData,
)
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.headers.client import UnregisterClientRequestHeader
from rocketbroker.wire.steps import Steps, finished

T = TypeVar("T")

ACTIVELY = "CONSUME_ACTIVELY"

#: The groups of consumers, and as many of producers, that one connection may be in:
#: each is kept as long as the connection, and takes a sixth of a millisecond of each
#: heartbeat, in which no other client is served. A client has a handful.
MAX_GROUPS: Final = 1024

#: Heartbeats up to this length, of so many groups, are taken over in the turn in which
#: they come, which takes some milliseconds: those of clients with two hundred topics.
MAX_AT_ONCE: Final = 32 << 10
MAX_GROUPS_AT_ONCE: Final = 32

#: How many of one connection wait for slices: a client sends the next one when it has
#: the answer.
MAX_WAITING: Final = 16

#: How many bytes of bodies wait, of all connections: four of the longest frames.
MAX_BYTES: Final = 64 << 20

#: How long an answer waits for name servers: less than the three seconds for which
#: clients wait for it, after which they close the connection.
ANNOUNCE_SECONDS: Final = 2.0


def check_groups(known: Sequence[str], named: set[str]) -> None:
    """Refuse more groups than one connection may be in.

    @param known: those that it is in.
    @param named: those that a heartbeat names.
    @raise InvalidParameter: together they are too many.
    """
    count = len(named.union(known))
    if count > MAX_GROUPS:
        raise InvalidParameter(
            f"a connection in {count} groups, the most is {MAX_GROUPS}"
        )


@final
class WaitingHeartbeats:
    """Heartbeats and farewells that are done in slices; their bodies are kept
    meanwhile."""

    def __init__(self, slices: ISlices) -> None:
        self._slices = slices
        self._counts: dict[IConnection, int] = {}
        self._bytes = 0

    def __contains__(self, connection: IConnection) -> bool:
        """Whether something is done for a connection."""
        return connection in self._counts

    def run(
        self, connection: IConnection, request: Command, work: Iterator[None]
    ) -> Deferred[None]:
        """Do work for a request, behind what is done for its connection already.

        @raise SystemBusy: too much waits.
        """
        count, size = self._counts.get(connection, 0), len(request.body)
        if count >= MAX_WAITING:
            raise SystemBusy(f"{count} requests of this connection wait to be read")
        if self._bytes + size > MAX_BYTES:
            raise SystemBusy(
                f"{self._bytes} bytes of requests wait to be read, at most {MAX_BYTES}"
            )
        self._counts[connection] = count + 1
        self._bytes += size

        def ended(result: T) -> T:
            self._bytes -= size
            self._counts[connection] -= 1
            if not self._counts[connection]:
                del self._counts[connection]
            return result

        return self._slices.run(connection, work).addBoth(ended)


@final
class Heartbeats:
    """Fills the registries of consumers and producers.

    @ivar received: how many heartbeats came.
    """

    def __init__(
        self,
        context: BrokerContext,
        topics: TopicTable,
        groups: GroupTable,
        consumers: ConsumerRegistry,
        producers: ProducerRegistry,
        filters: Filters,
        announced: Callable[[float], Deferred[None]],
    ) -> None:
        """
        @param announced: fires once the name servers know all topics, or after
            so many seconds.
        """
        self.received = 0
        self._announced = announced
        self._waiting = WaitingHeartbeats(context.slices)
        self._filters = filters
        self._options = context.settings.broker
        self._topics = topics
        self._groups = groups
        self._consumers = consumers
        self._producers = producers

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._options = settings.broker

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        table.register(RequestCode.HEART_BEAT, self.heart_beat)
        table.register(RequestCode.UNREGISTER_CLIENT, self.unregister)
        check_client = self._filters.compiler.waiting(self.check_client)
        table.register(RequestCode.CHECK_CLIENT_CONFIG, check_client)

    def heart_beat(self, connection: IConnection, request: Command) -> Answer:
        """Request 34: successful whatever becomes of its groups.

        @raise InvalidParameter: too many of them; then none is taken.
        """
        short = None
        if len(request.body) <= MAX_AT_ONCE:
            short = decoded(request, HeartbeatData.from_json)
            count = len(short.consumer_data_set) + len(short.producer_data_set)
            if count <= MAX_GROUPS_AT_ONCE and connection not in self._waiting:
                taken = finished(self._taken(connection, request, short))
                return self._answer(request, *taken)
        outcome: list[tuple[bool, list[str]]] = []

        def heartbeat() -> Steps[None]:
            data = short or (yield from self._read(request))
            outcome.append((yield from self._taken(connection, request, data)))

        done = self._waiting.run(connection, request, heartbeat())
        return done.addCallback(lambda _: self._answer(request, *outcome[0]))

    @staticmethod
    def _read(request: Command) -> Steps[HeartbeatData]:
        value = yield from body_in_steps(request, MAX_VALUES)
        try:
            return (yield from HeartbeatData.in_steps(value))
        except RemoteProtocolError as error:
            raise unreadable(error) from error

    def _taken(
        self, connection: IConnection, request: Command, data: HeartbeatData
    ) -> Steps[tuple[bool, list[str]]]:
        """Take over a heartbeat, a group in each step.

        @return: whether the broker has to hear more, and the groups whose retry topics
            were made.
        """
        self._check(connection, data)
        self.received += 1
        changed = False
        made: list[str] = []
        for consumer in data.consumer_data_set:
            if connection.closed:
                return False, made
            changed |= self._consumer(connection, request, data, consumer, made)
            yield
        for producer in data.producer_data_set:
            if connection.closed:
                return False, made
            self._producers.register(
                connection,
                data.client_id,
                request.language,
                request.version,
                producer.group_name,
            )
            yield
        return changed or data.heartbeat_fingerprint == 0, made

    def _check(self, connection: IConnection, data: HeartbeatData) -> None:
        """Refuse what would be too much on one connection.

        @raise InvalidParameter: it would.
        """
        consumers = data.consumer_data_set
        named = {consumer.group_name for consumer in consumers}
        known = self._consumers.groups_on(connection)
        check_groups(known, named)
        check_groups(
            self._producers.groups_on(connection),
            {producer.group_name for producer in data.producer_data_set},
        )
        others = [self._consumers.group(name) for name in known if name not in named]
        count = sum(len(consumer.subscription_data_set) for consumer in consumers)
        count += sum(len(group.subscriptions) for group in others if group is not None)
        if count > MAX_SUBSCRIPTIONS:
            raise InvalidParameter(
                f"a connection with {count} subscriptions, the most is "
                f"{MAX_SUBSCRIPTIONS}"
            )

    def _answer(self, request: Command, changed: bool, made: list[str]) -> Answer:
        """The answer to a heartbeat; after the name servers know new retry topics."""
        ext = {
            "IS_SUPPORT_HEART_BEAT_V2": "true",
            "IS_SUB_CHANGE": "true" if changed else "false",
        }
        answer = response_to(request, ext=ext)
        if not made:
            return answer
        announced = self._announced(ANNOUNCE_SECONDS)
        return announced.addCallback(self._retry_topics_known, made, answer)

    def _retry_topics_known(
        self, _: None, groups: list[str], answer: Command
    ) -> Command | None:
        """Clients find the retry topics that a heartbeat has made."""
        for name in groups:
            config = self._groups.config(name)
            if config is None or config.notify_consumer_ids_changed_enable:
                self._consumers.retry_topic_made(name)
        return answer

    def _consumer(
        self,
        connection: IConnection,
        request: Command,
        data: HeartbeatData,
        consumer: ConsumerData,
        made: list[str],
    ) -> bool:
        """One consumer of a heartbeat.

        @param made: takes its group if its retry topic is made for it.
        @return: whether the broker has to hear more of it.
        """
        options = self._options
        if options.reject_pull_consumer_enable and consumer.consume_type == ACTIVELY:
            return False
        config = self._groups.find(consumer.group_name)
        if config is None:
            return False
        is_new = self._retry_topic(config, consumer)
        if is_new:
            made.append(consumer.group_name)
        fingerprint = data.heartbeat_fingerprint
        without = fingerprint != 0 and data.without_sub
        known = self._consumers.group(consumer.group_name)
        unheard = known is None or known.fingerprint is None
        group = self._consumers.register(
            connection,
            data.client_id,
            request.language,
            request.version,
            consumer,
            notify=config.notify_consumer_ids_changed_enable and not is_new,
            with_subscriptions=not without,
        )
        if not without:
            self._filters.register(group.name, consumer.subscription_data_set)
        if without and unheard:
            return True
        before, group.fingerprint = group.fingerprint, fingerprint
        return before is not None and before != fingerprint

    def _retry_topic(
        self, config: SubscriptionGroupConfig, consumer: ConsumerData
    ) -> bool:
        """Create the retry topic of a group, for messages that it fails to consume.

        @return: whether it was created now.
        """
        name = retry_topic(consumer.group_name)
        is_new = self._topics.config(name) is None
        order = any(
            (topic := self._topics.config(subscription.topic)) is not None
            and topic.order
            for subscription in consumer.subscription_data_set
        )
        self._topics.ensure(
            name,
            config.retry_queue_nums,
            READ | WRITE,
            order,
            UNIT_SUBSCRIPTION if consumer.unit_mode else 0,
        )
        return is_new

    def unregister(self, connection: IConnection, request: Command) -> Answer:
        """Request 35: always successful, known or not."""
        if connection in self._waiting:
            done = self._waiting.run(connection, request, iter(()))
            return done.addCallback(lambda _: self._unregister(connection, request))
        return self._unregister(connection, request)

    def _unregister(self, connection: IConnection, request: Command) -> Command:
        header = UnregisterClientRequestHeader.from_ext(request.ext)
        if header.producer_group:
            self._producers.unregister(connection, header.producer_group)
        if header.consumer_group:
            config = self._groups.config(header.consumer_group)
            notify = config is None or config.notify_consumer_ids_changed_enable
            self._consumers.unregister(connection, header.consumer_group, notify)
        return response_to(request)

    def check_client(self, connection: IConnection, request: Command) -> Command:
        """Request 46: whether a subscription could be served.

        @raise SystemFailure: filters that are not by tags are switched off.
        @raise SubscriptionParseFailed: it makes no sense; the remark says why.
        """
        checked = decoded(request, CheckClientRequestBody.from_json).subscription_data
        if not tags.is_tag_type(checked.expression_type):
            check_kind(self._options, checked.expression_type)
            self._filters.compiler.find(checked.sub_string, checked.expression_type)
        return response_to(request)
