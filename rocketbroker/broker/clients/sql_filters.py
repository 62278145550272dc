# -*- test-case-name: tests.broker.clients.test_sql_filters -*-
"""The SQL92 filters of groups, by topic, from their heartbeats.

A filter has a version, that of the subscription, and a time of birth, when its
expression last changed: the bit maps of messages that were stored before say nothing
about it. The filters of a group that has left are dead. They are kept for a day,
because a consumer that comes back with the same expression goes on where it was, and
the bit maps made meanwhile hold for it.

C{consumerFilter.json} has RocketMQ's format. If the numbers of bits in it do not fit
the settings, the bit maps would mean something else: then the whole file is left out,
as in RocketMQ, and the filters are born when their consumers come.

An expression is compiled when a pull first needs its filter
(L{rocketbroker.broker.clients.sql_compiler}), not by the heartbeat and not by a start.
One that does not compile is no filter from then on. The client learns the reason when
it checks its subscription (46) before it starts.

Rules: docs/facts/broker.md 13.2, 13.3 and 26.2."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Final, final

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from rocketbroker.broker.clients.sql_compiler import (
    NotCompiled,
    SqlCompiler,
    check_type,
    compiled_now,
    known_filter,
)
from rocketbroker.broker.json_table import JsonTable
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import (
    RemoteProtocolError,
    SubscriptionParseFailed,
    SystemBusy,
    SystemFailure,
)
from rocketbroker.filtering import tags
from rocketbroker.filtering.bloom import BloomFilter, add, mask, may_match
from rocketbroker.records.properties import RETRY_TOPIC, find
from rocketbroker.store.reads import MessageFilter
from rocketbroker.wire.bodies.heartbeats import SubscriptionData
from rocketbroker.wire.fields import Fields

if TYPE_CHECKING:
    from rocketbroker.filtering import sql

#: How many characters all expressions together may have. They come from clients and
#: are kept when these have gone, so without a limit they would fill the memory:
#: compiled, a character takes 50 to 160 bytes. It is enough for a thousand groups with
#: expressions of ten lines. Beyond it those that have been dead for the longest time
#: go first; when all are alive, a new one is not taken, and pulls for it are answered
#: as if there were no subscription.
MAX_CHARACTERS: Final = 1 << 20

#: The same for one group: twice the longest expression, or a hundred of ten lines.
MAX_GROUP_CHARACTERS: Final = 128 << 10

#: The size that a filter counts with beside its expression.
OVERHEAD: Final = 256

_RETRY_TOPIC: Final = RETRY_TOPIC.encode()

#: How many characters of expressions are evaluated for the bit map of one message, at
#: the most: each message waits for that. The map says of the others that they may
#: match.
MAX_MAPPED: Final = 64 << 10


#: Of so many groups and topics at once it is logged that there is no filter and why,
#: once each while they are there: every heartbeat brings it again.
MAX_LOGGED: Final = 200

#: So many characters of a client's text a line of the log repeats.
MAX_QUOTED: Final = 128

#: How the reason begins, for which a filter that had no room is not taken.
NO_ROOM: Final = "there is no room for it:"

#: How long a group that is not there yet counts as gone when the broker starts
#: (docs/facts/broker.md 26.2).
ABSENT_MS: Final = 30_000


@final
class Filter:
    """The SQL92 subscription of one group to one topic.

    @ivar kind: the type of the expression, C{SQL92}.
    @ivar version: of the subscription: when a client made it, in ms.
    @ivar born_ms: when the expression was new.
    @ivar dead_ms: when the group left, 0 if it is there.
    @ivar compiled: the expression; None until somebody needs it.
    @ivar wanted: the same for the store.
    """

    __slots__ = (
        "_bloom",
        "_positions",
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
        expression: str,
        bloom: BloomFilter,
        version: int,
        born_ms: int,
        dead_ms: int = 0,
    ) -> None:
        self.group = group
        self.topic = topic
        self.kind = tags.SQL92
        self.expression = expression
        self.compiled: sql.SqlFilter | None = None
        self.wanted: MessageFilter | None = None
        self.version = version
        self.born_ms = born_ms
        self.dead_ms = dead_ms
        self._bloom = bloom
        self._positions: list[int] = []

    @property
    def positions(self) -> list[int]:
        """Which bits it sets in the maps of messages that it wants."""
        if not self._positions:
            self._positions = self._bloom.positions(self.group, self.topic)
        return self._positions

    def use(self, compiled: sql.SqlFilter) -> MessageFilter:
        """Filter by its expression, which is compiled now."""
        bits, own_bits = self._bloom.bits, mask(self.positions)
        born_ms = self.born_ms

        def may_match_map(store_ms: int, bit_map: bytes) -> bool:
            if store_ms <= born_ms or len(bit_map) * 8 != bits:
                return True
            return may_match(bit_map, own_bits)

        self.compiled = compiled
        self.wanted = wanted_by(compiled, may_match_map)
        return self.wanted

    @property
    def size(self) -> int:
        """How much of L{MAX_CHARACTERS} it takes."""
        return len(self.expression) + OVERHEAD


def wanted_by(
    compiled: sql.SqlFilter,
    may_match_map: Callable[[int, bytes], bool] | None = None,
) -> MessageFilter:
    """An expression, for the store."""
    return MessageFilter(
        None, compiled.matches, may_match_map, compiled.cost_ns, compiled.hint
    )


def check_kind(options: BrokerOptions, kind: str | None) -> None:
    """Refuse filters that are not by tags if they are switched off.

    @raise SystemFailure: they are.
    """
    if not options.enable_property_filter:
        raise SystemFailure(
            "The broker does not support consumer to filter message by "
            f"{(kind or '')[:MAX_QUOTED]}"
        )


@final
class Filters:
    """The SQL filters of all groups, by topic.

    @ivar refused: how many did not compile, or had no room.
    @ivar revision: moves when there is another filter, or one less.
    @ivar compiler: compiles their expressions.
    """

    _log = Logger()

    def __init__(
        self,
        options: BrokerOptions,
        file: JsonTable,
        wall_ms: Callable[[], int],
        compiler: SqlCompiler,
    ) -> None:
        self.refused = 0
        self.revision = 0
        self.compiler = compiler
        self._file = file
        self._changed = False
        self._bloom = BloomFilter(
            options.max_error_rate_of_bloom_filter,
            options.expect_consumer_num_use_filter,
        )
        self._options = options
        self._wall_ms = wall_ms
        self._by_topic: dict[str, dict[str, Filter]] = {}
        self._size = 0
        self._size_of: dict[str, int] = {}
        #: Whether all are alive, and there is no room.
        self._is_full = False
        self._asked: set[tuple[str, str]] = set()
        self._logged: dict[tuple[str, str], str] = {}

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._options = settings.broker

    def get(self, topic: str, group: str) -> Filter | None:
        """A group's filter for a topic."""
        return self._by_topic.get(topic, {}).get(group)

    def ready(self, topic: str, group: str) -> tuple[Filter, MessageFilter] | None:
        """The same, compiled; None: there is none, or its expression is no expression.

        @raise NotCompiled: its expression has to be waited for.
        """
        found = self.get(topic, group)
        if found is None:
            return None
        if found.wanted is not None:
            return found, found.wanted
        try:
            compiled = self.compiler.find(found.expression, found.kind)
        except SubscriptionParseFailed as error:
            self._remove(found)
            self._refuse(group, topic, f"it does not compile: {error.remark}")
            return None
        return found, found.use(compiled)

    def no_room(self, topic: str, group: str) -> str:
        """Why a group has no filter for a topic if it had no room; else empty."""
        why = self._logged.get((group, topic), "")
        return why if why.startswith(NO_ROOM) else ""

    def for_retries(
        self, group: str, codes: Callable[[int], bool] | None
    ) -> MessageFilter:
        """What a group wants of its retry topic: as of the topic where it was first.

        @param codes: given a tag code, whether it may be wanted; None: all.
        @raise NotCompiled: an expression has to be waited for.
        """
        costs = [
            found[0].compiled.cost_ns
            for each in self.all()
            if each.group == group
            and (found := self.ready(each.topic, group)) is not None
            and found[0].compiled is not None
        ]

        def matches(properties: bytes) -> bool:
            topic = find(properties, _RETRY_TOPIC) or b""
            found = self.get(topic.decode("utf-8", "replace"), group)
            if found is None:
                return True
            compiled = found.compiled
            if compiled is None:
                # A heartbeat has changed it while this is read in a thread.
                try:
                    compiled = compiled_now(found.expression)
                except SubscriptionParseFailed:
                    return True
            return compiled.matches(properties)

        return MessageFilter(codes, matches, cost=max(costs, default=0))

    def all(self) -> list[Filter]:
        """All filters."""
        return [each for groups in self._by_topic.values() for each in groups.values()]

    def register(self, group: str, wanted: Collection[SubscriptionData]) -> None:
        """Take over the subscriptions of a heartbeat."""
        for data in wanted:
            if not tags.is_tag_type(data.expression_type) and data.sub_string:
                self._register(group, data)

    def _register(self, group: str, data: SubscriptionData) -> None:
        known = self.get(data.topic, group)
        if known is not None:
            if data.sub_version < known.version:
                return
            same = known.expression, known.kind
            if data.sub_version == known.version or (
                same == (data.sub_string, data.expression_type)
            ):
                self._changed |= known.version != data.sub_version
                known.version = data.sub_version
                self._set_dead(known, 0)
                return
            self._remove(known)
        expression, kind = data.sub_string, data.expression_type
        try:
            check_type(kind)
            known_filter(expression)
        except SubscriptionParseFailed as error:
            self._refuse(group, data.topic, f"it does not compile: {error.remark}")
            return
        why = self._no_room_in_group(group, len(expression) + OVERHEAD)
        if why:
            self._refuse(group, data.topic, why)
            return
        version, now = data.sub_version, self._wall_ms()
        self._add(Filter(group, data.topic, expression, self._bloom, version, now))

    def _add(self, added: Filter) -> None:
        known = self.get(added.topic, added.group)
        if known is not None:
            self._remove(known)
        group, size = added.group, added.size
        why = self._no_room_in_group(group, size)
        if why:
            self._refuse(group, added.topic, why)
            return
        if self._size + size > MAX_CHARACTERS:
            self._make_room(size)
        if self._size + size > MAX_CHARACTERS:
            why = f"all groups would have {self._size + size}"
            self._refuse(group, added.topic, f"{NO_ROOM} {why}")
            return
        self._changed = True
        self.revision += 1
        self._logged.pop((group, added.topic), None)
        self._by_topic.setdefault(added.topic, {})[group] = added
        self._size += size
        self._size_of[group] = self._size_of.get(group, 0) + size

    def _no_room_in_group(self, group: str, size: int) -> str:
        """Why a group may have no more filters of that size; empty if it may."""
        of_group = self._size_of.get(group, 0) + size
        if of_group <= MAX_GROUP_CHARACTERS:
            return ""
        return f"{NO_ROOM} the group would have {of_group} characters of expressions"

    def _refuse(self, group: str, topic: str, why: str) -> None:
        """Count that there is no filter, and say so once."""
        self.refused += 1
        if (group, topic) in self._logged or len(self._logged) >= MAX_LOGGED:
            return
        if len(topic) > MAX_QUOTED:
            # No topic has such a name.
            return
        self._logged[group, topic] = why[:MAX_QUOTED]
        self._log.warn(
            "The filter of group {group!r} for topic {topic!r} is not taken: {why!r}",
            group=group,
            topic=topic,
            why=why[:MAX_QUOTED],
        )

    def _make_room(self, size: int) -> None:
        """Remove the filters that have been dead for the longest time."""
        if self._is_full:
            return
        dead = [each for each in self.all() if each.dead_ms]
        for each in sorted(dead, key=lambda each: each.dead_ms):
            if self._size + size <= MAX_CHARACTERS:
                return
            self._remove(each)
        self._is_full = self._size + size > MAX_CHARACTERS

    def _remove(self, gone: Filter) -> None:
        self._changed = True
        groups = self._by_topic[gone.topic]
        del groups[gone.group]
        self.revision += 1
        self._is_full = False
        self._size -= gone.size
        self._size_of[gone.group] -= gone.size
        if not self._size_of[gone.group]:
            del self._size_of[gone.group]
        if not groups:
            del self._by_topic[gone.topic]

    def look(self, is_subscribed: Callable[[str, str], bool]) -> None:
        """Note which are dead, and forget those that have been for too long.

        @param is_subscribed: whether a group, that is there, subscribes to a topic.
        """
        for key in [key for key in self._logged if not is_subscribed(*key)]:
            del self._logged[key]
        now = self._wall_ms()
        most = self._options.filter_data_clean_time_span
        for each in self.all():
            if is_subscribed(each.group, each.topic):
                self._set_dead(each, 0)
            elif not each.dead_ms:
                self._set_dead(each, now)
            elif now - each.dead_ms > most:
                self._remove(each)

    def _set_dead(self, changed: Filter, ms: int) -> None:
        if changed.dead_ms != ms:
            changed.dead_ms = ms
            self._is_full = False
            self._changed = True

    # Bit maps.

    def bit_map(self, topic: bytes, properties: bytes) -> bytes:
        """Which filters want a message; dead ones count, as they may live again.

        The map says of those that are not compiled yet that they may want it.

        @return: empty if its topic has no filters.
        """
        groups = self._by_topic.get(topic.decode("utf-8", "replace"))
        if not groups:
            return b""
        matched = self._bloom.empty()
        left = MAX_MAPPED
        for each in groups.values():
            left -= len(each.expression)
            compiled = each.compiled
            if compiled is None:
                self._prepare(each)
            if left < 0 or compiled is None or compiled.matches(properties):
                add(matched, each.positions)
        return bytes(matched)

    def _prepare(self, wanted: Filter) -> None:
        """Have a filter compiled for the maps of messages to come."""
        key = wanted.topic, wanted.group
        if key in self._asked:
            return
        self._asked.add(key)

        def ended(result: object) -> None:
            self._asked.discard(key)
            if isinstance(result, Failure):
                # Too many wait, which the next message may find otherwise, or the
                # broker stops.
                result.trap(SystemBusy, CancelledError)  # type: ignore[no-untyped-call]
                return
            with suppress(NotCompiled):
                self.ready(*key)

        self.compiler.prepare(self, wanted.expression).addBoth(ended)

    # The file.

    def load(self) -> None:
        """I{Blocking.} Read the file; entries that cannot be read are left out."""
        value = self._file.load()
        if value is None:
            return
        try:
            loaded = self._loaded(value)
        except RemoteProtocolError as error:
            self._log.warn("{path}: {why}", path=self._file.path, why=str(error))
            return
        for each in loaded:
            self._add(each)
        self._changed = False

    def _loaded(self, value: object) -> list[Filter]:
        """The filters of the file.

        @raise RemoteProtocolError: they have other bits than now.
        """
        loaded = []
        topics = Fields(value, "the file").members("filterDataByTopic")
        for of_topic in topics.values():
            try:
                groups = Fields(of_topic, "a topic").members("groupFilterData")
            except RemoteProtocolError:
                continue
            for stored in groups.values():
                try:
                    found = self._filter_of(Fields(stored, "a filter"))
                except (RemoteProtocolError, SubscriptionParseFailed):
                    continue
                if not found.expression:
                    continue
                bits = Fields(stored, "a filter").value("bloomFilterData")
                if not bits:
                    # No map has bits of it.
                    continue
                if bits != self._bits_of(found):
                    raise RemoteProtocolError(
                        "it was written with other settings of bloom filters, and is "
                        "left out"
                    )
                loaded.append(found)
        return loaded

    def _filter_of(self, fields: Fields) -> Filter:
        """One filter; the group is not there yet.

        @raise RemoteProtocolError: it has another form.
        @raise SubscriptionParseFailed: its type is unknown.
        """
        check_type(fields.text("expressionType") or "")
        born_ms = fields.integer("bornTime", bits=64)
        dead_ms = fields.integer("deadTime", bits=64)
        return Filter(
            fields.text("consumerGroup") or "",
            fields.text("topic") or "",
            fields.text("expression") or "",
            self._bloom,
            fields.integer("clientVersion", bits=64),
            born_ms,
            dead_ms or max(born_ms, self._wall_ms() - ABSENT_MS),
        )

    def _bits_of(self, of: Filter) -> dict[str, object]:
        return {"bitNum": self._bloom.bits, "bitPos": of.positions}

    def filter_json(self, of: Filter) -> dict[str, object]:
        """A filter as the file and tools have it."""
        return {
            "bloomFilterData": self._bits_of(of),
            "bornTime": of.born_ms,
            "clientVersion": of.version,
            "consumerGroup": of.group,
            "dead": of.dead_ms >= of.born_ms,
            "deadTime": of.dead_ms,
            "expression": of.expression,
            "expressionType": of.kind,
            "topic": of.topic,
        }

    def to_json(self) -> dict[str, object]:
        """The content of the file."""
        topics: dict[str, object] = {}
        for topic, groups in self._by_topic.items():
            stored: dict[str, object] = {}
            for group, each in groups.items():
                stored[group] = self.filter_json(each)
            topics[topic] = {"groupFilterData": stored, "topic": topic}
        return {"filterDataByTopic": topics}

    def save(self) -> None:
        """Write the file in a thread if it is behind the table."""
        if self._changed or self._file.failed:
            self._changed = False
            self._file.save_soon(self.to_json)

    def saved(self) -> Deferred[None]:
        """Fires when no write of the file is under way."""
        return self._file.idle()
