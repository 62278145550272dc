# -*- test-case-name: tests.proxy.test_calls -*-
"""The calls of clients, each from its request to its answer.

Nothing here knows gRPC, but for the messages: the server gives each call with who made
it, and takes the answer. What is refused is answered by a status, never by an error.
C{docs/facts/proxy.md} 5 to 9.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from typing import Final, NamedTuple, final

from rocketbroker.client.instance import Instance
from rocketbroker.client.runtime import Future
from rocketbroker.client.waits import Tasks
from rocketbroker.errors import RocketbrokerError
from rocketbroker.proxy import messages_pb2 as pb
from rocketbroker.proxy.brokers import CALL_SECONDS, Brokers
from rocketbroker.proxy.clients import Clients, span_ms
from rocketbroker.proxy.messages_pb2 import Code, Status
from rocketbroker.proxy.names import group_of, topic_of
from rocketbroker.proxy.pops import (
    Given,
    Wanted,
    check_invisible,
    filter_of,
    given,
    invisible_ms,
    lets_through,
    poll_ms,
    pop_command,
)
from rocketbroker.proxy.received import Handle, message_of, stamp
from rocketbroker.proxy.renewal import Renewals, place_of
from rocketbroker.proxy.routes import assignments_of, queues_of
from rocketbroker.proxy.sends import (
    check_kind,
    check_messages,
    jump_hash,
    properties_of,
    request_of,
)
from rocketbroker.proxy.settings import ProxySettings
from rocketbroker.proxy.statuses import Refusal, ok, status_of
from rocketbroker.proxy.transactions import Half, end_request
from rocketbroker.records import ids
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.properties import SHARDING_KEY
from rocketbroker.records.recall_handle import RecallHandle
from rocketbroker.records.receipt_handle import ReceiptHandle
from rocketbroker.routing.send_requests import SendRequest, SendResult
from rocketbroker.routing.topic_view import MessageQueue
from rocketbroker.wire.answers import number
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.pull import (
    AckMessageRequestHeader,
    ChangeInvisibleTimeRequestHeader,
)
from rocketbroker.wire.headers.send import (
    ConsumerSendMsgBackRequestHeader,
    RecallMessageRequestHeader,
)

_log: Final = logging.getLogger("rocketbroker.proxy")

#: What becomes of messages that are stored, but not as safely as the broker is set up.
_UNSAFE: Final = {
    10: (Code.MASTER_PERSISTENCE_TIMEOUT, "FLUSH_DISK_TIMEOUT"),
    11: (Code.HA_NOT_AVAILABLE, "SLAVE_NOT_AVAILABLE"),
    12: (Code.SLAVE_PERSISTENCE_TIMEOUT, "FLUSH_SLAVE_TIMEOUT"),
}


class Caller(NamedTuple):
    """Who makes a call.

    @ivar client_id: as it names itself.
    @ivar peer: where it comes from, C{ip:port}.
    @ivar version: of its program, as it names it.
    @ivar remaining: seconds until it gives up; None: it does not.
    """

    client_id: str
    peer: str = ""
    version: str = ""
    remaining: float | None = None


@final
class Calls:
    """All calls but telemetry.

    @ivar clients: who is there.
    @ivar renewals: messages that are kept invisible.
    @ivar given_back: how many receives ended without their client.
    """

    def __init__(
        self,
        instance: Instance,
        brokers: Brokers,
        clients: Clients,
        settings: ProxySettings,
    ) -> None:
        self._runtime = instance.runtime
        self._tasks = Tasks(instance.runtime)
        self._brokers = brokers
        self._settings = settings
        self.clients = clients
        self.renewals = Renewals(settings, self.change, self._is_here)
        self.given_back = 0
        self._waiting: set[_Reception] = set()
        self._drains = False

    def _called(self, caller: Caller) -> None:
        self.clients.called(caller.client_id, self._runtime.monotonic())

    def _is_here(self, client_id: str) -> bool:
        return self.clients.is_here(client_id, self._runtime.monotonic())

    # Where.

    async def query_route(
        self, caller: Caller, request: pb.QueryRouteRequest
    ) -> pb.QueryRouteResponse:
        """The queues of a topic."""
        try:
            topic = topic_of(request.topic)
            view = await self._brokers.view(topic)
            kind = await self._brokers.kind(topic)
        except RocketbrokerError as problem:
            return pb.QueryRouteResponse(status=status_of(problem))
        queues = queues_of(request.topic, view, kind, request.endpoints)
        return pb.QueryRouteResponse(status=ok(), message_queues=queues)

    async def query_assignment(
        self, caller: Caller, request: pb.QueryAssignmentRequest
    ) -> pb.QueryAssignmentResponse:
        """The queues that a member of a group reads."""
        try:
            topic, group = topic_of(request.topic), group_of(request.group)
            view = await self._brokers.view(topic)
            fifo = await self._is_fifo(group)
            found = assignments_of(request.topic, view, fifo, request.endpoints)
            if not found:
                raise Refusal(Code.FORBIDDEN, "no readable queue")
        except RocketbrokerError as problem:
            return pb.QueryAssignmentResponse(status=status_of(problem))
        return pb.QueryAssignmentResponse(status=ok(), assignments=found)

    async def _is_fifo(self, group: str) -> bool:
        config = await self._brokers.group(group)
        return config is not None and config.consume_message_orderly

    # Sending.

    async def send_message(
        self, caller: Caller, request: pb.SendMessageRequest
    ) -> pb.SendMessageResponse:
        """Store messages: one, or a batch."""
        try:
            made, queue = await self._outgoing(caller, request)
            address = await self._brokers.master(queue.broker)
            command = Command(made.code, made.ext_for(queue), made.body)
            answer = await self._brokers.invoke(address, command, CALL_SECONDS)
            result = made.result(queue, answer)
        except RocketbrokerError as problem:
            return pb.SendMessageResponse(status=status_of(problem))
        entry = self._entry(request, result)
        status = entry.status
        if status.code != Code.OK:
            status = Status(code=status.code, message=Code.Name(status.code))
        return pb.SendMessageResponse(status=status, entries=[entry])

    async def _outgoing(
        self, caller: Caller, request: pb.SendMessageRequest
    ) -> tuple[SendRequest, MessageQueue]:
        messages = request.messages
        if not messages:
            raise Refusal(Code.MESSAGE_CORRUPTED, "no message to send")
        topic = topic_of(messages[0].topic)
        check_messages(messages, self._settings, self._runtime.wall_ms())
        stored = [properties_of(message, caller.peer) for message in messages]
        if self._settings.enable_topic_message_type_check:
            check_kind(await self._brokers.kind(topic), topic, stored[0])
        queues = await self._brokers.writable(topic)
        key = stored[0].get(SHARDING_KEY)
        if key and len(messages) == 1:
            queue = queues[jump_hash(key, len(queues))]
        else:
            queue = self._brokers.turn(queues)
        return request_of(topic, messages, stored), queue

    def _entry(
        self, request: pb.SendMessageRequest, result: SendResult
    ) -> pb.SendResultEntry:
        unsafe = _UNSAFE.get(result.status)
        if unsafe is not None:
            words = f"send message failed, sendStatus={unsafe[1]}"
            return pb.SendResultEntry(status=Status(code=unsafe[0], message=words))
        transaction_id = ""
        system = request.messages[0].system_properties
        if system.message_type == pb.MessageType.TRANSACTION:
            half = Half(
                result.queue.broker,
                ids.parse_offset_id(result.offset_ids[0]).position,
                result.queue_offset,
                result.transaction_id or result.message_id,
            )
            transaction_id = half.text()
        return pb.SendResultEntry(
            status=ok(),
            message_id=",".join(result.message_ids),
            transaction_id=transaction_id,
            offset=result.queue_offset,
            recall_handle=result.recall_handle or "",
        )

    async def recall_message(
        self, caller: Caller, request: pb.RecallMessageRequest
    ) -> pb.RecallMessageResponse:
        """Take a message back that is to be delivered later."""
        try:
            topic = topic_of(request.topic)
            if self._settings.enable_topic_message_type_check:
                kind = await self._brokers.kind(topic)
                if kind not in ("DELAY", "MIXED"):
                    raise Refusal(
                        Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE,
                        "TopicMessageType validate failed, the expected type is "
                        f"{kind}, but actual type is DELAY",
                    )
            broker = recalled_broker(request.recall_handle)
            header = RecallMessageRequestHeader(
                producer_group=topic,
                topic=topic,
                recall_handle=request.recall_handle,
                bname=broker,
            )
            command = Command(RequestCode.RECALL_MESSAGE, header.to_ext())
            address = await self._brokers.master(broker)
            answer = await self._brokers.ask(address, command, CALL_SECONDS)
        except RocketbrokerError as problem:
            return pb.RecallMessageResponse(status=status_of(problem))
        found = (answer.ext or {}).get("msgId", "")
        return pb.RecallMessageResponse(status=ok(), message_id=found)

    async def end_transaction(
        self, caller: Caller, request: pb.EndTransactionRequest
    ) -> pb.EndTransactionResponse:
        """Let readers have a half message, or nobody."""
        try:
            topic = topic_of(request.topic)
            if not request.transaction_id.strip():
                words = "transaction id cannot be empty"
                raise Refusal(Code.INVALID_TRANSACTION_ID, words)
            half = Half.parse(request.transaction_id)
            command = end_request(
                topic,
                half,
                request.message_id,
                request.resolution,
                request.source == pb.TransactionSource.SOURCE_SERVER_CHECK,
            )
            await self._brokers.tell(await self._brokers.master(half.broker), command)
        except RocketbrokerError as problem:
            return pb.EndTransactionResponse(status=status_of(problem))
        return pb.EndTransactionResponse(status=ok())

    # Receiving.

    async def receive_message(
        self, caller: Caller, request: pb.ReceiveMessageRequest
    ) -> AsyncGenerator[pb.ReceiveMessageResponse, None]:
        """The frames of an answer: a status, messages, and the time.

        A client that goes away in between leaves its poll at the broker. What that
        brings, and what is not taken of an answer, is given to others soon.
        """
        self._called(caller)
        reception = _Reception(self._runtime.future())
        self._waiting.add(reception)
        if self._drains:
            reception.answer.set_result(nothing())
        else:
            self._tasks.spawn(self._receive_for(reception, caller, request))
        left: list[pb.Message] = []
        try:
            found = await reception.answer
            if isinstance(found, Status):
                yield pb.ReceiveMessageResponse(status=found)
            else:
                left = found
                yield pb.ReceiveMessageResponse(status=ok())
                while left:
                    yield pb.ReceiveMessageResponse(message=left[0])
                    del left[0]
            now = stamp(self._runtime.wall_ms())
            yield pb.ReceiveMessageResponse(delivery_timestamp=now)
        finally:
            reception.is_gone = True
            self._waiting.discard(reception)
            if left:
                self._tasks.spawn(self._give_back(caller, request, left))

    async def _receive_for(
        self,
        reception: _Reception,
        caller: Caller,
        request: pb.ReceiveMessageRequest,
    ) -> None:
        found: list[pb.Message] | Status
        try:
            received = await self._receive(caller, request)
        except RocketbrokerError as problem:
            found = status_of(problem)
        else:
            found = received.messages
            if not found:
                found = nothing(received.had_others)
        if reception.is_gone or reception.answer.done():
            if not isinstance(found, Status):
                await self._give_back(caller, request, found)
        else:
            reception.answer.set_result(found)

    async def _give_back(
        self,
        caller: Caller,
        request: pb.ReceiveMessageRequest,
        messages: list[pb.Message],
    ) -> None:
        """Let others have messages soon that their client has not taken."""
        self.given_back += 1
        topic, group = request.message_queue.topic.name, request.group.name
        rest = self._settings.invisible_time_millis_when_clear
        for message in messages:
            system = message.system_properties
            handle = Handle.parse(system.receipt_handle)
            self.renewals.drop(
                place_of(caller.client_id, group, system.message_id, handle)
            )
            try:
                await self.change(topic, group, handle, rest)
            except RocketbrokerError as problem:
                _log.debug("A message of %s waits for its time: %s", topic, problem)

    async def _receive(
        self, caller: Caller, request: pb.ReceiveMessageRequest
    ) -> _Found:
        client = self.clients.get(caller.client_id)
        settings = None if client is None else client.settings
        topic = topic_of(request.message_queue.topic)
        group = group_of(request.group)
        kind, expression = filter_of(request.filter_expression)
        wanted = Wanted(
            request.batch_size,
            poll_ms(
                request, settings, caller.remaining, caller.version, self._settings
            ),
            invisible_ms(request, self._settings),
            kind,
            expression,
            self._born_ms(),
        )
        config = await self._brokers.group(group)
        fifo = config is not None and config.consume_message_orderly
        most = 1 + (16 if config is None else config.retry_max_times)
        broker, address = await self._brokers.readable(
            topic, request.message_queue.broker.name
        )
        attempt = request.attempt_id if request.HasField("attempt_id") else None
        command = pop_command(topic, group, broker, wanted, fifo, attempt)
        seconds = wanted.poll_ms / 1000 + CALL_SECONDS
        answer = await self._brokers.invoke(address, command, seconds)
        if answer.code == ResponseCode.POLLING_FULL:
            raise Refusal(Code.TOO_MANY_REQUESTS, "polling full")
        popped = given(broker, answer, fifo)
        messages = []
        for one in popped:
            message = one.popped.message
            if not lets_through(kind, expression, message.tags):
                self._tasks.spawn(self._pass(topic, group, one.handle))
            elif one.attempts >= most:
                self._tasks.spawn(self._bury(topic, group, one))
            else:
                messages.append(self._give(caller, request, topic, group, one))
        return _Found(messages, bool(popped))

    def _born_ms(self) -> int:
        """When a pop is asked for.

        RocketMQ's broker takes 0 for now, unless it controls access: then it has read
        the fields before, and says that 0 is too long ago.
        """
        if self._settings.enable_acl_rpc_hook_for_cluster_mode:
            return self._runtime.wall_ms()
        return 0

    def _give(
        self,
        caller: Caller,
        request: pb.ReceiveMessageRequest,
        topic: str,
        group: str,
        one: Given,
    ) -> pb.Message:
        stored = one.popped.message
        if self._settings.enable_proxy_auto_renew and request.auto_renew:
            place = place_of(caller.client_id, group, stored.message_id, one.handle)
            self.renewals.keep(place, topic, one.handle)
        now = self._runtime.wall_ms()
        return message_of(stored, topic, one.attempts, one.handle.text(), now)

    async def _pass(self, topic: str, group: str, handle: Handle) -> None:
        """Acknowledge what the broker has given by mistake."""
        try:
            await self._ack(topic, group, handle)
        except RocketbrokerError as problem:
            _log.debug("A message of %s is given out again: %s", topic, problem)

    async def _bury(self, topic: str, group: str, one: Given) -> None:
        """Make a dead letter of what was given out too often."""
        try:
            message_id = one.popped.message.message_id
            await self._forward(topic, group, one.handle, message_id)
        except RocketbrokerError as problem:
            _log.warning("A message of %s is no dead letter yet: %s", topic, problem)

    # What becomes of messages.

    async def ack_message(
        self, caller: Caller, request: pb.AckMessageRequest
    ) -> pb.AckMessageResponse:
        """Acknowledge messages, each by itself."""
        self._called(caller)
        try:
            topic, group = topic_of(request.topic), group_of(request.group)
        except Refusal as problem:
            return pb.AckMessageResponse(status=status_of(problem))
        entries = [
            pb.AckMessageResultEntry(
                message_id=one.message_id,
                receipt_handle=one.receipt_handle,
                status=await self._ack_one(caller, topic, group, one),
            )
            for one in request.entries
        ]
        return pb.AckMessageResponse(status=_together(entries), entries=entries)

    async def _ack_one(
        self, caller: Caller, topic: str, group: str, entry: pb.AckMessageEntry
    ) -> Status:
        try:
            handle = Handle.parse(entry.receipt_handle)
            place = place_of(caller.client_id, group, entry.message_id, handle)
            handle = self.renewals.current(place, handle)
            self._check_expired(handle)
            await self._ack(topic, group, handle)
        except RocketbrokerError as problem:
            return status_of(problem)
        self.renewals.drop(place)
        return ok()

    def _check_expired(self, handle: Handle) -> None:
        if handle.visible_at <= self._runtime.wall_ms():
            raise Refusal(Code.INVALID_RECEIPT_HANDLE, "receipt handle is expired")

    async def _broker_of(self, handle: Handle) -> str:
        try:
            return await self._brokers.master(handle.receipt.broker_name)
        except Refusal as problem:
            raise Refusal(Code.INVALID_RECEIPT_HANDLE, str(problem)) from None

    async def _ack(self, topic: str, group: str, handle: Handle) -> None:
        receipt = handle.receipt
        header = AckMessageRequestHeader(
            consumer_group=group,
            topic=handle.topic(topic, group),
            queue_id=receipt.queue_id,
            extra_info=handle.text(),
            offset=receipt.offset or 0,
            bname=receipt.broker_name,
        )
        command = Command(RequestCode.ACK_MESSAGE, header.to_ext())
        await self._brokers.ask(await self._broker_of(handle), command, CALL_SECONDS)

    async def change_invisible_duration(
        self, caller: Caller, request: pb.ChangeInvisibleDurationRequest
    ) -> pb.ChangeInvisibleDurationResponse:
        """Let a message be given out again later or sooner."""
        text = request.receipt_handle
        try:
            topic, group = topic_of(request.topic), group_of(request.group)
            wanted = span_ms(request.invisible_duration)
            check_invisible(wanted, 0, self._settings)
            handle = Handle.parse(text)
            place = place_of(caller.client_id, group, request.message_id, handle)
            handle = self.renewals.current(place, handle)
            self._check_expired(handle)
            handle = await self.change(topic, group, handle, wanted)
            self.renewals.drop(place)
        except RocketbrokerError as problem:
            return pb.ChangeInvisibleDurationResponse(
                status=status_of(problem), receipt_handle=text
            )
        return pb.ChangeInvisibleDurationResponse(
            status=ok(), receipt_handle=handle.text()
        )

    async def change(
        self, topic: str, group: str, handle: Handle, invisible: int
    ) -> Handle:
        """Give a message another invisible time, from now on.

        @param invisible: in milliseconds.
        @return: the handle that counts now.
        @raise RocketbrokerError: the broker does not do it.
        """
        receipt = handle.receipt
        header = ChangeInvisibleTimeRequestHeader(
            consumer_group=group,
            topic=handle.topic(topic, group),
            queue_id=receipt.queue_id,
            extra_info=handle.text(),
            offset=receipt.offset or 0,
            invisible_time=invisible,
            bname=receipt.broker_name,
        )
        code = RequestCode.CHANGE_MESSAGE_INVISIBLETIME
        answer = await self._brokers.ask(
            await self._broker_of(handle),
            Command(code, header.to_ext()),
            CALL_SECONDS,
        )
        changed = ReceiptHandle(
            receipt.offset or 0,
            number(answer, "popTime"),
            number(answer, "invisibleTime"),
            number(answer, "reviveQid"),
            receipt.kind,
            receipt.broker_name,
            receipt.queue_id,
            receipt.offset,
        )
        return Handle(changed, handle.position)

    async def forward_to_dead_letters(
        self, caller: Caller, request: pb.ForwardMessageToDeadLetterQueueRequest
    ) -> pb.ForwardMessageToDeadLetterQueueResponse:
        """Make a dead letter of a message."""
        response = pb.ForwardMessageToDeadLetterQueueResponse
        try:
            topic, group = topic_of(request.topic), group_of(request.group)
            handle = Handle.parse(request.receipt_handle)
            place = place_of(caller.client_id, group, request.message_id, handle)
            handle = self.renewals.current(place, handle)
            if handle.position < 0:
                words = "commit log offset is empty"
                raise Refusal(Code.INVALID_RECEIPT_HANDLE, words)
            await self._forward(topic, group, handle, request.message_id)
            self.renewals.drop(place)
        except RocketbrokerError as problem:
            return response(status=status_of(problem))
        return response(status=ok())

    async def _forward(
        self, topic: str, group: str, handle: Handle, message_id: str
    ) -> None:
        header = ConsumerSendMsgBackRequestHeader(
            offset=handle.position,
            group=group,
            delay_level=-1,
            origin_msg_id=message_id,
            origin_topic=handle.topic(topic, group),
            unit_mode=False,
            max_reconsume_times=0,
            bname=handle.receipt.broker_name,
        )
        command = Command(RequestCode.CONSUMER_SEND_MSG_BACK, header.to_ext())
        await self._brokers.ask(await self._broker_of(handle), command, CALL_SECONDS)
        self._tasks.spawn(self._pass(topic, group, handle))

    # Being there.

    async def heartbeat(
        self, caller: Caller, request: pb.HeartbeatRequest
    ) -> pb.HeartbeatResponse:
        """A client is there still."""
        self._called(caller)
        client = self.clients.get(caller.client_id)
        if client is None or client.settings is None:
            code = Code.UNRECOGNIZED_CLIENT_TYPE
            words = "cannot find client settings for this client"
            return pb.HeartbeatResponse(status=Status(code=code, message=words))
        try:
            if client.is_consumer:
                group_of(request.group)
        except Refusal as problem:
            return pb.HeartbeatResponse(status=status_of(problem))
        self.clients.heard(caller.client_id, self._runtime.monotonic())
        return pb.HeartbeatResponse(status=ok())

    async def notify_client_termination(
        self, caller: Caller, request: pb.NotifyClientTerminationRequest
    ) -> pb.NotifyClientTerminationResponse:
        """A client leaves; others have at once what it has in hand."""
        client = self.clients.forget(caller.client_id)
        if client is not None and client.is_consumer:
            self._tasks.spawn(self.renewals.clear(caller.client_id))
        return pb.NotifyClientTerminationResponse(status=ok())

    def drain(self) -> None:
        """Receives that wait end without a message, and new ones do not wait."""
        self._drains = True
        for reception in self._waiting:
            if not reception.answer.done():
                reception.answer.set_result(nothing())

    async def close(self) -> None:
        """End what is under way."""
        await self._tasks.end()


def nothing(had_others: bool = False) -> Status:
    """The status of a receive that brings nothing.

    @param had_others: whether there were messages that its filter does not want.
    """
    words = "no match message" if had_others else "no new message"
    return Status(code=Code.MESSAGE_NOT_FOUND, message=words)


def recalled_broker(handle: str) -> str:
    """The broker of a recall handle.

    @raise Refusal: it is none.
    """
    try:
        return RecallHandle.parse(handle).broker_name
    except Malformed:
        words = "recall handle is invalid"
        raise Refusal(Code.INTERNAL_SERVER_ERROR, words) from None


@final
class _Reception:
    """A receive that goes on when its client has gone.

    @ivar answer: messages, or the status that says why there are none.
    """

    def __init__(self, answer: Future[list[pb.Message] | Status]) -> None:
        self.answer = answer
        self.is_gone = False


class _Found(NamedTuple):
    """The messages of one pop that are wanted, and whether there were others."""

    messages: list[pb.Message]
    had_others: bool


def _together(entries: list[pb.AckMessageResultEntry]) -> Status:
    """The status of all entries together."""
    codes = {entry.status.code for entry in entries}
    if len(codes) == 1:
        (code,) = codes
        return ok() if code == Code.OK else entries[0].status
    code = Code.MULTIPLE_RESULTS
    if not codes:
        code = Code.INTERNAL_SERVER_ERROR
    return Status(code=code, message=Code.Name(code))
