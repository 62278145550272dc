# -*- test-case-name: tests.broker.admin.test_client_relay -*-
"""Questions of operators to the members of a group, through the broker: 223, 307, 309.

The broker sends the question over the connection that the member keeps open, waits for
a bounded time, and passes the answer on. It passes on only the fields that it knows by
name, so that a signature or a secret of the operator reaches no client.

Rules: docs/facts/broker.md 21; docs/facts/admin.md 2.2 and 2.3."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final, final

from twisted.internet.defer import Deferred

from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.clients.consumers import ConsumerRegistry
from rocketbroker.broker.clients.members import Member
from rocketbroker.broker.json_bodies import with_body
from rocketbroker.broker.metadata.groups import GroupTable
from rocketbroker.broker.metadata.topics import TopicTable
from rocketbroker.errors import (
    BrokerError,
    RequestTimeout,
    RocketbrokerError,
    SystemBusy,
    SystemFailure,
    error_of_response,
)
from rocketbroker.records.ids import parse_offset_id
from rocketbroker.records.malformed import Malformed
from rocketbroker.remoting.interfaces import IConnection, IResponderTable
from rocketbroker.store.interfaces import IStore
from rocketbroker.wire.bodies.queues import MessageQueue
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.fastjson import MAX_LENIENT_BODY, loads
from rocketbroker.wire.fields import Fields
from rocketbroker.wire.headers.admin import (
    ConsumeMessageDirectlyResultRequestHeader,
    GetConsumerRunningInfoRequestHeader,
    GetConsumerStatusRequestHeader,
)

#: How long a member has to answer.
ANSWER_SECONDS: Final = 10.0

#: How long each member has to tell its offsets.
STATUS_SECONDS: Final = 5.0

#: So many members of a group are asked at once, and the others as these answer. A
#: silent one keeps its lane: unless so many are silent, all others are heard in time.
STATUS_LANES: Final = 64

#: The ordinals of V3_0_7_SNAPSHOT and V3_1_8_SNAPSHOT: clients before them do not know
#: request 221, or 307 and 309.
FIRST_WITH_STATUS: Final = 28
FIRST_WITH_INFO: Final = 62

#: How many of these requests may wait for one member: each answer may be as large as a
#: frame. One more is answered SYSTEM_BUSY. The limit is per member, so that one that
#: is stopped keeps nobody from asking the others.
MAX_ASKED: Final = 64


@final
class ClientRelay:
    """Asks members and passes their answers on.

    @ivar asked: how many answers are waited for, by connection.
    """

    def __init__(
        self,
        store: IStore,
        broker_name: str,
        topics: TopicTable,
        groups: GroupTable,
        consumers: ConsumerRegistry,
        in_thread: InThread,
    ) -> None:
        self.asked: Counter[IConnection] = Counter()
        self._store = store
        self._broker_name = broker_name
        self._topics = topics
        self._groups = groups
        self._consumers = consumers
        self._in_thread = in_thread

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        table.register(RequestCode.GET_CONSUMER_RUNNING_INFO, self.running_info)
        table.register(RequestCode.CONSUME_MESSAGE_DIRECTLY, self.consume)
        table.register(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, self.status)

    def running_info(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        """Request 307: how a member is."""
        header = GetConsumerRunningInfoRequestHeader.from_ext(request.ext)
        group, client_id = header.consumer_group, header.client_id
        asked = Command(request.code, header.to_ext(), request.body)
        return Deferred.fromCoroutine(self._pass_on(request, group, client_id, asked))

    def consume(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        """Request 309: let a member consume one message that is stored here."""
        header = ConsumeMessageDirectlyResultRequestHeader.from_ext(request.ext)
        try:
            position = parse_offset_id(header.msg_id or "").position
        except Malformed as error:
            raise SystemFailure(str(error)) from error
        return Deferred.fromCoroutine(self._consume(request, header, position))

    async def _consume(
        self,
        request: Command,
        header: ConsumeMessageDirectlyResultRequestHeader,
        position: int,
    ) -> Command:
        group, client_id = header.consumer_group, header.client_id or ""
        self._member(group, client_id)
        store = self._store
        record = await self._in_thread(lambda: store.record_at(position))
        if record is None:
            raise SystemFailure(f"can not find message by the offset, {position}")
        ext = {**header.to_ext(), "brokerName": self._broker_name}
        topic = self._topics.config(header.topic or "")
        if topic is not None:
            ext["topicSysFlag"] = str(topic.topic_sys_flag)
        config = self._groups.config(group)
        if config is not None:
            ext["groupSysFlag"] = str(config.group_sys_flag)
        asked = Command(request.code, ext, record)
        return await self._pass_on(request, group, client_id, asked)

    def _member(self, group: str, client_id: str) -> Member:
        """The members to ask.

        @raise SystemFailure: it is not there, or would not understand.
        """
        member = self._consumers.member(group, client_id)
        if member is None:
            raise SystemFailure(f"The Consumer <{group}> <{client_id}> not online")
        if member.version < FIRST_WITH_INFO:
            raise SystemFailure(
                f"The Consumer <{client_id}> Version <{member.version}> too low to "
                "finish, please upgrade it to V3_1_8_SNAPSHOT"
            )
        return member

    async def _pass_on(
        self, request: Command, group: str, client_id: str, asked: Command
    ) -> Command:
        who = f"consumer <{group}> <{client_id}>"
        member = self._member(group, client_id)
        try:
            answer = await self._ask(member, asked, ANSWER_SECONDS)
        except RequestTimeout as error:
            raise error_of_response(
                ResponseCode.CONSUME_MSG_TIMEOUT, f"{who} Timeout: {error}"
            ) from error
        except BrokerError:
            raise
        except RocketbrokerError as error:
            # It has gone, or is asked too much already.
            raise SystemFailure(f"invoke {who} Exception: {error}") from error
        return response_to(request, answer.code, answer.remark, answer.ext, answer.body)

    async def _ask(self, member: Member, asked: Command, seconds: float) -> Command:
        """The answer of one member.

        @raise SystemBusy: too many are being asked, or this one does not read.
        """
        connection = member.connection
        if self.asked[connection] >= MAX_ASKED or connection.congested:
            raise SystemBusy("too many requests to this client wait for their answers")
        self.asked[connection] += 1
        try:
            return await connection.request(asked, seconds)
        finally:
            self.asked[connection] -= 1
            if not self.asked[connection]:
                del self.asked[connection]

    def status(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        """Request 223: the offsets that members have in memory."""
        header = GetConsumerStatusRequestHeader.from_ext(request.ext)
        group = self._consumers.group(header.group)
        members = [] if group is None else list(group.members.values())
        if not members:
            raise SystemFailure(
                f"No Any Consumer online in the consumer group: [{header.group}]"
            )
        if header.client_addr:
            members = [m for m in members if m.client_id == header.client_addr]
        for member in members:
            if member.version < FIRST_WITH_STATUS:
                raise SystemFailure(
                    "the client does not support this feature. version="
                    f"{member.version}"
                )
        return Deferred.fromCoroutine(self._status(request, header, members))

    async def _status(
        self,
        request: Command,
        header: GetConsumerStatusRequestHeader,
        members: list[Member],
    ) -> Command:
        """Ask all, some at once; members without a proper answer are left out."""
        table: dict[str, dict[MessageQueue, int]] = {}
        waiting = iter(members)
        ext = GetConsumerStatusRequestHeader(
            topic=header.topic, group=header.group
        ).to_ext()
        lanes = [
            Deferred.fromCoroutine(self._lane(waiting, ext, table))
            for _ in members[:STATUS_LANES]
        ]
        for lane in lanes:
            await lane
        return with_body(request, {"consumerTable": table, "messageQueueTable": {}})

    async def _lane(
        self,
        waiting: Iterator[Member],
        ext: dict[str, str],
        table: dict[str, dict[MessageQueue, int]],
    ) -> None:
        """Ask one member after the other, until one does not answer in time."""
        code = RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT
        for member in waiting:
            try:
                answer = await self._ask(member, Command(code, ext), STATUS_SECONDS)
                if answer.code == 0:
                    table[member.client_id] = offsets_of(answer)
            except RequestTimeout:
                return
            except RocketbrokerError:
                continue


def offsets_of(answer: Command) -> dict[MessageQueue, int]:
    """The offsets in a member's answer to request 221.

    @raise RemoteProtocolError: there are none.
    """
    fields = Fields(loads(answer.body, MAX_LENIENT_BODY), "a consumer's offsets")
    return {
        MessageQueue.from_json(queue): offset
        for queue, offset in fields.members("messageQueueTable").items()
        if isinstance(offset, int)
    }
