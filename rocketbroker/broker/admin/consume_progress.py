# -*- test-case-name: tests.broker.admin.test_consume_progress -*-
"""The progress of groups: requests 208 and 317 in offsets, 303 in times.

The times at which messages were stored are read in a thread.

Rules: docs/facts/admin.md 2.2 and 3."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias, final

from twisted.internet.defer import Deferred

from rocketbroker.broker.admin.queue_tables import (
    STEP_QUEUES,
    QueueTables,
    entry_text,
    list_of,
    made_places,
    table_of,
)
from rocketbroker.broker.clients.consumers import ConsumerRegistry
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.json_bodies import with_body
from rocketbroker.broker.metadata.offsets import NONE
from rocketbroker.broker.metadata.room import MetadataRoom
from rocketbroker.errors import TopicNotExist
from rocketbroker.remoting.cooperative_tasks import soon
from rocketbroker.remoting.interfaces import (
    Answer,
    IConnection,
    IResponderTable,
)
from rocketbroker.store.interfaces import IQueue
from rocketbroker.wire.bodies.queues import MessageQueue
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.fastjson import dumps, quoted
from rocketbroker.wire.headers.admin import (
    GetConsumeStatsInBrokerHeader,
    GetConsumeStatsRequestHeader,
    QueryConsumeTimeSpanRequestHeader,
)

#: A queue, a group's offset in it, and where it pulls next.
Place: TypeAlias = tuple[IQueue, int, int]

#: A group, one of its topics, how many messages of it the group gets a second, and the
#: topic's queues.
Share: TypeAlias = tuple[str, str, float, list[Place]]


@final
class _Written:
    """What the answer to request 317 says of a group, or of its share in a topic.

    @ivar texts: its topics.
    @ivar behind: how many messages it has not consumed.
    @ivar inflight: how many it has pulled and not consumed.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.behind = 0
        self.inflight = 0

    def count(self, entry: dict[str, int]) -> None:
        """Take in a queue."""
        self.behind += entry["brokerOffset"] - entry["consumerOffset"]
        self.inflight += entry["pullOffset"] - entry["consumerOffset"]

    def add(self, other: _Written) -> None:
        """Take in a share."""
        self.texts += other.texts
        self.behind += other.behind
        self.inflight += other.inflight


@final
class ConsumeProgress:
    """Answers requests 208, 303 and 317."""

    def __init__(
        self,
        context: BrokerContext,
        metadata: MetadataRoom,
        consumers: ConsumerRegistry,
        taken_tps: Callable[[str, str], float],
        dispatch: Callable[[], None],
    ) -> None:
        """
        @param taken_tps: how many messages of a topic a group has got a second, in the
            last minute.
        @param dispatch: enters all appended messages into the queues, now.
        """
        waiting = context.administrators
        slices = waiting.before_slices(context.slices)
        in_thread = waiting.before_threads(context.in_thread)
        self._store = context.store
        self._broker_name = context.settings.broker.broker_name
        self._address = context.address
        self._topics = metadata.topics
        self._mappings = metadata.mappings
        self._groups = metadata.groups
        self._offsets = metadata.offsets
        self._consumers = consumers
        self._taken_tps = taken_tps
        self._dispatch = dispatch
        self._wall_ms = context.wall_ms
        self._slices = slices
        self._in_thread = in_thread
        self._tables = QueueTables(slices, in_thread)

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        table.register(RequestCode.GET_CONSUME_STATS, self.statistics)
        table.register(RequestCode.GET_BROKER_CONSUME_STATS, self.of_broker)
        table.register(RequestCode.QUERY_CONSUME_TIME_SPAN, self.times)

    def statistics(self, connection: IConnection, request: Command) -> Answer:
        """Request 208: by queue, where it ends and where the group is in it."""
        header = GetConsumeStatsRequestHeader.complete(request.ext)
        names = self._asked(header)
        self._dispatch()
        return Deferred.fromCoroutine(
            self._statistics(connection, request, header.consumer_group, names)
        )

    async def _statistics(
        self, connection: IConnection, request: Command, group: str, names: list[str]
    ) -> Command:
        tps = 0.0
        counts: list[tuple[str, int]] = []

        def steps() -> Iterator[None]:
            nonlocal tps
            for number, name in enumerate(names, 1):
                tps += self._taken_tps(group, name)
                config = self._topics.config(name)
                counts.append((name, 0 if config is None else config.read_queue_nums))
                if number % STEP_QUEUES == 0:
                    yield

        await soon(self._slices, connection, steps())
        static = self._mappings.details

        def place(topic: str, number: int) -> Place:
            # Tools tell by it in which part of a static topic's queue a group is.
            return self._place(topic, group, number, NONE if topic in static else 0)

        places = await self._tables.places(connection, counts, place)
        members = await self._tables.read(places, self._member)
        table = table_of(members)
        return with_body(request, {"consumeTps": tps, "offsetTable": table})

    def _asked(self, header: GetConsumeStatsRequestHeader) -> list[str]:
        """The topics that an answer is about: those listed, the one, or all.

        One that the group is not subscribed to any more while it is online is left out,
        but where a list asks for it.
        """
        group = header.consumer_group
        listed = [name for name in (header.topic_list or "").split(";") if name]
        if listed:
            names = list(dict.fromkeys(listed))
        else:
            topic = header.topic
            names = [topic] if topic else self._offsets.topics_of(group)
            online = self._consumers.group(group)
            if online is not None and online.subscriptions:
                names = [name for name in names if name in online.subscriptions]
        return [name for name in names if self._topics.config(name) is not None]

    def _place(self, topic: str, group: str, number: int, least: int = 0) -> Place:
        """A queue with the group's offsets in it.

        @param least: stands for no offset.
        """
        committed = max(least, self._offsets.query(group, topic, number))
        pulled = self._offsets.pull_offset(group, topic, number)
        queue = self._store.queue(topic, number)
        return queue, committed, max(committed, pulled)

    def _member(self, place: Place) -> str:
        """I{Blocking.} One queue of request 208, as text."""
        return entry_text(*self._entry(place))

    def _entry(self, place: Place) -> tuple[MessageQueue, dict[str, int]]:
        """I{Blocking.} One queue of requests 208 and 317."""
        queue, committed, pulled = place
        at = self._store.store_time(queue, committed - 1) if committed > 0 else 0
        return self._key(queue), {
            "brokerOffset": max(0, queue.max_offset),
            "consumerOffset": committed,
            "lastTimestamp": max(0, at),
            "pullOffset": pulled,
        }

    def _key(self, queue: IQueue) -> MessageQueue:
        return MessageQueue(queue.topic, self._broker_name, queue.queue_id)

    def of_broker(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        """Request 317: what 208 tells of a group, of all groups there are.

        Unlike RocketMQ's, the answer has the offsets of pulls.
        """
        ordered = GetConsumeStatsInBrokerHeader.from_ext(request.ext).is_order
        return Deferred.fromCoroutine(self._of_broker(connection, request, ordered))

    async def _of_broker(
        self, connection: IConnection, request: Command, ordered: bool
    ) -> Command:
        """Places are looked up in slices, and as many as make L{STEP_QUEUES} read and
        written in a thread at once."""
        self._dispatch()
        shares: list[Share] = []
        await self._slices.run(connection, self._shares(ordered, shares))
        groups = {config.group_name: _Written() for config in self._groups.configs()}
        step: list[Share] = []
        count = 0
        for at, share in enumerate(shares, 1):
            if len(share[3]) > STEP_QUEUES:
                one = await self._written_in_parts(share)
                if share[0] in groups:
                    groups[share[0]].add(one)
            else:
                step.append(share)
                count += len(share[3])
            if step and (count >= STEP_QUEUES or at == len(shares)):
                for group, one in await self._in_thread(partial(self._written, step)):
                    if group in groups:
                        groups[group].add(one)
                step, count = [], 0
        return with_body(
            request,
            {
                "brokerAddr": self._address,
                "consumeStatsList": list_of(
                    [
                        f"{{{quoted(name)}:[{','.join(group.texts)}]}}"
                        for name, group in groups.items()
                    ]
                ),
                "totalDiff": sum(group.behind for group in groups.values()),
                "totalInflightDiff": sum(group.inflight for group in groups.values()),
            },
        )

    def _shares(self, ordered: bool, found: list[Share]) -> Iterator[None]:
        """Find all topics of all groups.

        @param ordered: only ordered topics.
        @param found: gets them.
        """
        keys = self._offsets.keys()
        for key in keys:
            topic, _, group = key.partition("@")
            config = self._topics.config(topic)
            if (
                config is None
                or (ordered and not config.order)
                or self._groups.config(group) is None
            ):
                continue
            online = self._consumers.group(group)
            if (
                online is None
                or not online.subscriptions
                or topic in online.subscriptions
            ):
                places: list[Place] = []
                tps = self._taken_tps(group, topic)
                found.append((group, topic, tps, places))
                count = [(topic, config.write_queue_nums)]
                place = partial(self._place_of, group)
                yield from made_places(count, place, places)
            yield

    def _place_of(self, group: str, topic: str, number: int) -> Place:
        return self._place(topic, group, number)

    def _written(self, shares: list[Share]) -> list[tuple[str, _Written]]:
        """I{Blocking.} What the answer says of each group's share in a topic."""
        found = []
        for group, _, tps, places in shares:
            table = dict(map(self._entry, places))
            written = _Written()
            for entry in table.values():
                written.count(entry)
            text = dumps({"consumeTps": tps, "offsetTable": table})
            written.texts.append(text.decode())
            found.append((group, written))
        return found

    async def _written_in_parts(self, share: Share) -> _Written:
        """The same of one share, of more queues than a thread takes at once."""
        _, _, tps, places = share
        entries = await self._tables.read(places, self._entry_and_text)
        written = _Written()
        for entry, _ in entries:
            written.count(entry)
        table = table_of([text for _, text in entries])
        start = f'{{"consumeTps":{dumps(tps).decode()},"offsetTable":'
        written.texts = ["".join([start, *table.pieces, "}"])]
        return written

    def _entry_and_text(self, place: Place) -> tuple[dict[str, int], str]:
        """I{Blocking.} One queue, also as a member of the table."""
        key, entry = self._entry(place)
        return entry, entry_text(key, entry)

    def times(self, connection: IConnection, request: Command) -> Answer:
        """Request 303: by queue, when its messages were stored, and the group's."""
        header = QueryConsumeTimeSpanRequestHeader.from_ext(request.ext)
        config = self._topics.config(header.topic)
        if config is None:
            raise TopicNotExist(f"topic[{header.topic}] not exist")
        self._dispatch()
        return Deferred.fromCoroutine(
            self._times(connection, request, header, config.write_queue_nums)
        )

    async def _times(
        self,
        connection: IConnection,
        request: Command,
        header: QueryConsumeTimeSpanRequestHeader,
        count: int,
    ) -> Command:
        def place(topic: str, number: int) -> tuple[IQueue, int]:
            committed = self._offsets.query(header.group, topic, number)
            return self._store.queue(topic, number), committed

        places = await self._tables.places(connection, [(header.topic, count)], place)
        now = self._wall_ms()
        spans = await self._tables.read(
            places, lambda each: dumps(self._span(*each, now)).decode()
        )
        return with_body(request, {"consumeTimeSpanSet": list_of(spans)})

    def _span(self, queue: IQueue, committed: int, now: int) -> dict[str, object]:
        """I{Blocking.} One queue of request 303; -1 is no time.

        @ivar committed: the group's offset; negative if it has none.
        """
        store, least, most = self._store, queue.min_offset, queue.max_offset
        begin = store.store_time(queue, least) if least < most else -1
        end = store.store_time(queue, most - 1) if least < most else -1
        consumed = store.store_time(queue, committed - 1) if committed > 0 else begin
        delay = 0
        if max(committed, least) < most:
            delay = max(0, now - store.store_time(queue, max(committed, least)))
        return {
            "consumeTimeStamp": consumed,
            "delayTime": delay,
            "maxTimeStamp": end,
            "messageQueue": self._key(queue),
            "minTimeStamp": begin,
        }
