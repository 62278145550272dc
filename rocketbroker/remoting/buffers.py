# -*- test-case-name: tests.remoting.test_buffers -*-
"""The budget of memory for all that waits in the connections of a hub.

What waits
==========

I{Frames} that are not finished, and I{answers} that peers have not read. One connection
may have 16 MiB of the first and, with large messages, 4 MiB and more of the second; ten
thousand connections would take the machine. Nobody who asks for these has done wrong:
consumers are slow, lines are bad. So they are kept waiting, and nobody is reset for it
while anything moves.

The rules
=========

  1. A frame of more than C{LARGE_FRAME_BYTES} is read to its end only with a
     I{reservation} of its whole length; else its connection is not read, and waits.
     Reservations are given while they fit into seven eighths of the budget; and when
     there is none the first who waits gets one, whatever its length. So there is always
     somebody who goes on. Each address has its line of those who wait, and those who
     have sent a large frame to its end have a line of their own: the lines take turns,
     so that a crowd does not keep others waiting.
  2. Smaller frames count as they come. When the budget is I{full} all the same, only
     connections with a reservation are read; the others wait, and go on before those
     that wait for reservations.
  3. While unread answers take half of the budget, or all but a sixteenth is taken (it
     is I{crowded}), no request is begun whose answer may be large: a pull waits, with
     its connection, for its turn. The other half is left to frames: slow consumers do
     not keep producers from sending.
  4. Only when somebody waits are connections closed, those that keep memory and do not
     move, until there is room: of answers in C{STALLED_SECONDS} less than
     C{LEAST_BYTES}, or less than all; of a frame in C{FRAME_STALLED_SECONDS}, or
     C{FIRST_STALLED_SECONDS}, less than what makes it whole in C{FRAME_SECONDS}. So a
     reservation that is not used is free again before the clients that wait for it give
     up.

Answers are counted when they are large, and else from the moment at which the kernel
did not take them: bytes that go out at the end of the turn cost nothing to count.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from typing import Final, Protocol, cast, final

from rocketbroker.remoting.addresses import PORT_BYTES

#: Bytes received from one connection in one turn, at most.
RECEIVE_BYTES: Final = 65536

#: Frames up to this length come as they like: one reading brings more of others.
LARGE_FRAME_BYTES: Final = RECEIVE_BYTES

#: An answer is counted before the end of the turn when it is so long.
LARGE_ANSWER_BYTES: Final = 16384

#: For so long a connection that keeps answers may move nothing while others wait.
STALLED_SECONDS: Final = 10.0

#: What it has to move in that time: as much as one reading brings.
LEAST_BYTES: Final = 65536

#: For so long the sender of an unfinished frame may move nothing while others wait.
FRAME_STALLED_SECONDS: Final = 2.0

#: And if it has a reservation for the first large frame that it sends: a thousand who
#: send half of one have had theirs sooner then.
FIRST_STALLED_SECONDS: Final = 1.0

#: While others wait, a frame moves at the pace that makes it whole in this time. A
#: client has given up long before: its sends time out after three seconds, unless set.
FRAME_SECONDS: Final = 30.0

#: While somebody waits, all who keep memory are looked at so often.
LOOK_SECONDS: Final = 0.25

#: What is received at once from a connection without a reservation while others wait to
#: be read: a light client needs no more, and the begin of a large frame, which is read
#: to learn its length, takes no more.
TIGHT_RECEIVE_BYTES: Final = 4096

#: Of an IPv6 address the part that one host cannot choose; IPv4 addresses have less.
NETWORK_BYTES: Final = 8

#: So many pulls that waited are begun in one turn, at most; and so many small frames
#: are read on.
BATCH_SIZE: Final = 16


class Holder(Protocol):
    """A connection, as the budget sees it.

    @ivar peer_host: address and port of its other side.
    @ivar closed: whether it is.
    @ivar halted: whether we do not read it, for whatever reason.
    @ivar is_watched: whether it is closed when it does not move.
    @ivar is_proven: whether it has sent a large frame to its end.
    @ivar queued: whether something has come of it and was not looked at yet.
    @ivar partial: received bytes that are no whole frame yet; C{None} for none.
    @ivar wanted: how many bytes C{partial} will have when its first frame is whole.
    @ivar since: when C{partial} began.
    @ivar unsent: bytes of answers that wait to be sent.
    @ivar kept: what its frames count here.
    @ivar is_reserved: whether that is a reservation.
    @ivar counted: what its unsent answers count here.
    """

    peer_host: bytes
    closed: bool
    halted: bool
    is_watched: bool
    is_proven: bool
    queued: bool
    partial: bytearray | None
    wanted: int
    since: float
    unsent: int
    kept: int
    is_reserved: bool
    counted: int

    def pause(self) -> None:
        """It is not read, and its frames are not taken, until L{go_on}."""

    def go_on(self) -> None:
        """It is read again."""


@final
class HeldBytes:
    """What a connection kept when it had moved last, and when that was."""

    __slots__ = ("received", "received_at", "sent_at", "since", "unsent")

    def __init__(self, holder: Holder, now: float) -> None:
        self.unsent = holder.unsent
        self.sent_at = now
        self.has_received(holder, now)

    def has_received(self, holder: Holder, now: float) -> None:
        """Its frame has moved, or need not."""
        self.received = len(holder.partial or b"")
        self.since = holder.since
        self.received_at = now

    def is_unread(self, holder: Holder, now: float) -> bool:
        """Whether its answers have not moved for too long."""
        if not self.unsent or holder.unsent <= max(0, self.unsent - LEAST_BYTES):
            self.unsent = holder.unsent
            self.sent_at = now
        return now - self.sent_at >= STALLED_SECONDS

    def is_unfinished(self, holder: Holder, now: float) -> bool:
        """Whether its frame has not moved for too long."""
        is_first = holder.is_reserved and not holder.is_proven
        patience = FIRST_STALLED_SECONDS if is_first else FRAME_STALLED_SECONDS
        least = int(holder.wanted * patience / FRAME_SECONDS)
        enough = min(self.received + least, holder.wanted)
        received = len(holder.partial or b"")
        if not self.received or holder.since != self.since or received >= enough:
            self.has_received(holder, now)
        return now - self.received_at >= patience


@final
class Lines:
    """Connections that wait, in lines that take turns (rule 1)."""

    def __init__(self) -> None:
        self._lines: dict[tuple[bytes, bool], deque[Holder]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._lines.values()))

    def __bool__(self) -> bool:
        return bool(self._lines)

    def __iter__(self) -> Iterator[Holder]:
        for line in self._lines.values():
            yield from line

    def append(self, holder: Holder) -> None:
        """It waits behind the others of its line."""
        address = holder.peer_host[:-PORT_BYTES]
        line = address[:NETWORK_BYTES], holder.is_proven
        self._lines.setdefault(line, deque()).append(holder)

    @property
    def first(self) -> Holder:
        """Whose turn it is."""
        return next(iter(self._lines.values()))[0]

    def popleft(self) -> Holder:
        """Take that one out: the next turn is another line's."""
        key, line = next(iter(self._lines.items()))
        del self._lines[key]
        holder = line.popleft()
        if line:
            self._lines[key] = line
        return holder

    def forget_closed(self) -> None:
        """Those that were closed wait no more."""
        for key, line in [*self._lines.items()]:
            left = deque(holder for holder in line if not holder.closed)
            if left:
                self._lines[key] = left
            else:
                del self._lines[key]


@final
class Buffers:
    """The budget of one hub.

    @ivar limit: how many bytes it is.
    @ivar frames: bytes that are kept or reserved for frames.
    @ivar answers: bytes of unread answers.
    @ivar is_full: whether only reserved frames may be read.
    @ivar is_crowded: whether no request with a large answer may begin.
    @ivar receive_bytes: how much is received at once without a reservation.
    @ivar pauses: how often a connection had to wait.
    """

    def __init__(self, limit: int, wake: Callable[[], None]) -> None:
        """
        @param wake: called when there is more room and somebody waits:
            L{release} is to be called soon.
        """
        self.limit = limit
        self.frames = 0
        self.answers = 0
        self.is_full = False
        self.is_crowded = False
        self.receive_bytes = RECEIVE_BYTES
        self.pauses = 0
        self._wake = wake
        self._reservations = 0
        self._readers = Lines()
        self._small = Lines()
        self._askers: deque[Holder] = deque()
        self._held: dict[Holder, HeldBytes] = {}
        self._looked_at = -inf

    @property
    def is_short(self) -> bool:
        """Whether somebody waits."""
        return bool(self._readers or self._small or self._askers)

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._readers) + len(self._small) + len(self._askers)

    def _count(self, frames: int, answers: int) -> None:
        """So many bytes more, or less."""
        self.frames += frames
        self.answers += answers
        self.is_full = self.frames + self.answers > self.limit
        self.is_crowded = self.answers > self.limit // 2 or self._is_nearly_full()
        if (frames < 0 or answers < 0) and self.is_short:
            self._wake()

    def _is_nearly_full(self) -> bool:
        return self.frames + self.answers > self.limit - self.limit // 16

    # Frames.

    def received(self, holder: Holder) -> None:
        """Bytes of an unfinished frame, or of frames that wait, were kept."""
        if holder.is_reserved:
            return
        assert holder.partial is not None
        size = len(holder.partial)
        if holder.kept != size:
            self._count(size - holder.kept, 0)
            holder.kept = size
        if holder.wanted > max(size, LARGE_FRAME_BYTES):
            if not self._readers and self._fits(holder):
                self._reserve(holder)
            else:
                self._let_wait(holder, self._readers)

    def taken(self, holder: Holder) -> None:
        """The kept bytes of a connection are kept no longer."""
        kept, holder.kept = holder.kept, 0
        if holder.is_reserved:
            holder.is_reserved = False
            holder.is_proven = holder.is_proven or kept > LARGE_FRAME_BYTES
            self._reservations -= 1
        if kept:
            self._count(-kept, 0)

    def _fits(self, holder: Holder) -> bool:
        """Whether a reservation may be given."""
        more = max(holder.wanted, LARGE_FRAME_BYTES) - holder.kept
        most = self.limit - self.limit // 8
        return not self._reservations or self.frames + self.answers + more <= most

    def _reserve(self, holder: Holder) -> None:
        size = max(holder.wanted, LARGE_FRAME_BYTES)
        more, holder.kept = size - holder.kept, size
        holder.is_reserved = True
        self._reservations += 1
        self._count(more, 0)

    def wait_to_read(self, holder: Holder) -> None:
        """Pause a connection while the budget is full."""
        self._let_wait(holder, self._small)

    def _let_wait(self, holder: Holder, waiting: Lines) -> None:
        self.pauses += 1
        self.receive_bytes = TIGHT_RECEIVE_BYTES
        waiting.append(holder)
        holder.pause()

    # Answers.

    def unread(self, holder: Holder, size: int) -> None:
        """The unsent answers of a connection take C{size} bytes of memory."""
        more, holder.counted = size - holder.counted, size
        if more:
            self._count(0, more)

    def wait_to_ask(self, holder: Holder) -> None:
        """Pause a connection until its request may be begun."""
        self.pauses += 1
        self._askers.append(holder)
        holder.pause()

    @property
    def askers(self) -> Sequence[Holder]:
        """Those whose requests wait."""
        return self._askers

    def ask_no_more(self, holder: Holder) -> None:
        """The request with which it waited is gone."""
        self._askers.remove(holder)
        holder.go_on()

    # Room.

    def release(self) -> bool:
        """Let those go on for whom there is room.

        @return: whether there may be room for more of them in the next turn.
        """
        small, askers = self._small, self._askers
        if not self.is_full:
            self._some_go_on(small)
        for waiting in (self._readers, small):
            while waiting and (waiting.first.closed or self._fits(waiting.first)):
                holder = waiting.popleft()
                if not holder.closed:
                    self._reserve(holder)
                    holder.go_on()
        if not self._readers and not small:
            self.receive_bytes = RECEIVE_BYTES
        if not self.is_crowded:
            self._some_go_on(askers)
        return bool((small and not self.is_full) or (askers and not self.is_crowded))

    def _some_go_on(self, waiting: deque[Holder] | Lines) -> None:
        """Let the first of them go on; what they bring is not known yet."""
        for _ in range(min(BATCH_SIZE, len(waiting))):
            holder = waiting.popleft()
            if not holder.closed:
                holder.go_on()

    def stalled(self, holders: Iterable[Holder], now: float) -> list[Holder]:
        """Those to close: they keep others waiting and do not move.

        It is to be called each C{LOOK_SECONDS} while somebody waits. If it is called
        much later that is nobody's fault but ours, and the delay does not count.

        @param holders: all connections.
        @return: who keeps most comes first.
        """
        elapsed, self._looked_at = now - self._looked_at, now
        skipped = elapsed - LOOK_SECONDS if elapsed > 2 * LOOK_SECONDS else 0.0
        self._readers.forget_closed()
        self._small.forget_closed()
        tight = self._readers or self._small or self._is_nearly_full()
        waiting = {*self._readers, *self._small, *self._askers}
        before, self._held = self._held, {}
        found = []
        for holder in holders:
            if holder.closed or not (holder.unsent or holder.partial):
                continue
            held = before.get(holder)
            if held is None or holder.queued:
                held = HeldBytes(holder, now)  # It waits for us, not we for it.
            elif skipped:
                held.sent_at += skipped
                held.received_at += skipped
            self._held[holder] = held
            if not tight or holder.halted or not holder.is_watched or holder in waiting:
                held.has_received(holder, now)
            if held.is_unread(holder, now) or held.is_unfinished(holder, now):
                found.append(holder)
        return sorted(found, key=lambda each: -each.kept - each.counted)

    def rest(self) -> None:
        """Nobody waits any more: forget what connections kept."""
        self._held.clear()


def rest_of(data: bytes | memoryview, sent: int) -> memoryview:
    """What was not sent, as a view; a copy, once it is less than half of what the view
    keeps in memory."""
    rest = memoryview(data)[sent:]
    if 2 * len(rest) < len(cast(bytes, rest.obj)):
        return memoryview(bytes(rest))
    return rest
