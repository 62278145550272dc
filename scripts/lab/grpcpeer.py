"""A client of gRPC without any will of its own: it sends what it is told to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, TypeVar, final

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message as AnyMessage
from google.protobuf.timestamp_pb2 import Timestamp

from rocketbroker.auth.grpc_signatures import sign
from rocketbroker.auth.signatures import Credentials
from rocketbroker.proxy import messages_pb2 as pb
from rocketbroker.proxy.service import SERVICE

A = TypeVar("A", bound=AnyMessage)


@final
class GrpcPeer:
    """One client with one connection; it is used C{async with}.

    @ivar channel: the connection.
    """

    def __init__(
        self, address: str, client_id: str, credentials: Credentials | None = None
    ) -> None:
        """
        @param address: a target as gRPC has it: C{host:port}, or C{ipv4:} and several.
        @param credentials: its calls are signed with them; C{None}: they are not.
        """
        self.channel = grpc.aio.insecure_channel(
            address,
            [
                ("grpc.use_local_subchannel_pool", 1),
                ("grpc.max_send_message_length", -1),
            ],
        )
        signed = {} if credentials is None else sign(credentials, "20261129T120000Z")
        own = {"x-mq-client-id": client_id, "x-mq-language": "PYTHON"}
        self._headers = (*own.items(), *signed.items())

    async def __aenter__(self) -> GrpcPeer:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.channel.close()

    async def call(
        self, method: str, request: AnyMessage | bytes, response: type[A]
    ) -> A:
        """The answer to a call.

        @param request: bytes go as they are.
        """
        call: Any = self.channel.unary_unary(
            f"/{SERVICE}/{method}",
            request_serializer=_bytes,
            response_deserializer=response.FromString,
        )
        answer: A = await call(request, metadata=self._headers, timeout=30.0)
        return answer

    def telemetry(self) -> Any:
        """A stream of settings and commands."""
        opens = self.channel.stream_stream(
            f"/{SERVICE}/Telemetry",
            request_serializer=pb.TelemetryCommand.SerializeToString,
            response_deserializer=pb.TelemetryCommand.FromString,
        )
        return opens(metadata=self._headers)

    async def introduce(self, settings: pb.Settings) -> Any:
        """The stream of a client that has said what it does, and was answered."""
        stream = self.telemetry()
        await stream.write(pb.TelemetryCommand(settings=settings))
        await stream.read()
        return stream

    async def send(
        self, topic: str, body: bytes, message_id: str, **system: Any
    ) -> pb.SendMessageResponse:
        """Send one message."""
        born = Timestamp()
        born.GetCurrentTime()
        given = {
            "message_type": pb.MessageType.NORMAL,
            "born_timestamp": born,
            **system,
        }
        message = pb.Message(
            topic=pb.Resource(name=topic),
            body=body,
            system_properties=pb.SystemProperties(message_id=message_id, **given),
        )
        request = pb.SendMessageRequest(messages=[message])
        return await self.call("SendMessage", request, pb.SendMessageResponse)

    async def frames(
        self, request: pb.ReceiveMessageRequest
    ) -> AsyncIterator[pb.ReceiveMessageResponse]:
        """What a receive brings, frame by frame."""
        call: Any = self.channel.unary_stream(
            f"/{SERVICE}/ReceiveMessage",
            request_serializer=pb.ReceiveMessageRequest.SerializeToString,
            response_deserializer=pb.ReceiveMessageResponse.FromString,
        )
        async for frame in call(request, metadata=self._headers, timeout=60.0):
            yield frame

    async def receive(
        self, topic: str, group: str, poll_seconds: int = 5, **more: Any
    ) -> list[pb.Message]:
        """The messages of a receive."""
        request = receive_request(topic, group, poll_seconds, **more)
        return [
            frame.message
            async for frame in self.frames(request)
            if frame.HasField("message")
        ]

    async def status(self, topic: str, group: str, poll_seconds: int) -> pb.Status:
        """The status of a receive."""
        found = pb.Status()
        async for frame in self.frames(receive_request(topic, group, poll_seconds)):
            if frame.HasField("status"):
                found = frame.status
        return found

    async def ack(
        self, topic: str, group: str, message: pb.Message
    ) -> pb.AckMessageResponse:
        """Acknowledge a message."""
        system = message.system_properties
        entry = pb.AckMessageEntry(
            message_id=system.message_id, receipt_handle=system.receipt_handle
        )
        request = pb.AckMessageRequest(
            topic=pb.Resource(name=topic),
            group=pb.Resource(name=group),
            entries=[entry],
        )
        return await self.call("AckMessage", request, pb.AckMessageResponse)


def receive_request(
    topic: str, group: str, poll_seconds: int = 5, **more: Any
) -> pb.ReceiveMessageRequest:
    """What asks for messages.

    @param more: fields.
    """
    fields: dict[str, Any] = {"batch_size": 32, "auto_renew": True, **more}
    return pb.ReceiveMessageRequest(
        group=pb.Resource(name=group),
        message_queue=pb.MessageQueue(topic=pb.Resource(name=topic)),
        long_polling_timeout=Duration(seconds=poll_seconds),
        **fields,
    )


def push_settings(topic: str, group: str) -> pb.Settings:
    """What a push consumer says first."""
    entry = pb.SubscriptionEntry(topic=pb.Resource(name=topic))
    return pb.Settings(
        client_type=pb.ClientType.PUSH_CONSUMER,
        subscription=pb.Subscription(
            group=pb.Resource(name=group), subscriptions=[entry]
        ),
    )


def producer_settings(topic: str) -> pb.Settings:
    """What a producer says first."""
    return pb.Settings(
        client_type=pb.ClientType.PRODUCER,
        publishing=pb.Publishing(topics=[pb.Resource(name=topic)]),
    )


def _bytes(request: AnyMessage | bytes) -> bytes:
    return request if isinstance(request, bytes) else request.SerializeToString()
