# -*- test-case-name: tests.broker.pop.test_pop -*-
"""The checks of a pop, in RocketMQ's order, and their errors.

Their outcome is kept as a L{PopRoute} until topics or groups change.

C{docs/facts/broker.md} 20.2, 20.7.
"""

from __future__ import annotations

from typing import Final, final

from rocketbroker.broker.clients.sql_filters import (
    check_kind,
    wanted_by,
)
from rocketbroker.broker.metadata.groups import GroupTable
from rocketbroker.broker.metadata.topics import READ, TopicTable
from rocketbroker.broker.pull.long_polling import MAX_KEPT_CHARACTERS
from rocketbroker.broker.pull.pull_checks import MAX_ROUTES, PullChecks, PullCounts
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import (
    FAQ,
    InvalidParameter,
    NoPermission,
    SubscriptionGroupNotExist,
    SubscriptionParseFailed,
    SystemFailure,
    TopicNotExist,
)
from rocketbroker.filtering import tags
from rocketbroker.store.reads import Matches, MessageFilter

#: The most messages that one pop may ask for.
MAX_MESSAGES: Final = 32

#: Why pops are refused whose check points are to be kept elsewhere.
NO_KEY_VALUE_STORE: Final = (
    "popConsumerKVServiceEnable is set, and this broker keeps check points of POP in "
    "its log only: turn it off to pop messages"
)


@final
class PopRoute:
    """The outcome of the checks for one group, topic and expression.

    @ivar matches: what it is for, None for all.
    @ivar read_queues: how many queues the topic has.
    @ivar counts: what the group has got of the topic.
    """

    __slots__ = ("counts", "group", "matches", "read_queues", "topic")

    def __init__(
        self,
        group: str,
        topic: str,
        matches: Matches,
        read_queues: int,
        counts: PullCounts,
    ) -> None:
        self.group = group
        self.topic = topic
        self.matches = matches
        self.read_queues = read_queues
        self.counts = counts


@final
class PopChecks:
    """Checks pops and remembers what came of it.

    @ivar compiler: of SQL92 expressions; a check says L{NotCompiled
        <rocketbroker.broker.clients.sql_compiler.NotCompiled>} if one has to be waited
        for.
    """

    def __init__(
        self,
        topics: TopicTable,
        groups: GroupTable,
        pull_checks: PullChecks,
        timer: bool,
        options: BrokerOptions,
    ) -> None:
        """
        @param pull_checks: counts what is read.
        @param timer: timerWheelEnable, which check points need.
        """
        self._topics = topics
        self._groups = groups
        self._pull_checks = pull_checks
        self.compiler = pull_checks.compiler
        self._timer = timer
        self._options = options
        self._generations = (-1, -1)
        self._routes: dict[tuple[str, str, str | None, str], PopRoute] = {}

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._options = settings.broker
        self._routes.clear()

    def check(
        self, group: str, topic: str, queue_id: int, kind: str | None, text: str
    ) -> PopRoute:
        """The route of a pop.

        @param kind: of the expression. C{text}: the expression itself; empty for all.
        @raise BrokerError: it fails a check.
        """
        generations = self._topics.generation, self._groups.generation
        if generations != self._generations:
            self._routes.clear()
            self._generations = generations
        key = group, topic, kind, text
        route = self._routes.get(key)
        if route is None:
            route = self._make(group, topic, kind, text)
            if len(self._routes) >= MAX_ROUTES:
                self._routes.clear()
            # A group may have been made.
            self._generations = self._topics.generation, self._groups.generation
            if (
                not isinstance(route.matches, MessageFilter)
                and len(text) <= MAX_KEPT_CHARACTERS
            ):
                self._routes[key] = route
        if queue_id >= route.read_queues:
            raise InvalidParameter(
                f"queueId[{queue_id}] is illegal, topic:[{topic}] "
                f"topicConfig.readQueueNums:[{route.read_queues}]"
            )
        return route

    def check_pop(self, most: int) -> None:
        """What a pop needs besides.

        @param most: how many messages it asks for.
        @raise BrokerError: it fails a check.
        """
        if not self._options.broker_permission & READ:
            self._forbid()
        if most > MAX_MESSAGES:
            raise InvalidParameter(
                f"the broker[{self._options.broker_ip1}] pop message's num is greater "
                f"than {MAX_MESSAGES}"
            )
        if self._options.pop_consumer_kv_service_enable:
            raise SystemFailure(NO_KEY_VALUE_STORE)
        if not self._timer:
            raise SystemFailure(
                f"the broker[{self._options.broker_ip1}] pop message is forbidden "
                "because timerWheelEnable is false"
            )

    def _forbid(self) -> None:
        raise NoPermission(
            f"the broker[{self._options.broker_ip1}] pop message is forbidden"
        )

    def _make(self, name: str, topic: str, kind: str | None, text: str) -> PopRoute:
        """All checks, in RocketMQ's order."""
        if not self._options.broker_permission & READ:
            self._forbid()
        config = self._topics.config(topic)
        if config is None:
            raise TopicNotExist(f"topic[{topic}] not exist, apply first please! {FAQ}")
        if not config.perm & READ:
            raise NoPermission(f"the topic[{topic}] peeking message is forbidden")
        group = self._groups.find(name)
        if group is None:
            raise SubscriptionGroupNotExist(
                f"subscription group [{name}] does not exist, {FAQ}"
            )
        if not group.consume_enable:
            raise NoPermission(f"subscription group no permission, {name}")
        return PopRoute(
            name,
            topic,
            self._matches(kind, text),
            config.read_queue_nums,
            self._pull_checks.counts_of(name, topic),
        )

    def _matches(self, kind: str | None, text: str) -> Matches:
        if not text:
            return None
        try:
            if tags.is_tag_type(kind):
                return tags.parse(text, kind).matcher()
            check_kind(self._options, kind)
            return wanted_by(self.compiler.find(text, kind or ""))
        except SubscriptionParseFailed:
            raise SubscriptionParseFailed(
                "parse the consumer's subscription failed"
            ) from None
