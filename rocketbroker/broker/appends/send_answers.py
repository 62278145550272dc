# -*- test-case-name: tests.broker.appends.test_append_batcher -*-
"""The answers to sends that came the hot way: their counts and templates, by queue.

Drafts of one connection are answered together, with one template for each queue. So an
answer costs half a microsecond and allocates no object but its bytes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Final, Protocol, TypeAlias, final

from rocketbroker.codec.append import answer
from rocketbroker.codec.build import COMPILED
from rocketbroker.errors import BrokerError
from rocketbroker.remoting.interfaces import IConnection
from rocketbroker.store.interfaces import PUT_OK, Draft, IQueue
from rocketbroker.wire.command import RESPONSE, Command
from rocketbroker.wire.frames import encode
from rocketbroker.wire.hot import (
    HEADS,
    MAX_READY_HEADS,
    SEND_ANSWER,
    SEND_ANSWER_END,
    frame_of,
    head_of,
)

#: Upper bounds of the message sizes that metrics count, the last class is open.
SIZE_BOUNDS: Final = (1024, 4096, 524288, 1048576, 2097152, 4194304)


class SendCounts(Protocol):
    """Counts of sends, as L{QueueSends} has them."""

    messages: int
    bytes: int
    small: int
    beyond_average: int
    sizes: list[int]


@final
class QueueSends:
    """What is sent to one queue, as one type of message.

    @ivar queue: the store's handle.
    @ivar topic: the topic's name.
    @ivar message_type: one of L{message_types}.
    @ivar start: the first part of the answers (L{wire.hot.send_answer_start}).
    @ivar is_system: whether the topic is one of the system.
    @ivar messages: how many messages were stored.
    @ivar bytes: how many bytes of the log they are.
    @ivar sizes: how many appends fell into each class of C{SIZE_BOUNDS}; those of the
        first class are in L{small}.
    @ivar small: how many appends were of at most 1024 bytes.
    @ivar beyond_average: of batches, their bytes less those of one average message, so
        that C{bytes} without them is the sum of what C{sizes} counts.
    """

    __slots__ = (
        "beyond_average",
        "bytes",
        "is_system",
        "message_type",
        "messages",
        "queue",
        "sizes",
        "small",
        "start",
        "topic",
    )

    def __init__(
        self,
        queue: IQueue,
        topic: str,
        message_type: str,
        start: bytes,
        is_system: bool,
    ) -> None:
        self.queue = queue
        self.topic = topic
        self.message_type = message_type
        self.start = start
        self.is_system = is_system
        self.messages = 0
        self.bytes = 0
        self.small = 0
        self.beyond_average = 0
        self.sizes = [0] * (len(SIZE_BOUNDS) + 1)

    def go_on_from(self, other: QueueSends) -> None:
        """Take over the counts of a queue that this one replaces."""
        self.messages = other.messages
        self.bytes = other.bytes
        self.small = other.small
        self.beyond_average = other.beyond_average
        self.sizes = other.sizes

    def add(self, other: SendCounts) -> None:
        """Count what another process has stored."""
        self.messages += other.messages
        self.bytes += other.bytes
        self.small += other.small
        self.beyond_average += other.beyond_average
        self.sizes = [a + b for a, b in zip(self.sizes, other.sizes, strict=True)]

    def appends(self) -> int:
        """How many appends were counted: sends, of batches too."""
        return self.small + sum(self.sizes)

    def count_small(self, messages: int, size: int) -> None:
        """Count appends of one message each, of the first class, in C{size} bytes."""
        self.messages += messages
        self.small += messages
        self.bytes += size

    def count(self, messages: int, size: int) -> None:
        """Count one append of C{messages} messages in C{size} bytes."""
        self.messages += messages
        self.bytes += size
        each = size // messages
        self.beyond_average += size - each
        if each <= SIZE_BOUNDS[0]:
            self.small += 1
        else:
            self.sizes[bisect_left(SIZE_BOUNDS, each)] += 1


#: Connection (None: a oneway send), opaque, its id as JSON, queue.
Quick: TypeAlias = tuple[IConnection | None, int, bytes, QueueSends]

#: Refuses a draft that was not stored: draft, connection, opaque.
RefuseDraft: TypeAlias = Callable[[Draft, IConnection | None, int], None]


@final
class SendAnswers:
    """The answers to sends that came the hot way."""

    def __init__(self, refuse_draft: RefuseDraft) -> None:
        """
        @param refuse_draft: called for each that was not stored.
        """
        self._refuse_draft = refuse_draft

    def settle(self, drafts: list[Draft], code: int) -> None:
        """Answer drafts that were appended or refused.

        @param code: what became of the waiting: SUCCESS, FLUSH_DISK_TIMEOUT or
            FLUSH_SLAVE_TIMEOUT.
        """
        first = 0
        while COMPILED and not code and first < len(drafts):
            # What is left is answered one by one, until others follow.
            first = answer(drafts, first, SIZE_BOUNDS[0], SEND_ANSWER_END)
            if first < len(drafts):
                self._settle_each(drafts[first : first + 1], code)
                first += 1
        if first < len(drafts):
            self._settle_each(drafts, code)

    def _settle_each(self, drafts: list[Draft], code: int) -> None:
        """The same, without the compiled codec."""
        heads = HEADS
        to: IConnection | None = None
        frames: list[bytes] = []
        try:
            for draft in drafts:
                context = draft.context
                if type(context) is not tuple:
                    assert callable(context)
                    context(draft, code)
                    continue
                if draft.status or code:
                    self._settle_slowly(context, draft, code)
                    continue
                connection, opaque, unique, sends = context
                size = draft.end - draft.position
                sends.messages += 1
                sends.bytes += size
                if size <= 1024:
                    sends.small += 1
                else:
                    sends.sizes[bisect_left(SIZE_BOUNDS, size)] += 1
                if connection is None:
                    continue
                header = SEND_ANSWER % (
                    sends.start,
                    draft.position,
                    draft.queue_offset,
                    unique,
                    opaque,
                )
                length = len(header)
                if length < MAX_READY_HEADS:
                    frame = heads[length] + header
                else:
                    frame = head_of(length) + header
                if connection is to:
                    frames.append(frame)
                    continue
                # As a rule a connection has brought many, one after the other.
                if to is not None:
                    _send(to, frames)
                to = connection
                frames = [frame]
        finally:
            # Also if one could not be answered: the others were.
            if to is not None:
                _send(to, frames)

    def _settle_slowly(self, quick: Quick, draft: Draft, code: int) -> None:
        connection, opaque, unique, sends = quick
        if draft.status == PUT_OK:
            sends.count(1, draft.end - draft.position)
            if connection is None:
                return
            header = SEND_ANSWER % (
                stored_start(sends.start, code),
                draft.position,
                draft.queue_offset,
                unique,
                opaque,
            )
            connection.send(frame_of(header))
            return
        self._refuse_draft(draft, connection, opaque)


def _send(connection: IConnection, frames: list[bytes]) -> None:
    """Send answers."""
    if len(frames) == 1:
        connection.send_now(frames[0])
    else:
        connection.send_now(b"".join(frames), len(frames))


def refuse(connection: IConnection, opaque: int, error: BrokerError) -> None:
    """Answer a request that came as JSON with an error."""
    command = Command(
        error.code, opaque=opaque, flag=RESPONSE, remark=error.remark or None
    )
    connection.send(encode(command))


def stored_start(start: bytes, code: int) -> bytes:
    """The first part of the answer to a message that is stored, with C{code}."""
    return start.replace(b'"code":0', b'"code":%d' % code, 1) if code else start
