# -*- test-case-name: tests.client.test_replies -*-
"""Replies: messages by which another client answers one of ours, and ours to others.

A message that is to be answered says by whom it was sent, and has an id of its own. The
reply goes to a broker of the same cluster, which knows the asking client by its
heartbeats and passes the reply on at once, as request 326. Nobody keeps it: if that
client is gone, the reply is refused. C{docs/facts/client.md} 13.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final, final

from rocketbroker.client.connection import ServerConnection
from rocketbroker.client.instance import Instance
from rocketbroker.client.producer import Producer
from rocketbroker.client.received import MessageView
from rocketbroker.client.runtime import Future
from rocketbroker.client.waits import Tasks
from rocketbroker.config.addresses import split_address
from rocketbroker.errors import (
    ClientClosed,
    ConfigurationError,
    MessageIllegal,
    RequestTimeout,
    RocketbrokerError,
)
from rocketbroker.records import hosts, names, properties
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.outgoing import Message
from rocketbroker.records.record import StoredMessage, body_crc
from rocketbroker.routing.send_requests import REPLY
from rocketbroker.routing.topic_view import MessageQueue
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.headers.send import ReplyMessageRequestHeader

#: What a message has that is to be answered.
ASKED: Final = (
    properties.CLUSTER,
    properties.CORRELATION_ID,
    properties.REPLY_TO_CLIENT,
)

#: How long somebody waits for a reply who does not say so.
REPLY_SECONDS: Final = 3.0

_log: Final = logging.getLogger("rocketbroker.client")


@final
class Replies:
    """The replies that one client waits for."""

    def __init__(self, instance: Instance, producer: Producer) -> None:
        """
        @param producer: sends what is to be answered.
        """
        self._instance = instance
        self._producer = producer
        self._awaited: dict[str, Future[MessageView]] = {}
        self._topics: set[str] = set()
        instance.membership.introduce()
        code = RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT
        instance.connections.watch(code, self._pushed)

    async def ask(
        self, message: Message, queue: MessageQueue | None, timeout: float | None
    ) -> MessageView:
        """Send a message and wait for its reply.

        @param timeout: seconds for both; None: the patience of the client.
        @raise RequestTimeout: nobody has replied in time. Other errors as those of
            L{Producer.send}.
        @raise ClientClosed: it was closed meanwhile.
        """
        instance = self._instance
        seconds = instance.settings.patience if timeout is None else timeout
        asked = instance.unique_key()
        message.properties |= {
            properties.CORRELATION_ID: asked,
            properties.REPLY_TO_CLIENT: instance.membership.client_id,
            properties.TTL: str(round(seconds * 1000)),
        }
        reply: Future[MessageView] = instance.runtime.future()
        self._awaited[asked] = reply
        timer = instance.runtime.call_later(seconds, _expire, reply, seconds)
        tasks = Tasks(instance.runtime)
        tasks.spawn(self._send(message, queue, seconds, reply))
        try:
            return await reply
        finally:
            timer.cancel()
            del self._awaited[asked]
            await tasks.end()

    def close(self) -> None:
        """Whoever waits for a reply waits no more."""
        for reply in self._awaited.values():
            if not reply.done():
                reply.set_exception(ClientClosed("the session was closed"))

    async def _send(
        self,
        message: Message,
        queue: MessageQueue | None,
        seconds: float,
        reply: Future[MessageView],
    ) -> None:
        try:
            await self._introduce(self._instance.namespace.inside(message.topic))
            await self._producer.send(message, queue, seconds)
        except RocketbrokerError as problem:
            if not reply.done():
                reply.set_exception(problem)

    async def _introduce(self, topic: str) -> None:
        """Any broker of the topic may be given the reply, so all have to know us."""
        if topic in self._topics:
            return
        try:
            await self._instance.routes.view(topic)
        except RocketbrokerError as problem:
            _log.debug("No broker of %s knows us yet: %s", topic, problem)
            return
        await self._instance.membership.beat()
        self._topics.add(topic)

    def _pushed(self, connection: ServerConnection, command: Command) -> None:
        try:
            found = reply_of(command, self._instance.runtime.wall_ms())
        except Malformed as problem:
            _log.warning("A reply cannot be read: %s", problem)
            words = "process reply message fail"
            connection.respond(response_to(command, 1, words))
            return
        asked = found.properties.get(properties.CORRELATION_ID, "")
        reply = self._awaited.get(asked)
        if reply is None or reply.done():
            _log.debug("A reply comes too late: %s", asked)
        else:
            reply.set_result(found)
        connection.respond(response_to(command))


def _expire(reply: Future[MessageView], seconds: float) -> None:
    if not reply.done():
        words = f"nobody has replied within {seconds:g} seconds"
        reply.set_exception(RequestTimeout(words))


def reply_of(command: Command, now_ms: int) -> MessageView:
    """The reply in a request 326.

    @param now_ms: when it has arrived.
    @raise Malformed: its body cannot be decompressed.
    """
    header = ReplyMessageRequestHeader.from_ext(command.ext)
    own = {
        **properties.parse(header.properties or ""),
        properties.ARRIVE_TIME: str(now_ms),
    }
    stored = StoredMessage(
        header.topic,
        header.queue_id,
        queue_offset=0,
        position=0,
        size=0,
        body=command.body,
        body_crc=body_crc(command.body),
        flag=header.flag,
        sys_flag=header.sys_flag,
        born_ms=header.born_timestamp,
        born_host=_host(header.born_host),
        store_ms=header.store_timestamp,
        store_host=_host(header.store_host),
        reconsume_times=header.reconsume_times or 0,
        prepared_offset=0,
        property_bytes=properties.encode(own),
    )
    queue = MessageQueue(header.topic, header.bname or "", header.queue_id)
    return MessageView(stored.decompressed(), queue)


def _host(given: str) -> bytes:
    """An address as a record has it. Java writes C{/1.2.3.4:5} or C{name/1.2.3.4:5}."""
    try:
        return hosts.encode(*split_address(given.rpartition("/")[2]))
    except (ConfigurationError, Malformed):
        return bytes(hosts.V4_SIZE)


async def send_reply(
    producer: Producer,
    asked: StoredMessage,
    body: bytes | str,
    tag: str | None,
    user_properties: Mapping[str, str] | None,
) -> None:
    """Answer a message; see C{ReceivedMessage.reply}."""
    lacks = [name for name in ASKED if not asked.properties.get(name)]
    if lacks:
        raise MessageIllegal(
            f"{asked} cannot be replied to, as it has no property {lacks[0]}: only "
            "what was sent with request() waits for a reply"
        )
    topic = names.reply_topic(asked.properties[properties.CLUSTER])
    message = Message(topic, body, tag, properties=user_properties)
    ttl = asked.properties.get(properties.TTL, "")
    message.properties |= {
        properties.MESSAGE_TYPE: REPLY,
        properties.CORRELATION_ID: asked.properties[properties.CORRELATION_ID],
        properties.REPLY_TO_CLIENT: asked.properties[properties.REPLY_TO_CLIENT],
    }
    seconds = REPLY_SECONDS
    if ttl.isdecimal():
        message.properties[properties.TTL] = ttl
        seconds = max(int(ttl) / 1000, 0.001)
    await producer.send(message, timeout=seconds)
