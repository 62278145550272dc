# -*- test-case-name: tests.blocking.test_puller -*-
"""Reading queues: one pull, or a range of offsets with several pulls in flight.

Queue offsets are dense: what a pull brings is known before it comes, so the next ones
can be asked for already. A broker gives less than it is asked for where that is too
much at once (RocketMQ: 32 messages, 256 KiB); the rest of such a piece is cut into
pieces of the size that it gave, and asked for before all others, so that everything
comes in order and nothing twice.

A pull that carries its subscription needs no registered group. See
C{docs/facts/spark.md} 5 and C{docs/facts/broker.md} 12.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from itertools import islice
from typing import Final, NamedTuple, final

from rocketbroker.blocking.answers import PASSING, may_pass, number
from rocketbroker.blocking.client import Client
from rocketbroker.blocking.connection import ServerConnection
from rocketbroker.blocking.routes import MessageQueue
from rocketbroker.errors import (
    BrokerError,
    PullOffsetMoved,
    RemoteProtocolError,
    RocketbrokerError,
    error_of_response,
)
from rocketbroker.records import names, record, sysflags
from rocketbroker.records.batches import messages as messages
from rocketbroker.records.malformed import Malformed
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command

# What a pull found (Pulled.status).
FOUND: Final = "FOUND"
NOTHING_NEW: Final = "NOTHING_NEW"
NOTHING_MATCHED: Final = "NOTHING_MATCHED"
OFFSET_MOVED: Final = "OFFSET_MOVED"

_STATUSES: Final[dict[int, str]] = {
    ResponseCode.SUCCESS: FOUND,
    ResponseCode.PULL_NOT_FOUND: NOTHING_NEW,
    ResponseCode.PULL_RETRY_IMMEDIATELY: NOTHING_MATCHED,
    ResponseCode.PULL_OFFSET_MOVED: OFFSET_MOVED,
}

#: How many messages are asked for at once; a broker gives as many as it wants to.
MAX_MESSAGES: Final = 1024

#: How many bytes are asked for at once.
MAX_BYTES: Final = 4 * 1024 * 1024

#: How many pulls may be under way.
IN_FLIGHT: Final = 4

#: So many pieces have to come whole before larger ones are tried.
WHOLE_BEFORE_LARGER: Final = 32


class Pulled(NamedTuple):
    """What one pull found.

    @ivar status: one of the names above.
    @ivar next_offset: where to go on.
    @ivar min_offset: the first offset that can be read.
    @ivar max_offset: one more than the last.
    @ivar data: the records, one after the other.
    """

    status: str
    next_offset: int
    min_offset: int
    max_offset: int
    data: bytes


class Chunk(NamedTuple):
    """Consecutive messages of a queue.

    @ivar start: the offset where they begin.
    @ivar until: where the next chunk begins.
    @ivar data: the records, one after the other: of an unfiltered read,
        C{until - start} of them; of a topic with batch queues, the batches with these
        messages, whose first and last may have others, too.
    """

    start: int
    until: int
    data: bytes


class NothingThere(PullOffsetMoved):
    """The queue is said to end before an offset that was asked for.

    That passes where a broker has just started, or a slave is behind.
    """

    retriable = True


class PendingPull(NamedTuple):
    """A pull under way; C{Puller.collect} waits for its answer."""

    connection: ServerConnection
    ticket: int

    def forget(self) -> None:
        """Never mind the answer."""
        self.connection.forget(self.ticket)


@final
class _Piece:
    """Offsets to ask for, or asked for."""

    __slots__ = ("pending", "start", "until")

    def __init__(self, start: int, until: int) -> None:
        self.start = start
        self.until = until
        self.pending: PendingPull | None = None

    def forget(self) -> None:
        """Ask again, or never mind."""
        if self.pending is not None:
            self.pending.forget()
            self.pending = None


@final
class Puller:
    """Reads queues. It belongs to one thread.

    It can be pickled; a copy has connections of its own.

    @ivar client: whose connections it uses.
    @ivar pulls: how many pulls have been answered.
    @ivar retries: how many have been asked for again after a failure.
    """

    def __init__(
        self,
        client: Client,
        group: str = names.TOOLS_CONSUMER,
        expression: str = "*",
        max_messages: int = MAX_MESSAGES,
        max_bytes: int = MAX_BYTES,
        in_flight: int = IN_FLIGHT,
        expression_type: str = "TAG",
    ) -> None:
        """
        @param group: in whose name; nothing is registered or committed.
        @param expression: which messages, as the broker can tell: of tags, those whose
            hash is that of a wanted one.
        @param max_messages: how many to ask for at once.
        @param max_bytes: how many bytes to ask for at once.
        @param in_flight: how many pulls may be under way; with an expression, one.
        """
        self.client = client
        self._group = group
        self._expression = expression
        self._expression_type = expression_type
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._filtered = expression not in ("", "*")
        self._in_flight = 1 if self._filtered else in_flight
        self._stride = max_messages
        self._whole = 0
        self.pulls = 0
        self.retries = 0

    def __reduce__(self) -> tuple[object, ...]:
        return Puller, (
            self.client,
            self._group,
            self._expression,
            self._max_messages,
            self._max_bytes,
            self._in_flight,
            self._expression_type,
        )

    def pull(
        self,
        queue: MessageQueue,
        offset: int,
        most: int | None = None,
        suspend: float = 0.0,
    ) -> Pulled:
        """Pull once.

        @param most: how many messages at most.
        @param suspend: how many seconds the broker may wait for a message.
        @raise BrokerError: the broker refused the request.
        @raise ConnectionLost: it could not be reached, or got lost.
        @raise RequestTimeout: it did not answer.
        """
        return self.collect(self.submit(queue, offset, most, suspend))

    def submit(
        self,
        queue: MessageQueue,
        offset: int,
        most: int | None = None,
        suspend: float = 0.0,
    ) -> PendingPull:
        """Pull without waiting for the answer; as L{pull}."""
        client = self.client
        address = client.routes.address(queue, master_only=False)
        connection = client.connections.to(address)
        sys_flag = sysflags.PULL_SUBSCRIPTION
        if suspend > 0:
            sys_flag |= sysflags.PULL_SUSPEND
        # As in Producer: the fields of PullMessageRequestHeader.
        ext = {
            "consumerGroup": self._group,
            "topic": queue.topic,
            "queueId": str(queue.queue_id),
            "queueOffset": str(offset),
            "maxMsgNums": str(most or self._max_messages),
            "sysFlag": str(sys_flag),
            "commitOffset": "0",
            "suspendTimeoutMillis": str(int(suspend * 1000)),
            "subscription": self._expression,
            "subVersion": "0",
            "expressionType": self._expression_type,
            "maxMsgBytes": str(self._max_bytes),
            "lo": "false",
        }
        seconds = client.settings.seconds + suspend
        command = Command(RequestCode.PULL_MESSAGE, ext)
        return PendingPull(connection, connection.submit(command, seconds))

    def collect(self, pending: PendingPull) -> Pulled:
        """Wait for the answer to a pull; as L{pull}."""
        answer = pending.connection.collect(pending.ticket)
        status = _STATUSES.get(answer.code)
        if status is None:
            raise error_of_response(answer.code, answer.remark)
        self.pulls += 1
        return Pulled(
            status,
            number(answer, "nextBeginOffset"),
            number(answer, "minOffset"),
            number(answer, "maxOffset"),
            answer.body,
        )

    def read(
        self, queue: MessageQueue, start: int, until: int
    ) -> Generator[Chunk, None, None]:
        """All messages from C{start} up to, and without, C{until}, in order.

        Failures that may pass are tried again, as often as the settings say. A
        caller that stops early closes it, so that pulls under way are forgotten.

        @raise PullOffsetMoved: some of them are not there: too old, or not yet stored.
        @raise BrokerError: the broker refused the request.
        @raise ConnectionLost: it could not be reached, or got lost, again and again.
        @raise RequestTimeout: it did not answer, again and again.
        @raise RemoteProtocolError: it sent something else.
        """
        if self._filtered:
            yield from self._read_filtered(queue, start, until)
            return
        pieces: deque[_Piece] = deque()
        asked = start
        failures = 0
        try:
            while start < until:
                while asked < until and len(pieces) < self._in_flight:
                    piece = _Piece(asked, min(asked + self._stride, until))
                    pieces.append(piece)
                    asked = piece.until
                try:
                    pulled = self._first(queue, pieces)
                except (*PASSING, BrokerError) as problem:
                    failures += 1
                    self._recover(queue, pieces, problem, failures)
                    continue
                failures = 0
                piece = pieces.popleft()
                if pulled.next_offset <= piece.start:
                    raise RemoteProtocolError(
                        f"asked for offsets {piece.start} to {piece.until}, got up to "
                        f"{pulled.next_offset}"
                    )
                if pulled.next_offset > piece.until:
                    # A broker passes over damaged messages, and gives as many as were
                    # asked for of those behind; or the last batch goes on there.
                    pulled = pulled._replace(
                        next_offset=piece.until, data=_before(pulled.data, piece.until)
                    )
                self._adapt(piece, pulled, pieces)
                start = pulled.next_offset
                yield Chunk(piece.start, pulled.next_offset, pulled.data)
        finally:
            for piece in pieces:
                piece.forget()

    def _first(self, queue: MessageQueue, pieces: deque[_Piece]) -> Pulled:
        """Ask for what may be under way, and wait for the first of it."""
        for piece in islice(pieces, self._in_flight):
            if piece.pending is None:
                most = piece.until - piece.start
                piece.pending = self.submit(queue, piece.start, most)
        first = pieces[0]
        pending = first.pending
        assert pending is not None
        first.pending = None
        pulled = self.collect(pending)
        if pulled.status != FOUND:
            raise _not_there(queue, first.start, pulled)
        return pulled

    def _recover(
        self,
        queue: MessageQueue,
        pieces: deque[_Piece],
        problem: RocketbrokerError,
        failures: int,
    ) -> None:
        """Get ready to ask for all again; or raise, if that does not help."""
        if failures >= self.client.settings.attempts or not may_pass(problem):
            raise problem
        self.retries += 1
        for piece in pieces:
            piece.forget()
        self.client.routes.forget(queue.topic)
        self.client.settings.machine.sleep(self.client.settings.pause)

    def _adapt(self, piece: _Piece, pulled: Pulled, pieces: deque[_Piece]) -> None:
        """Learn how much comes at once, and cut what is left of a piece accordingly."""
        if pulled.next_offset == piece.until:
            self._whole += 1
            if self._whole >= WHOLE_BEFORE_LARGER:
                self._whole = 0
                self._stride = min(self._stride * 2, self._max_messages)
            return
        self._whole = 0
        self._stride = pulled.next_offset - piece.start
        end = piece.until
        while end > pulled.next_offset:
            start = max(pulled.next_offset, end - self._stride)
            pieces.appendleft(_Piece(start, end))
            end = start

    def _read_filtered(
        self, queue: MessageQueue, start: int, until: int
    ) -> Iterator[Chunk]:
        """One pull after the other: how far each goes is not known before."""
        failures = 0
        while start < until:
            try:
                pulled = self.pull(queue, start)
                if pulled.status == OFFSET_MOVED or pulled.next_offset <= start:
                    raise _not_there(queue, start, pulled)
            except (*PASSING, BrokerError) as problem:
                failures += 1
                self._recover(queue, deque(), problem, failures)
                continue
            failures = 0
            end = min(pulled.next_offset, until)
            data = pulled.data
            if pulled.next_offset > until:
                data = _before(data, until)
            yield Chunk(start, end, data)
            start = end


def _not_there(queue: MessageQueue, offset: int, pulled: Pulled) -> PullOffsetMoved:
    """What to raise when a wanted offset was not found."""
    kind = NothingThere if pulled.status == NOTHING_NEW else PullOffsetMoved
    return kind(
        f"{queue} holds {pulled.min_offset} to {pulled.max_offset}, {offset} is wanted"
    )


def _before(data: bytes, until: int) -> bytes:
    """The records before an offset."""
    end = 0
    try:
        for message in record.decode_all(data):
            if message.queue_offset >= until:
                break
            end += message.size
    except Malformed as problem:
        raise RemoteProtocolError(f"the broker sent no message: {problem}") from None
    return data[:end]
