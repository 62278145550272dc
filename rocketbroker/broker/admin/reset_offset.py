# -*- test-case-name: tests.broker.admin.test_reset_offset -*-
"""Request 222: let a group go on from an offset, or from a time.

This broker does it by its answers to the next pulls (L{pending_resets
<rocketbroker.broker.metadata.pending_resets>}). With useServerSideResetOffset off it
asks all members of the group to do it (220, oneway), as brokers of 4.9 did.

An offset by time is looked up in a thread.

Rules: docs/facts/broker.md 16.3 and 21; docs/facts/admin.md 2.2."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, final

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from rocketbroker.broker.admin.queue_tables import (
    STEP_QUEUES,
    QueueTables,
    entry_text,
    list_of,
    table_of,
)
from rocketbroker.broker.clients.consumers import ConsumerRegistry
from rocketbroker.broker.clients.members import Member
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.json_bodies import with_body
from rocketbroker.broker.metadata.offsets import NONE
from rocketbroker.broker.metadata.room import MetadataRoom
from rocketbroker.broker.pull.pull import PullRequests
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import (
    InvalidParameter,
    SubscriptionGroupNotExist,
    SystemFailure,
    TopicNotExist,
    error_of_response,
)
from rocketbroker.remoting.cooperative_tasks import soon
from rocketbroker.remoting.interfaces import (
    Answer,
    IConnection,
    IResponderTable,
)
from rocketbroker.store.interfaces import IQueue
from rocketbroker.wire.bodies.queues import MessageQueue
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import ONEWAY, Command
from rocketbroker.wire.fastjson import Written, dumps
from rocketbroker.wire.headers.admin import ResetOffsetRequestHeader

#: The ordinal of V3_0_7_SNAPSHOT: clients before it do not know request 220.
FIRST_RESETTABLE: Final = 28

#: So many queues and offsets stand in the log of a change.
MAX_LOGGED: Final = 100

#: The language of administrators whose consumers read a list instead of a table.
C_LIKE: Final = "CPP"


@final
class ResetOffset:
    """The responder of request 222, which resets offsets."""

    _log = Logger()

    def __init__(
        self,
        context: BrokerContext,
        metadata: MetadataRoom,
        consumers: ConsumerRegistry,
        pulling: PullRequests,
        dispatch: Callable[[], None],
    ) -> None:
        """
        @param dispatch: enters all appended messages into the queues, now.
        """
        waiting = context.administrators
        slices = waiting.before_slices(context.slices)
        in_thread = waiting.before_threads(context.in_thread)
        self._store = context.store
        self._options = context.settings.broker
        self._topics = metadata.topics
        self._groups = metadata.groups
        self._offsets = metadata.offsets
        self._consumers = consumers
        self._pulling = pulling
        self._dispatch = dispatch
        self._slices = slices
        self._tables = QueueTables(slices, in_thread)

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._options = settings.broker

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        table.register(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, self.reset)

    def reset(self, connection: IConnection, request: Command) -> Answer:
        """Request 222."""
        header = ResetOffsetRequestHeader.complete(request.ext, ("timestamp",))
        topic = self._topics.config(header.topic)
        if topic is None:
            raise TopicNotExist(f"Topic {header.topic} does not exist")
        if not self._options.use_server_side_reset_offset:
            return Deferred.fromCoroutine(
                self._ask_members(connection, request, header, topic.write_queue_nums)
            )
        if self._groups.config(header.group) is None:
            raise SubscriptionGroupNotExist(f"Group {header.group} does not exist")
        return Deferred.fromCoroutine(
            self._reset_here(connection, request, header, topic.read_queue_nums)
        )

    async def _queues(
        self, connection: IConnection, topic: str, count: int
    ) -> list[IQueue]:
        """Handles of the first queues of a topic, with all that came."""
        self._dispatch()
        place = self._store.queue
        return await self._tables.places(connection, [(topic, count)], place)

    async def _at_time(
        self, header: ResetOffsetRequestHeader, queues: list[IQueue]
    ) -> list[int]:
        """The offsets of queues at the time of a request."""
        return await self._tables.read(
            queues, lambda queue: self._by_time(queue, header.timestamp)
        )

    def _log_change(
        self,
        connection: IConnection,
        header: ResetOffsetRequestHeader,
        queues: list[IQueue],
        found: list[int],
    ) -> None:
        pairs = zip(queues[:MAX_LOGGED], found, strict=False)
        offsets = [f"{queue.queue_id}: {offset}" for queue, offset in pairs]
        self._log.info(
            "{peer} reset the offsets of group {group!r:.300} in topic {topic!r}: "
            "{offsets:.1000}",
            peer=connection.who,
            group=header.group,
            topic=header.topic,
            offsets=", ".join(offsets),
        )

    async def _reset_here(
        self,
        connection: IConnection,
        request: Command,
        header: ResetOffsetRequestHeader,
        count: int,
    ) -> Command:
        """By the answers to the next pulls."""
        topic = header.topic
        if header.queue_id >= 0:
            if header.queue_id >= count:
                raise InvalidParameter(
                    f"queueId {header.queue_id} is not one of topic {topic}"
                )
            self._dispatch()
            queues = [self._store.queue(topic, header.queue_id)]
        else:
            queues = await self._queues(connection, topic, count)
        if not queues:
            raise SystemFailure("No queues to reset.")
        if header.queue_id >= 0 and header.offset is not None and header.offset != NONE:
            check_range(queues[0], header.offset)
            found = [header.offset]
        else:
            found = await self._at_time(header, queues)

        def reset() -> Iterator[None]:
            pairs = zip(queues, found, strict=True)
            for number, (queue, offset) in enumerate(pairs, 1):
                self._pulling.reset(header.group, queue, offset)
                if number % STEP_QUEUES == 0:
                    yield

        # Last of all: a step that waits too long is refused.
        table = await self._table(connection, queues, found)
        await soon(self._slices, connection, reset())
        self._log_change(connection, header, queues, found)
        return with_body(request, {"offsetTable": table})

    def _by_time(self, queue: IQueue, ms: int) -> int:
        """I{Blocking.} The first offset stored at or after a time; the end before 0."""
        if ms < 0:
            return queue.max_offset
        return max(0, self._store.offset_by_time(queue, ms, False))

    async def _table(
        self, connection: IConnection, queues: list[IQueue], offsets: list[int]
    ) -> Written:
        """The offsets of queues as a JSON object, written in slices."""
        name, members = self._options.broker_name, []
        pairs = zip(queues, offsets, strict=True)

        def steps() -> Iterator[None]:
            for queue, offset in pairs:
                key = MessageQueue(queue.topic, name, queue.queue_id)
                members.append(entry_text(key, offset))
                if len(members) % STEP_QUEUES == 0:
                    yield

        await soon(self._slices, connection, steps())
        return table_of(members)

    async def _ask_members(
        self,
        connection: IConnection,
        request: Command,
        header: ResetOffsetRequestHeader,
        count: int,
    ) -> Command:
        """By the members themselves: request 220 to each of them."""
        group = header.group
        queues = await self._queues(connection, header.topic, count)
        progress = self._offsets.progress(group, header.topic)[0]
        committed = [progress.get(queue.queue_id, NONE) for queue in queues]
        if NONE in committed:
            raise SystemFailure(f"THe consumer group <{group}> not exist")
        self._members(group)
        found = await self._at_time(header, queues)
        if not header.is_force:
            # No queue is set forwards, over messages that were not consumed.
            found = list(map(min, found, committed))
        table = await self._table(connection, queues, found)
        asked = table
        if request.language == C_LIKE:
            asked = await self._entries(connection, queues, found)
        self._tell(header, dumps({"offsetTable": asked}))
        self._log_change(connection, header, queues, found)
        return with_body(request, {"offsetTable": table})

    async def _entries(
        self, connection: IConnection, queues: list[IQueue], offsets: list[int]
    ) -> Written:
        """The same as a list of queues with their offsets."""
        name, texts = self._options.broker_name, []
        pairs = zip(queues, offsets, strict=True)

        def steps() -> Iterator[None]:
            for queue, offset in pairs:
                key = MessageQueue(queue.topic, name, queue.queue_id)
                texts.append(dumps({**key.to_json(), "offset": offset}).decode())
                if len(texts) % STEP_QUEUES == 0:
                    yield

        await soon(self._slices, connection, steps())
        return list_of(texts)

    def _members(self, name: str) -> list[Member]:
        """The members to ask.

        @raise BrokerError: there are none, or one does not know the request.
        """
        group = self._consumers.group(name)
        if group is None:
            raise error_of_response(
                ResponseCode.CONSUMER_NOT_ONLINE,
                f"Consumer not online, so can not reset online: consumerGroup [{name}]",
            )
        members = list(group.members.values())
        for member in members:
            if member.version < FIRST_RESETTABLE:
                raise SystemFailure(
                    "the client does not support this feature. version="
                    f"{member.version}"
                )
        return members

    def _tell(self, header: ResetOffsetRequestHeader, body: bytes) -> None:
        asked = ResetOffsetRequestHeader(
            group=header.group,
            topic=header.topic,
            timestamp=header.timestamp,
            is_force=False,
        )
        for member in self._members(header.group):
            member.connection.oneway(
                Command(
                    RequestCode.RESET_CONSUMER_CLIENT_OFFSET,
                    asked.to_ext(),
                    body,
                    flag=ONEWAY,
                )
            )


def check_range(queue: IQueue, offset: int) -> None:
    """Refuse an offset that a queue does not have.

    @raise SystemFailure: it has not.
    """
    least, most = queue.min_offset, queue.max_offset
    if not least <= offset <= most + 1:
        raise SystemFailure(
            f"Target offset {offset} not in consume queue range [{least}-{most}]"
        )
