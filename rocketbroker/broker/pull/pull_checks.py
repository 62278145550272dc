# -*- test-case-name: tests.broker.pull.test_pull_checks -*-
"""The checks of a pull, in RocketMQ's order, and their errors.

C{docs/facts/broker.md} 12.2.
"""

from __future__ import annotations

from typing import Final, final

from rocketbroker.broker.clients.consumers import ConsumerRegistry
from rocketbroker.broker.clients.sql_filters import (
    Filters,
    check_kind,
    wanted_by,
)
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.metadata.groups import GroupTable
from rocketbroker.broker.metadata.topics import READ, TopicTable
from rocketbroker.broker.pull.denied_pulls import ANY_TOPIC, DeniedPulls, PullForbidden
from rocketbroker.broker.pull.long_polling import MAX_KEPT_CHARACTERS
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import (
    FAQ,
    FilterDataNotExist,
    FilterDataNotLatest,
    InvalidParameter,
    SubscriptionGroupNotExist,
    SubscriptionNotExist,
    SubscriptionNotLatest,
    SubscriptionParseFailed,
    SystemBusy,
    TopicNotExist,
)
from rocketbroker.filtering import tags
from rocketbroker.records.names import (
    group_of_retry_topic,
    is_retry_topic,
    is_system_group,
)
from rocketbroker.remoting.interfaces import IConnection
from rocketbroker.store.interfaces import IQueue, IStore
from rocketbroker.store.reads import Matches, MessageFilter
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig
from rocketbroker.wire.bodies.heartbeats import SubscriptionData
from rocketbroker.wire.headers.pull import SUBSCRIPTION
from rocketbroker.wire.hot import PullFields

#: The remark to a pull at a slave without slaveReadEnable, as RocketMQ words it.
NO_SLAVE_READ: Final = "[REJECTREQUEST]system busy, start flow control for a while"

#: How many outcomes are kept. Subscriptions come from clients, so their number has no
#: other bound; beyond it all are forgotten and made again.
MAX_ROUTES: Final = 8192

#: How many groups and topics are counted for, a few hundred bytes each. When there are
#: so many, those that are gone are forgotten; LMQs need no creation and are never
#: gone, so that beyond it all begin at 0 again.
MAX_COUNTED: Final = 65536

#: Those that are gone are looked for from so many on, and when twice as many are there
#: as the last time.
FEW_COUNTED: Final = 1024

BROADCASTING: Final = "BROADCASTING"
ACTIVELY: Final = "CONSUME_ACTIVELY"

#: Stands in the key of a route for "as the group is registered".
_REGISTERED: Final = "\0registered"


@final
class PullCounts:
    """What one group has pulled of one topic.

    @ivar messages: how many messages were handed out.
    @ivar bytes: how many bytes of records they are.
    @ivar is_system: whether the topic is one of the system.
    @ivar pulls: how many pulls got them.
    @ivar read_ms: how long their reads took; one that goes the hot way takes no time.
    """

    __slots__ = (
        "bytes",
        "group",
        "is_system",
        "messages",
        "pulls",
        "read_ms",
        "topic",
    )

    def __init__(self, group: str, topic: str, is_system: bool) -> None:
        self.group = group
        self.topic = topic
        self.is_system = is_system
        self.messages = 0
        self.bytes = 0
        self.pulls = 0
        self.read_ms = 0


@final
class Route:
    """The outcome of the checks for one group, topic and subscription.

    @ivar matches: what it is for, None for all.
    @ivar filters_revision: of all SQL92 filters that it rests on; -1: on one at most.
    @ivar subscription: the registered subscription that it rests on; None if the pull
        carries its own.
    @ivar read_queues: how many queues may be read.
    @ivar queues: the store's handles, by queue id.
    """

    __slots__ = (
        "broker_id",
        "counts",
        "filters_revision",
        "group",
        "group_flag",
        "matches",
        "message_model",
        "queues",
        "read_queues",
        "slow_broker_id",
        "sub_version",
        "subscription",
        "topic",
        "topic_flag",
    )

    def __init__(self, group: str, topic: str, counts: PullCounts) -> None:
        self.group = group
        self.topic = topic
        self.counts = counts
        self.matches: Matches = None
        self.filters_revision = -1
        self.subscription: SubscriptionData | None = None
        self.sub_version = 0
        self.message_model = ""
        self.read_queues = 0
        self.topic_flag = 0
        self.group_flag = 0
        self.broker_id = 0
        self.slow_broker_id = 0
        self.queues: dict[int, IQueue] = {}


@final
class PullChecks:
    """Checks pulls and remembers what came of it.

    @ivar compiler: of SQL92 expressions; a check says L{NotCompiled
        <rocketbroker.broker.clients.sql_compiler.NotCompiled>} if one has to be waited
        for.
    @ivar forgotten_messages: how many were handed out of topics that are not counted
        any more, those of the system left out.
    """

    def __init__(
        self,
        context: BrokerContext,
        topics: TopicTable,
        groups: GroupTable,
        consumers: ConsumerRegistry,
        filters: Filters,
        refusals: DeniedPulls,
        max_counted: int = MAX_COUNTED,
    ) -> None:
        self.forgotten_messages = 0
        self.compiler = filters.compiler
        self._max_counted = max_counted
        self._forget_at = min(FEW_COUNTED, max_counted)
        self._store: IStore = context.store
        self._refusals = refusals
        self._filters = filters
        self._topics = topics
        self._groups = groups
        self._consumers = consumers
        self._options = context.settings.broker
        self._generations = (-1, -1)
        self._routes: dict[tuple[str, str, str | None, str | None], Route] = {}
        self._counts: dict[tuple[str, str], PullCounts] = {}

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._options = settings.broker
        self._routes.clear()

    def counters(self) -> list[PullCounts]:
        """What was pulled, by group and topic."""
        return list(self._counts.values())

    def check(
        self, connection: IConnection, fields: PullFields
    ) -> tuple[Route, IQueue]:
        """The route of a pull and the queue that it reads.

        @raise BrokerError: it fails a check.
        """
        generations = self._topics.generation, self._groups.generation
        if generations != self._generations:
            self._routes.clear()
            self._generations = generations
        own = fields.sysFlag & SUBSCRIPTION
        if own:
            key = (
                fields.consumerGroup,
                fields.topic,
                fields.subscription,
                fields.expressionType,
            )
        else:
            key = fields.consumerGroup, fields.topic, None, _REGISTERED
        route = self._routes.get(key)
        if route is None or not (own or self._is_latest(route, fields)):
            route = self._make(connection, fields)
            if len(self._routes) >= MAX_ROUTES:
                self._routes.clear()
            self._generations = self._topics.generation, self._groups.generation
            if self._is_small(route, fields) if own else self._is_latest(route, fields):
                self._routes[key] = route
        if self._options.reject_pull_consumer_enable:
            self._check_member(connection, fields.consumerGroup)
        queue = route.queues.get(fields.queueId)
        if queue is None:
            check_queue_id(connection, fields, route.read_queues)
            queue = self._store.queue(fields.topic, fields.queueId)
            route.queues[fields.queueId] = queue
        return route, queue

    def _is_small(self, route: Route, fields: PullFields) -> bool:
        """Whether a route may be kept that rests on what a pull brought.

        Compiled expressions are too large; the last ones are kept where they are made.
        """
        return (
            not isinstance(route.matches, MessageFilter)
            and len(fields.subscription or "") <= MAX_KEPT_CHARACTERS
        )

    def _is_latest(self, route: Route, fields: PullFields) -> bool:
        """Whether a route still rests on what the group is subscribed to."""
        online = self._consumers.group(fields.consumerGroup)
        return (
            online is not None
            and route.subscription is online.subscriptions.get(fields.topic)
            and route.message_model == (online.message_model or "")
            and route.sub_version >= fields.subVersion
            and route.filters_revision in (-1, self._filters.revision)
        )

    def _make(self, connection: IConnection, fields: PullFields) -> Route:
        """All checks, in RocketMQ's order."""
        if self._options.broker_id and not self._options.slave_read_enable:
            raise SystemBusy(NO_SLAVE_READ)
        name, topic = fields.consumerGroup, fields.topic
        broker = f"the broker[{self._options.broker_ip1}]"
        if not self._options.broker_permission & READ:
            raise PullForbidden(1, f"{broker} pulling message is forbidden")
        group = self._groups.find(name)
        if group is None:
            raise SubscriptionGroupNotExist(
                f"subscription group [{name}] does not exist, {FAQ}"
            )
        if not group.consume_enable:
            self._refusals.note(name, ANY_TOPIC, connection.peer)
            raise PullForbidden(2, f"subscription group no permission, {name}")
        config = self._topics.config(topic)
        if config is None:
            raise TopicNotExist(f"topic[{topic}] not exist, apply first please!{FAQ}")
        if not config.perm & READ:
            self._refusals.note(name, topic, connection.peer)
            raise PullForbidden(3, f"the topic[{topic}] pulling message is forbidden")
        check_queue_id(connection, fields, config.read_queue_nums)
        route = Route(name, topic, self.counts_of(name, topic))
        if fields.sysFlag & SUBSCRIPTION:
            self._filter_by_own(route, fields.subscription, fields.expressionType)
        else:
            self._filter_as_registered(connection, route, group, fields)
        if self._options.filter_support_retry and is_retry_topic(topic):
            codes = None if isinstance(route.matches, MessageFilter) else route.matches
            retried = group_of_retry_topic(topic)
            route.matches = self._filters.for_retries(retried, codes)
            route.filters_revision = self._filters.revision
        route.read_queues = config.read_queue_nums
        route.topic_flag = config.topic_sys_flag
        route.group_flag = group.group_sys_flag
        if self._options.slave_read_enable:
            route.broker_id = group.broker_id
            route.slow_broker_id = group.which_broker_when_consume_slowly
        return route

    def counts_of(self, group: str, topic: str) -> PullCounts:
        """What a group has pulled of a topic; both are there."""
        counts = self._counts.get((group, topic))
        if counts is None:
            if len(self._counts) >= self._forget_at:
                self._forget()
            is_system = self._topics.is_system(topic)
            counts = PullCounts(group, topic, is_system)
            self._counts[group, topic] = counts
        return counts

    def _forget(self) -> None:
        """Forget the counts of what is gone, or all if there are too many without."""
        gone = [
            key
            for key in self._counts
            if self._groups.config(key[0]) is None
            or self._topics.config(key[1]) is None
        ]
        if len(self._counts) - len(gone) >= self._max_counted:
            gone = list(self._counts)
        for key in gone:
            counts = self._counts.pop(key)
            if not counts.is_system:
                self.forgotten_messages += counts.messages
        # Routes count where they did when they were made.
        self._routes.clear()
        few = max(FEW_COUNTED, 2 * len(self._counts))
        self._forget_at = min(few, self._max_counted)

    def _filter_as_registered(
        self,
        connection: IConnection,
        route: Route,
        group: SubscriptionGroupConfig,
        fields: PullFields,
    ) -> None:
        """Filter by the subscription that the group's heartbeats brought."""
        name, topic = route.group, route.topic
        online = self._consumers.group(name)
        if online is None:
            raise SubscriptionNotExist(f"the consumer's group info not exist{FAQ}")
        if not group.consume_broadcast_enable and online.message_model == BROADCASTING:
            raise PullForbidden(
                4, f"the consumer group[{name}] can not consume by broadcast way"
            )
        if self._groups.read_forbidden(name, topic):
            self._refusals.note(name, topic, connection.peer)
            raise PullForbidden(
                5, f"the consumer group[{name}] is forbidden for topic[{topic}]"
            )
        found = online.subscriptions.get(topic)
        if found is None:
            raise SubscriptionNotExist(f"the consumer's subscription not exist{FAQ}")
        is_newer = found.sub_version < fields.subVersion
        if not tags.is_tag_type(found.expression_type):
            if is_newer:
                raise SubscriptionNotLatest("the consumer's subscription not latest")
            self._filter_by_heartbeat(route, found.expression_type, fields.subVersion)
        elif not is_newer:
            self._filter_by_tags(route, found.sub_string, found.expression_type)
        # Else the client has given its subscription a new version, as it does whenever
        # its queues change, and the heartbeat with it was not sent, because another one
        # was on its way: a race of the Java client, met once in ten starts. The
        # reference refuses, and the consumer stands still until the next heartbeat, for
        # 20 seconds or more. By tags a client filters itself, too, so everything may be
        # given to it meanwhile; to it alone, so that this route is not kept.
        route.subscription = found
        route.sub_version = found.sub_version
        route.message_model = online.message_model or ""

    def _filter_by_heartbeat(self, route: Route, kind: str, version: int) -> None:
        """Filter by the expression that a heartbeat brought."""
        found = self._filters.ready(route.topic, route.group)
        if found is None:
            remark = "The broker's consumer filter data is not exist!"
            why = self._filters.no_room(route.topic, route.group)
            raise FilterDataNotExist(remark + (f" {why}" if why else ""))
        known, wanted = found
        if known.version < version:
            raise FilterDataNotLatest("the consumer's consumer filter data not latest")
        check_kind(self._options, kind)
        route.matches = wanted

    def _filter_by_own(self, route: Route, text: str | None, kind: str | None) -> None:
        """Filter by what the pull says itself.

        RocketMQ gives every message to one whose expression does not compile: an
        assertion that is off is all that stands before it. It does refuse its pop.
        """
        if tags.is_tag_type(kind):
            self._filter_by_tags(route, text, kind)
            return
        if not text:
            raise SubscriptionParseFailed("parse the consumer's subscription failed")
        check_kind(self._options, kind)
        compiled = self._filters.compiler.find(text, kind or "")
        route.matches = wanted_by(compiled)

    def _filter_by_tags(self, route: Route, text: str | None, kind: str | None) -> None:
        try:
            route.matches = tags.parse(text, kind).matcher()
        except SubscriptionParseFailed:
            raise SubscriptionParseFailed(
                "parse the consumer's subscription failed"
            ) from None

    def _check_member(self, connection: IConnection, name: str) -> None:
        """With rejectPullConsumerEnable: only registered push consumers may pull."""
        online = self._consumers.group(name)
        if online is not None and (
            online.consume_type != ACTIVELY or connection in online.members
        ):
            return
        if not is_system_group(name):
            raise SubscriptionNotExist(
                f"the consumer's group info not exist, or the pull consumer is "
                f"rejected by server.{FAQ}"
            )


def check_queue_id(
    connection: IConnection, fields: PullFields, read_queues: int
) -> None:
    """Refuse a queue that the topic does not have.

    @raise InvalidParameter: it does not.
    """
    if not 0 <= fields.queueId < read_queues:
        raise InvalidParameter(
            f"queueId[{fields.queueId}] is illegal, topic:[{fields.topic}] "
            f"topicConfig.readQueueNums:[{read_queues}] consumer:[{connection.peer}]"
        )
