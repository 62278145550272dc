# -*- test-case-name: tests.broker.test_filters -*-
"""The SQL92 filters of groups, by topic, as their heartbeats bring them.

A filter has a version, that of the subscription, and a time of birth, when its
expression last changed: the bit maps of messages that were stored before say nothing
about it. A group that goes away leaves its filters dead; they are kept for a day, as
a consumer that comes back with the same expression goes on where it was, and bit maps
of meanwhile stand for it.

An expression that does not compile makes no filter; the client learns why when it asks
whether its subscription could be served, before it starts.

Rules: the broker sheet, section 13.2.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, final

from twisted.logger import Logger

from rocketbroker.config.broker import BrokerOptions
from rocketbroker.errors import SubscriptionParseFailed
from rocketbroker.filtering import sql, tags
from rocketbroker.records.properties import decode
from rocketbroker.store.interfaces import Wanted
from rocketbroker.wire.heartbeats import SubscriptionData

#: How many characters all expressions together may have. They come from clients and
#: are kept when these have gone, so without a limit they would fill the memory. A
#: thousand groups with long expressions have a tenth of it. Beyond it those that have
#: been dead for the longest time go first; when all are alive, a new one is not taken
#: and pulls for it are answered as if nobody had subscribed.
MOST_CHARACTERS: Final = 16 << 20

#: What a filter counts beside its expression.
OVERHEAD: Final = 256

#: What evaluating an expression costs, as bytes looked at for each of its characters.
COST: Final = 1


@final
class Filter:
    """What one group wants of one topic.

    @ivar kind: the type of the expression, C{SQL92}.
    @ivar version: of the subscription: when a client made it, in ms.
    @ivar born_ms: when the expression was new.
    @ivar dead_ms: when the group left, 0 if it is there.
    @ivar wanted: for the store.
    """

    __slots__ = (
        "born_ms",
        "compiled",
        "dead_ms",
        "expression",
        "group",
        "kind",
        "topic",
        "version",
        "wanted",
    )

    def __init__(
        self,
        group: str,
        topic: str,
        compiled: sql.SqlFilter,
        version: int,
        born_ms: int,
        dead_ms: int = 0,
    ) -> None:
        self.group = group
        self.topic = topic
        self.kind = tags.SQL92
        self.expression = compiled.expression
        self.compiled = compiled
        self.version = version
        self.born_ms = born_ms
        self.dead_ms = dead_ms
        self.wanted = wanted_by(compiled)

    @property
    def size(self) -> int:
        """How much of L{MOST_CHARACTERS} it takes."""
        return len(self.expression) + OVERHEAD


def wanted_by(compiled: sql.SqlFilter) -> Wanted:
    """An expression, for the store."""

    def matches(properties: bytes) -> bool:
        return compiled.matches(decode(properties))

    return Wanted(None, matches, cost=COST * len(compiled.expression))


def compile_for_pull(expression: str, kind: str) -> sql.SqlFilter:
    """The filter of an expression that a client sent.

    @raise SubscriptionParseFailed: it is none, or of no type that is known.
    """
    if kind != tags.SQL92:
        raise SubscriptionParseFailed(f"there is no type of filter {kind[:64]!r}")
    return sql.compiled(expression)


@final
class Filters:
    """All filters.

    @ivar refused: how many did not compile, or had no room.
    """

    _log = Logger()

    def __init__(self, options: BrokerOptions, wall_ms: Callable[[], int]) -> None:
        self.refused = 0
        self._options = options
        self._wall_ms = wall_ms
        self._by_topic: dict[str, dict[str, Filter]] = {}
        self._size = 0

    def get(self, topic: str, group: str) -> Filter | None:
        """A group's filter for a topic."""
        return self._by_topic.get(topic, {}).get(group)

    def of_topic(self, topic: str) -> Collection[Filter]:
        """All filters for a topic, dead ones too."""
        return self._by_topic.get(topic, {}).values()

    def all(self) -> list[Filter]:
        """All filters."""
        return [each for groups in self._by_topic.values() for each in groups.values()]

    def register(self, group: str, wanted: Collection[SubscriptionData]) -> None:
        """Take over what a heartbeat subscribes to."""
        for data in wanted:
            if not tags.is_tag_type(data.expression_type) and data.sub_string:
                self._register(group, data)

    def _register(self, group: str, data: SubscriptionData) -> None:
        known = self.get(data.topic, group)
        if known is not None:
            if data.sub_version < known.version:
                return
            if data.sub_version == known.version:
                known.dead_ms = 0
                return
            same = known.expression, known.kind
            if same == (data.sub_string, data.expression_type):
                known.version = data.sub_version
                known.dead_ms = 0
                return
            self._remove(known)
        try:
            compiled = compile_for_pull(data.sub_string, data.expression_type)
        except SubscriptionParseFailed as error:
            self.refused += 1
            self._log.warn(
                "group {group} filters {topic} by what cannot be compiled: {why}",
                group=group,
                topic=data.topic,
                why=error.remark,
            )
            return
        self._add(
            Filter(group, data.topic, compiled, data.sub_version, self._wall_ms())
        )

    def _add(self, added: Filter) -> None:
        if self._size + added.size > MOST_CHARACTERS:
            self._make_room(added.size)
        if self._size + added.size > MOST_CHARACTERS:
            self.refused += 1
            self._log.error(
                "no room for the filter of group {group} for {topic}",
                group=added.group,
                topic=added.topic,
            )
            return
        self._by_topic.setdefault(added.topic, {})[added.group] = added
        self._size += added.size

    def _make_room(self, size: int) -> None:
        """Let go what has been dead for the longest time."""
        dead = [each for each in self.all() if each.dead_ms]
        for each in sorted(dead, key=lambda each: each.dead_ms):
            if self._size + size <= MOST_CHARACTERS:
                break
            self._remove(each)

    def _remove(self, gone: Filter) -> None:
        groups = self._by_topic[gone.topic]
        del groups[gone.group]
        self._size -= gone.size
        if not groups:
            del self._by_topic[gone.topic]

    def look(self, is_subscribed: Callable[[str, str], bool]) -> None:
        """Note which are dead, and forget those that have been for too long.

        @param is_subscribed: whether a group, that is there, subscribes to a topic.
        """
        now = self._wall_ms()
        most = self._options.filter_data_clean_time_span
        for each in self.all():
            if is_subscribed(each.group, each.topic):
                each.dead_ms = 0
            elif not each.dead_ms:
                each.dead_ms = now
            elif now - each.dead_ms > most:
                self._remove(each)
