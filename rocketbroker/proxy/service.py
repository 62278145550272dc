# -*- test-case-name: tests.proxy.test_service -*-
"""The service as gRPC has it: names of methods, headers of calls, streams.

The path is the reference's; the messages are ours. So the methods are given to gRPC as
generic handlers. C{docs/facts/proxy.md} 2.1, 3.1 and 4.1.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, NoReturn, TypeVar, final

import grpc
from google.protobuf.message import DecodeError
from google.protobuf.message import Message as AnyMessage

from rocketbroker.errors import RocketbrokerError
from rocketbroker.proxy import messages_pb2 as pb
from rocketbroker.proxy.access import Access
from rocketbroker.proxy.calls import Caller, Calls
from rocketbroker.proxy.counts import Counts
from rocketbroker.proxy.messages_pb2 import Code, Status, TelemetryCommand
from rocketbroker.proxy.statuses import Refusal, status_of
from rocketbroker.proxy.telemetry import Telemetry

SERVICE: Final = "apache.rocketmq.v2.MessagingService"

#: How many commands a client may leave unread before its stream is closed.
MAX_COMMANDS: Final = 1024

#: What the client of a call is told whose request cannot be read.
MALFORMED: Final = "the request is no message of this method"

#: What a client is told that does not read its stream.
UNREAD: Final = f"{MAX_COMMANDS} commands were not read"

Context = grpc.aio.ServicerContext[Any, Any]
Q = TypeVar("Q", bound=AnyMessage)
A = TypeVar("A", bound=AnyMessage)


def caller_of(context: Context, peer: Callable[[str], str]) -> Caller:
    """Who makes a call.

    @param peer: the address of a client, by what gRPC takes for it.
    """
    headers = dict(context.invocation_metadata() or ())
    remaining = context.time_remaining()
    return Caller(
        client_id=_text(headers.get("x-mq-client-id")),
        peer=peer(peer_of(context.peer())),
        version=_text(headers.get("x-mq-client-version")),
        remaining=remaining,
    )


def parser(kind: type[Q]) -> Callable[[bytes], Q | None]:
    """What makes messages of bytes, and nothing of those that are none.

    gRPC takes an error here for a mistake of ours, and says C{UNKNOWN}.
    """
    parse = kind.FromString

    def parsed(data: bytes) -> Q | None:
        try:
            return parse(data)
        except DecodeError:
            return None

    return parsed


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def peer_of(text: str) -> str:
    """The address of a peer, C{ip:port}, as gRPC names it: C{ipv4:1.2.3.4:5}."""
    kind, _, address = text.partition(":")
    if kind == "ipv6":
        address = address.replace("%5B", "[").replace("%5D", "]")
    return address


@final
class Service:
    """All methods.

    @ivar counts: the calls that have ended.
    @ivar overrun: how many streams were cut because their client did not read.
    """

    def __init__(
        self,
        calls: Calls,
        telemetry: Telemetry,
        peer: Callable[[str], str],
        access: Access | None = None,
    ) -> None:
        """
        @param peer: see L{caller_of}.
        @param access: who may do what; C{None}: everybody may do everything.
        """
        self._calls = calls
        self._access = access
        self._peer = peer
        self._telemetry = telemetry
        self._streams: set[asyncio.Queue[TelemetryCommand | None]] = set()
        self._drains = False
        self.counts = Counts(time.monotonic)
        self._cuts: set[asyncio.Task[None]] = set()
        self.overrun = 0

    @property
    def streams(self) -> int:
        """How many streams of telemetry are open."""
        return len(self._streams)

    def handler(self) -> grpc.GenericRpcHandler:
        """What a server of gRPC takes."""
        calls = self._calls
        unary: list[tuple[str, Any, Any, Any]] = [
            (
                "QueryRoute",
                calls.query_route,
                pb.QueryRouteRequest,
                pb.QueryRouteResponse,
            ),
            ("Heartbeat", calls.heartbeat, pb.HeartbeatRequest, pb.HeartbeatResponse),
            (
                "SendMessage",
                calls.send_message,
                pb.SendMessageRequest,
                pb.SendMessageResponse,
            ),
            (
                "QueryAssignment",
                calls.query_assignment,
                pb.QueryAssignmentRequest,
                pb.QueryAssignmentResponse,
            ),
            (
                "AckMessage",
                calls.ack_message,
                pb.AckMessageRequest,
                pb.AckMessageResponse,
            ),
            (
                "ForwardMessageToDeadLetterQueue",
                calls.forward_to_dead_letters,
                pb.ForwardMessageToDeadLetterQueueRequest,
                pb.ForwardMessageToDeadLetterQueueResponse,
            ),
            (
                "EndTransaction",
                calls.end_transaction,
                pb.EndTransactionRequest,
                pb.EndTransactionResponse,
            ),
            (
                "NotifyClientTermination",
                calls.notify_client_termination,
                pb.NotifyClientTerminationRequest,
                pb.NotifyClientTerminationResponse,
            ),
            (
                "ChangeInvisibleDuration",
                calls.change_invisible_duration,
                pb.ChangeInvisibleDurationRequest,
                pb.ChangeInvisibleDurationResponse,
            ),
            (
                "RecallMessage",
                calls.recall_message,
                pb.RecallMessageRequest,
                pb.RecallMessageResponse,
            ),
        ]
        methods = {
            name: grpc.unary_unary_rpc_method_handler(
                self.counts.unary(name, self._unary(call, response)),
                request_deserializer=parser(request),
                response_serializer=response.SerializeToString,
            )
            for name, call, request, response in unary
        }
        methods["ReceiveMessage"] = grpc.unary_stream_rpc_method_handler(
            self.counts.stream("ReceiveMessage", self._receive),
            request_deserializer=parser(pb.ReceiveMessageRequest),
            response_serializer=pb.ReceiveMessageResponse.SerializeToString,
        )
        methods["Telemetry"] = grpc.stream_stream_rpc_method_handler(
            self.counts.stream("Telemetry", self._telemetry_stream, stays_open=True),
            request_deserializer=parser(TelemetryCommand),
            response_serializer=TelemetryCommand.SerializeToString,
        )
        return grpc.method_handlers_generic_handler(SERVICE, methods)

    def drain(self) -> None:
        """End all streams, and take no new ones: their clients come again."""
        self._drains = True
        for commands in self._streams:
            commands.put_nowait(None)

    def _unary(
        self, call: Callable[[Caller, Q], Awaitable[A]], response: type[A]
    ) -> Callable[[Q | None, Context], Awaitable[A]]:
        async def answer(request: Q | None, context: Context) -> A:
            caller = caller_of(context, self._peer)
            status = await self._problem(caller, request, context)
            if status is not None:
                return response(status=status)
            if request is None:
                await _refuse(context)
            return await call(caller, request)

        return answer

    async def _problem(
        self, caller: Caller, message: AnyMessage | None, context: Context
    ) -> Status | None:
        """Why a call, or a command of a stream, is not carried out; C{None}: it is."""
        if self._access is not None and message is not None:
            headers = dict(context.invocation_metadata() or ())
            try:
                await self._access.check(headers, message, caller.peer)
            except Refusal as problem:
                return status_of(problem)
        return None if caller.client_id.strip() else _no_client_id()

    async def _receive(
        self, request: pb.ReceiveMessageRequest | None, context: Context
    ) -> AsyncIterator[pb.ReceiveMessageResponse]:
        caller = caller_of(context, self._peer)
        status = await self._problem(caller, request, context)
        if status is not None:
            yield pb.ReceiveMessageResponse(status=status)
            return
        if request is None:
            await _refuse(context)
        async for frame in self._calls.receive_message(caller, request):
            yield frame

    async def _telemetry_stream(
        self, requests: AsyncIterator[TelemetryCommand | None], context: Context
    ) -> AsyncIterator[TelemetryCommand]:
        caller = caller_of(context, self._peer)
        if not caller.client_id.strip():
            yield TelemetryCommand(status=_no_client_id())
            return
        if self._drains:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the proxy stops")
        commands: asyncio.Queue[TelemetryCommand | None] = asyncio.Queue()
        writing = asyncio.current_task()
        assert writing is not None

        def send(command: TelemetryCommand) -> None:
            if commands.qsize() < MAX_COMMANDS:
                commands.put_nowait(command)
            elif commands in self._streams:
                self._streams.discard(commands)
                cut = asyncio.ensure_future(self._cut(context, writing))
                self._cuts.add(cut)
                cut.add_done_callback(self._cuts.discard)

        self._streams.add(commands)
        problems: list[RocketbrokerError] = []
        if self._access is not None:
            requests = self._allowed(caller, requests, context, send)
        reading = asyncio.ensure_future(
            self._read(caller, requests, send, commands, problems)
        )
        try:
            while (command := await commands.get()) is not None:
                yield command
            if problems:
                await context.abort(
                    grpc.StatusCode.INVALID_ARGUMENT
                    if isinstance(problems[0], Refusal)
                    else grpc.StatusCode.INTERNAL,
                    f"process client telemetryCommand failed. {problems[0]}",
                )
        finally:
            reading.cancel()
            self._streams.discard(commands)
            self._telemetry.stream_ended(caller.client_id, send)

    async def _allowed(
        self,
        caller: Caller,
        requests: AsyncIterator[TelemetryCommand | None],
        context: Context,
        send: Callable[[TelemetryCommand], None],
    ) -> AsyncIterator[TelemetryCommand | None]:
        """What a client sends, up to a command that is refused: that ends the stream,
        behind a status."""
        async for command in requests:
            status = await self._problem(caller, command, context)
            if status is not None:
                send(TelemetryCommand(status=status))
                return
            yield command

    async def _cut(self, context: Context, writing: asyncio.Task[Any]) -> None:
        """End a stream that waits for its client to read: nothing in its queue would.

        The status waits, too, but nothing else is kept.
        """
        self.overrun += 1
        writing.cancel()
        with suppress(grpc.aio.AbortError):
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, UNREAD)

    async def _read(
        self,
        caller: Caller,
        requests: AsyncIterator[TelemetryCommand | None],
        send: Callable[[TelemetryCommand], None],
        commands: asyncio.Queue[TelemetryCommand | None],
        problems: list[RocketbrokerError],
    ) -> None:
        """Take what a client sends, until it closes its side."""
        try:
            async for command in requests:
                if command is None:
                    raise Refusal(Code.BAD_REQUEST, MALFORMED)
                if command.HasField("settings"):
                    await self._telemetry.settings_came(
                        caller.client_id, command.settings, send
                    )
        except RocketbrokerError as problem:
            problems.append(problem)
        finally:
            commands.put_nowait(None)


async def _refuse(context: Context) -> NoReturn:
    await context.abort(grpc.StatusCode.INVALID_ARGUMENT, MALFORMED)


def _no_client_id() -> Status:
    return Status(code=Code.CLIENT_ID_REQUIRED, message="client id cannot be empty")
