# -*- test-case-name: tests.proxy.test_service -*-
"""The service as gRPC has it: names of methods, headers of calls, streams.

The path is the reference's; the messages are ours. So the methods are given to gRPC as
generic handlers. C{docs/facts/proxy.md} 2.1, 3.1 and 4.1.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, TypeVar, final

import grpc
from google.protobuf.message import Message as AnyMessage

from rocketbroker.errors import RocketbrokerError
from rocketbroker.proxy import messages_pb2 as pb
from rocketbroker.proxy.calls import Caller, Calls
from rocketbroker.proxy.messages_pb2 import Code, Status, TelemetryCommand
from rocketbroker.proxy.statuses import Refusal
from rocketbroker.proxy.telemetry import Telemetry

SERVICE: Final = "apache.rocketmq.v2.MessagingService"

#: How many commands a client may leave unread before its stream is closed.
MAX_COMMANDS: Final = 1024

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
    """All methods."""

    def __init__(
        self, calls: Calls, telemetry: Telemetry, peer: Callable[[str], str]
    ) -> None:
        """
        @param peer: see L{caller_of}.
        """
        self._calls = calls
        self._peer = peer
        self._telemetry = telemetry
        self._streams: set[asyncio.Queue[TelemetryCommand | None]] = set()

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
                self._unary(call, response),
                request_deserializer=request.FromString,
                response_serializer=response.SerializeToString,
            )
            for name, call, request, response in unary
        }
        methods["ReceiveMessage"] = grpc.unary_stream_rpc_method_handler(
            self._receive,
            request_deserializer=pb.ReceiveMessageRequest.FromString,
            response_serializer=pb.ReceiveMessageResponse.SerializeToString,
        )
        methods["Telemetry"] = grpc.stream_stream_rpc_method_handler(
            self._telemetry_stream,
            request_deserializer=TelemetryCommand.FromString,
            response_serializer=TelemetryCommand.SerializeToString,
        )
        return grpc.method_handlers_generic_handler(SERVICE, methods)

    def close_streams(self) -> None:
        """End all streams: their clients come again."""
        for commands in self._streams:
            commands.put_nowait(None)

    def _unary(
        self, call: Callable[[Caller, Q], Awaitable[A]], response: type[A]
    ) -> Callable[[Q, Context], Awaitable[A]]:
        async def answer(request: Q, context: Context) -> A:
            caller = caller_of(context, self._peer)
            if not caller.client_id.strip():
                return response(status=_no_client_id())
            return await call(caller, request)

        return answer

    async def _receive(
        self, request: pb.ReceiveMessageRequest, context: Context
    ) -> AsyncIterator[pb.ReceiveMessageResponse]:
        caller = caller_of(context, self._peer)
        if not caller.client_id.strip():
            yield pb.ReceiveMessageResponse(status=_no_client_id())
            return
        async for frame in self._calls.receive_message(caller, request):
            yield frame

    async def _telemetry_stream(
        self, requests: AsyncIterator[TelemetryCommand], context: Context
    ) -> AsyncIterator[TelemetryCommand]:
        caller = caller_of(context, self._peer)
        if not caller.client_id.strip():
            yield TelemetryCommand(status=_no_client_id())
            return
        commands: asyncio.Queue[TelemetryCommand | None] = asyncio.Queue()

        def send(command: TelemetryCommand) -> None:
            if commands.qsize() >= MAX_COMMANDS:
                commands.put_nowait(None)
            else:
                commands.put_nowait(command)

        self._streams.add(commands)
        problems: list[RocketbrokerError] = []
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

    async def _read(
        self,
        caller: Caller,
        requests: AsyncIterator[TelemetryCommand],
        send: Callable[[TelemetryCommand], None],
        commands: asyncio.Queue[TelemetryCommand | None],
        problems: list[RocketbrokerError],
    ) -> None:
        """Take what a client sends, until it closes its side."""
        try:
            async for command in requests:
                if command.HasField("settings"):
                    await self._telemetry.settings_came(
                        caller.client_id, command.settings, send
                    )
        except RocketbrokerError as problem:
            problems.append(problem)
        finally:
            commands.put_nowait(None)


def _no_client_id() -> Status:
    return Status(code=Code.CLIENT_ID_REQUIRED, message="client id cannot be empty")
