# -*- test-case-name: tests.broker.admin.test_reset_offset -*-
"""Request 222: let a group go on from an offset, or from a time.

This broker does it by its answers to the next pulls (L{pending_resets
<rocketbroker.broker.metadata.pending_resets>}). With useServerSideResetOffset off it
asks all members of the group to do it (220, oneway), as brokers of 4.9 did.

An offset by time is looked up in a thread.

Rules: docs/facts/broker.md 16.3 and 21; docs/facts/admin.md 2.2."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, final

from twisted.logger import Logger

from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.clients.consumers import ConsumerRegistry
from rocketbroker.broker.clients.members import Member
from rocketbroker.broker.json_bodies import with_body
from rocketbroker.broker.metadata.groups import GroupTable
from rocketbroker.broker.metadata.offsets import NONE, OffsetTable
from rocketbroker.broker.metadata.topics import TopicTable
from rocketbroker.broker.pull.pull import Pulling
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import (
    InvalidParameter,
    SubscriptionGroupNotExist,
    SystemFailure,
    TopicNotExist,
    error_of_response,
)
from rocketbroker.remoting.interfaces import Answer, IConnection, IResponderTable
from rocketbroker.store.interfaces import IQueue, IStore
from rocketbroker.wire.bodies.queues import MessageQueue
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import ONEWAY, Command
from rocketbroker.wire.fastjson import dumps
from rocketbroker.wire.headers.admin import ResetOffsetRequestHeader

#: The ordinal of V3_0_7_SNAPSHOT: clients before it do not know request 220.
FIRST_RESETTABLE: Final = 28

#: The language of administrators whose consumers read a list instead of a table.
C_LIKE: Final = "CPP"


@final
class ResetOffset:
    """Answers request 222."""

    _log = Logger()

    def __init__(
        self,
        store: IStore,
        options: BrokerOptions,
        topics: TopicTable,
        groups: GroupTable,
        offsets: OffsetTable,
        consumers: ConsumerRegistry,
        pulling: Pulling,
        dispatch: Callable[[], None],
        in_thread: InThread,
    ) -> None:
        """
        @param dispatch: enters all appended messages into the queues, now.
        """
        self._store = store
        self._options = options
        self._topics = topics
        self._groups = groups
        self._offsets = offsets
        self._consumers = consumers
        self._pulling = pulling
        self._dispatch = dispatch
        self._in_thread = in_thread

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._options = settings.broker

    def register(self, table: IResponderTable) -> None:
        """Answer on a port."""
        table.register(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, self.reset)

    def reset(self, connection: IConnection, request: Command) -> Answer:
        """Request 222."""
        header = ResetOffsetRequestHeader.complete(request.ext, ("timestamp",))
        topic = self._topics.config(header.topic)
        if topic is None:
            raise TopicNotExist(f"Topic {header.topic} does not exist")
        if not self._options.use_server_side_reset_offset:
            return self._ask_members(
                connection, request, header, topic.write_queue_nums
            )
        if self._groups.config(header.group) is None:
            raise SubscriptionGroupNotExist(f"Group {header.group} does not exist")
        return self._reset_here(connection, request, header, topic.read_queue_nums)

    def _queues(self, topic: str, numbers: Iterable[int]) -> list[IQueue]:
        """Handles, which are made in the reactor's thread alone, with all that came."""
        self._dispatch()
        return [self._store.queue(topic, number) for number in numbers]

    def _log_change(
        self,
        connection: IConnection,
        header: ResetOffsetRequestHeader,
        queues: list[IQueue],
        found: list[int],
    ) -> None:
        pairs = zip(queues, found, strict=True)
        offsets = [f"{queue.queue_id}: {offset}" for queue, offset in pairs]
        self._log.info(
            "{peer} reset the offsets of group {group!r:.300} in topic {topic!r}: "
            "{offsets:.1000}",
            peer=connection.peer,
            group=header.group,
            topic=header.topic,
            offsets=", ".join(offsets),
        )

    def _reset_here(
        self,
        connection: IConnection,
        request: Command,
        header: ResetOffsetRequestHeader,
        count: int,
    ) -> Answer:
        """By the answers to the next pulls."""
        one = header.queue_id >= 0
        if one and header.queue_id >= count:
            raise InvalidParameter(
                f"queueId {header.queue_id} is not one of topic {header.topic}"
            )
        queues = self._queues(header.topic, [header.queue_id] if one else range(count))
        if not queues:
            raise SystemFailure("No queues to reset.")

        def reset(found: list[int]) -> Command:
            for queue, offset in zip(queues, found, strict=True):
                self._pulling.reset(header.group, queue, offset)
            self._log_change(connection, header, queues, found)
            return with_body(request, {"offsetTable": self._table(queues, found)})

        if one and header.offset is not None and header.offset != NONE:
            check_range(queues[0], header.offset)
            return reset([header.offset])
        return self._in_thread(
            lambda: [self._by_time(queue, header.timestamp) for queue in queues]
        ).addCallback(reset)

    def _by_time(self, queue: IQueue, ms: int) -> int:
        """I{Blocking.} The first offset stored at or after a time; the end before 0."""
        if ms < 0:
            return queue.max_offset
        return max(0, self._store.offset_by_time(queue, ms, False))

    def _table(self, queues: list[IQueue], offsets: list[int]) -> dict[object, object]:
        name = self._options.broker_name
        return {
            MessageQueue(queue.topic, name, queue.queue_id): offset
            for queue, offset in zip(queues, offsets, strict=True)
        }

    def _ask_members(
        self,
        connection: IConnection,
        request: Command,
        header: ResetOffsetRequestHeader,
        count: int,
    ) -> Answer:
        """By the members themselves: request 220 to each of them."""
        group = header.group
        queues = self._queues(header.topic, range(count))
        committed = [
            self._offsets.query(group, header.topic, queue.queue_id) for queue in queues
        ]
        if NONE in committed:
            raise SystemFailure(f"THe consumer group <{group}> not exist")
        self._members(group)

        def ask(found: list[int]) -> Command:
            if not header.is_force:
                # No queue is set forwards, over messages that were not consumed.
                found = list(map(min, found, committed))
            self._tell(request, header, self._table(queues, found))
            self._log_change(connection, header, queues, found)
            return with_body(request, {"offsetTable": self._table(queues, found)})

        return self._in_thread(
            lambda: [self._by_time(queue, header.timestamp) for queue in queues]
        ).addCallback(ask)

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

    def _tell(
        self,
        request: Command,
        header: ResetOffsetRequestHeader,
        table: dict[object, object],
    ) -> None:
        value: dict[str, object] = {"offsetTable": table}
        if request.language == C_LIKE:
            entries = [
                {**queue.to_json(), "offset": offset}
                for queue, offset in table.items()
                if isinstance(queue, MessageQueue)
            ]
            value = {"offsetTable": entries}
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
                    dumps(value),
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
