# -*- test-case-name: tests.client.test_consumer -*-
"""A message as its reader has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, final

from rocketbroker.client.inbox import Taken
from rocketbroker.client.namespace import Namespace
from rocketbroker.records import names, properties
from rocketbroker.records.record import StoredMessage
from rocketbroker.routing.topic_view import MessageQueue


class Settlement(Protocol):
    """What becomes of messages that were given out: a consumer's part of it."""

    async def acknowledge(self, taken: Taken) -> None:
        """See L{ReceivedMessage.ack}."""

    async def send_back(self, taken: Taken, delay_level: int) -> None:
        """See L{ReceivedMessage.retry}; C{delay_level} -1: it is a dead letter."""

    async def reply(
        self,
        taken: Taken,
        body: bytes | str,
        tag: str | None,
        properties: Mapping[str, str] | None,
    ) -> None:
        """See L{ReceivedMessage.reply}."""


def topic_of(message: StoredMessage) -> str:
    """The topic to which it was sent: of a retried one that stands in a property."""
    if names.is_retry_topic(message.topic):
        return message.properties.get(properties.RETRY_TOPIC, message.topic)
    return message.topic


class MessageView:
    """What can be read of a message.

    @ivar stored: as it was stored, but decompressed.
    @ivar topic: where it was sent to.
    @ivar queue: where it was read; of a retried message a queue of the retry topic.
    """

    __slots__ = ("queue", "stored", "topic")

    def __init__(
        self, stored: StoredMessage, queue: MessageQueue, topic: str | None = None
    ) -> None:
        """
        @param topic: where it was sent to, if users know it by another name than the
            message says.
        """
        self.stored = stored
        self.queue = queue
        self.topic = topic_of(stored) if topic is None else topic

    def __repr__(self) -> str:
        return f"<message {self.offset} of {self.queue}: {len(self.body)} bytes>"

    @property
    def body(self) -> bytes:
        """The body."""
        return self.stored.body

    @property
    def text(self) -> str:
        """The body as UTF-8.

        @raise UnicodeDecodeError: it is none.
        """
        return self.stored.body.decode("utf-8")

    @property
    def tag(self) -> str | None:
        """The tag."""
        return self.stored.tags

    @property
    def keys(self) -> list[str]:
        """The keys."""
        return self.stored.keys

    @property
    def properties(self) -> dict[str, str]:
        """All properties, the system's and the user's."""
        return self.stored.properties

    @property
    def message_id(self) -> str:
        """The id that C{send} returned."""
        return self.stored.message_id

    @property
    def order_key(self) -> str | None:
        """The key by which it was put in order."""
        return self.stored.properties.get(properties.SHARDING_KEY)

    @property
    def offset(self) -> int:
        """Its place there."""
        return self.stored.queue_offset

    @property
    def attempt(self) -> int:
        """The how-manieth time it is given to the group, from 1."""
        return self.stored.reconsume_times + 1

    @property
    def sent_at(self) -> float:
        """When it was made, in seconds since 1970, by the producer's clock."""
        return self.stored.born_ms / 1000

    @property
    def stored_at(self) -> float:
        """When it was stored, in seconds since 1970, by the broker's clock."""
        return self.stored.store_ms / 1000


def view(
    stored: StoredMessage, queue: MessageQueue, namespace: Namespace
) -> MessageView:
    """A message as users see it.

    @param queue: where it was read, as brokers know it.
    """
    topic = namespace.outside(topic_of(stored))
    return MessageView(stored, namespace.queue_outside(queue), topic)


@final
class ReceivedMessage(MessageView):
    """A message, and what becomes of it."""

    __slots__ = ("_settlement", "_taken")

    def __init__(
        self, settlement: Settlement, taken: Taken, namespace: Namespace
    ) -> None:
        stored = taken.message
        topic, queue = topic_of(stored), taken.queue.queue
        if namespace.name:
            topic, queue = namespace.outside(topic), namespace.queue_outside(queue)
        super().__init__(stored, queue, topic)
        self._settlement = settlement
        self._taken = taken

    async def ack(self) -> None:
        """It is done: the group does not need it again.

        If the queue has gone to another member meanwhile, that one gets the message
        again.

        @raise ClientClosed: the consumer is closed; the message comes again.
        """
        await self._settlement.acknowledge(self._taken)

    async def retry(self, delay_level: int = 0) -> None:
        """Give it to the group again, later; after many attempts it is a dead letter.

        If the consumer is ordered, the queue rests and goes on with this message.

        @param delay_level: the broker's; 0: longer with each attempt.
        @raise ClientClosed: the consumer is closed; the message comes again.
        """
        await self._settlement.send_back(self._taken, delay_level)

    async def dead_letter(self) -> None:
        """Put it aside, into the topic C{%DLQ%group}.

        @raise ClientClosed: the consumer is closed; the message comes again.
        """
        await self._settlement.send_back(self._taken, -1)

    async def reply(
        self,
        body: bytes | str,
        *,
        tag: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Answer whoever sent it with C{request}; it still has to be acknowledged.

        @param body: a string is sent as UTF-8.
        @raise MessageIllegal: nobody waits for a reply to it, or the reply cannot be
            sent.
        @raise BrokerError: whoever sent it is gone, or does not wait any more.
        """
        await self._settlement.reply(self._taken, body, tag, properties)
