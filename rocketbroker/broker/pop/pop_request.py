# -*- test-case-name: tests.broker.pop.test_pop_request -*-
"""One pop on its way: what it asks for, where it is, what it has got, and its answer.

A pop is a request that is answered once. It looks at the queues of its topic, and most
pops do so within one turn. But a pop can be kept in four places: behind a thread that
reads what is cold, in the slices of a topic with very many queues, at the append of its
check points, and with those that wait for a message. In all four something may happen
that is meant for another: a check point is in the log while a thread still reads, say,
and the connection may be closed at any time. So where a pop is is one value, its
L{PopPhase}, and L{TRANSITIONS} is the table of all that L{PopInput} may do to it. An
input that a phase has no entry for is a mistake of ours; so no pop is answered twice::

    ========  ======  =======  =======  =======  ========  ====  ========  =======
    phase     PAUSE   READ     RESUME   AWAIT    STORED    HOLD  ANSWER    DROP
    ========  ======  =======  =======  =======  ========  ====  ========  =======
    LOOKING   PAUSED  READING           STORING  LOOKING   HELD  ANSWERED
    PAUSED                     LOOKING           PAUSED                    DROPPED
    READING                    LOOKING           READING                   DROPPED
    STORING                                      ANSWERED
    HELD                       LOOKING                           ANSWERED  DROPPED
    ANSWERED
    DROPPED                                      DROPPED
    ========  ======  =======  =======  =======  ========  ====  ========  =======

LOOKING is the first phase, and the only one inside of a turn: at the end of it the pop
is in another one. What is known of the queues belongs to one look (L{PopLook}): a pop
that has waited looks anew, and no counter of the look before can stay in it. A pop is
only HELD without messages, thus without check points: STORED cannot come there.

A connection that closes tells the pop nothing. A pop that is PAUSED, READING or HELD
finds it closed when it is to go on. Its check points stay: they are acknowledged by
nobody, and their messages are given out again.

C{docs/facts/broker.md} 20.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Final, TypeAlias, final

from twisted.internet.defer import Deferred

from rocketbroker.broker.pop.pop_checks import PopRoute
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.errors import BrokerError
from rocketbroker.records.names import is_retry_topic
from rocketbroker.remoting.interfaces import IConnection
from rocketbroker.store.interfaces import IQueue, IStore
from rocketbroker.store.reads import FOUND, NO_MESSAGE_IN_QUEUE
from rocketbroker.wire.codes import ResponseCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.pull import (
    PopMessageRequestHeader,
    PopMessageResponseHeader,
)

#: Bytes of one answer: half of the largest frame.
MAX_BYTES: Final = 8 << 20

#: initMode: where a group begins that never consumed: at the first or the last message.
_FROM_LAST: Final = 1

#: Topic and queue.
Source: TypeAlias = tuple[str, int]


class PopPhase(IntEnum):
    """Where a pop is; see the module.

    LOOKING: looks at queues, in this turn. PAUSED: goes on in another turn, by slices.
    READING: a thread reads for it. STORING: all queues were looked at, and not all of
    its check points are in the log. HELD: waits for a message. ANSWERED, DROPPED: the
    ends.
    """

    LOOKING = 0
    PAUSED = 1
    READING = 2
    STORING = 3
    HELD = 4
    ANSWERED = 5
    DROPPED = 6


class PopInput(IntEnum):
    """What happens to a pop.

    PAUSE: a turn has no time for more queues. READ: the next messages are cold. RESUME:
    it looks at queues again. AWAIT: it has messages, and check points that are being
    written. STORED: none is being written any more. HOLD: it waits for a message.
    ANSWER: it gets its answer. DROP: its connection is closed.
    """

    PAUSE = 0
    READ = 1
    RESUME = 2
    AWAIT = 3
    STORED = 4
    HOLD = 5
    ANSWER = 6
    DROP = 7


#: The table; see the module.
TRANSITIONS: Final[Mapping[PopPhase, Mapping[PopInput, PopPhase]]] = {
    PopPhase.LOOKING: {
        PopInput.PAUSE: PopPhase.PAUSED,
        PopInput.READ: PopPhase.READING,
        PopInput.AWAIT: PopPhase.STORING,
        PopInput.STORED: PopPhase.LOOKING,
        PopInput.HOLD: PopPhase.HELD,
        PopInput.ANSWER: PopPhase.ANSWERED,
    },
    PopPhase.PAUSED: {
        PopInput.RESUME: PopPhase.LOOKING,
        PopInput.STORED: PopPhase.PAUSED,
        PopInput.DROP: PopPhase.DROPPED,
    },
    PopPhase.READING: {
        PopInput.RESUME: PopPhase.LOOKING,
        PopInput.STORED: PopPhase.READING,
        PopInput.DROP: PopPhase.DROPPED,
    },
    PopPhase.STORING: {PopInput.STORED: PopPhase.ANSWERED},
    PopPhase.HELD: {
        PopInput.RESUME: PopPhase.LOOKING,
        PopInput.ANSWER: PopPhase.ANSWERED,
        PopInput.DROP: PopPhase.DROPPED,
    },
    PopPhase.ANSWERED: {},
    PopPhase.DROPPED: {PopInput.STORED: PopPhase.DROPPED},
}

# Members of an enumeration are slow to look up.
_LOOKING: Final = PopPhase.LOOKING
_ANSWERED: Final = PopPhase.ANSWERED
_STORED: Final = PopInput.STORED
_ANSWER: Final = PopInput.ANSWER


@final
class PopLook:
    """What one look at the queues of a topic has found.

    @ivar pop_ms: when it was begun.
    @ivar revive_queue: where its check points go.
    @ivar sources: the queues that are still to be looked at.
    @ivar seen: of a look for which one turn has no time: the queues that were looked
        at, each with where it ended then; of others None.
    @ivar pending: how many of its check points are being written.
    @ivar free_ms: when a queue that is blocked is free again; 0 if none is.
    @ivar has_passed: whether messages were passed that the filter does not take.
    @ivar rest: how many messages are left.
    """

    __slots__ = (
        "count",
        "counts",
        "free_ms",
        "has_passed",
        "offsets",
        "pending",
        "pop_ms",
        "records",
        "rest",
        "revive_queue",
        "seen",
        "size",
        "sources",
        "starts",
    )

    def __init__(
        self, pop_ms: int, revive_queue: int, sources: Iterator[Source], is_wide: bool
    ) -> None:
        """
        @param is_wide: whether one turn has no time for all queues.
        """
        self.pop_ms = pop_ms
        self.revive_queue = revive_queue
        self.sources = sources
        self.seen: list[tuple[IQueue, int]] | None = [] if is_wide else None
        self.pending = 0
        self.free_ms = 0
        self.has_passed = False
        self.rest = 0
        self.count = 0
        self.size = 0
        self.records: list[bytes] = []
        self.starts: list[str] = []
        self.offsets: list[str] = []
        self.counts: list[str] = []

    @property
    def is_overtaken(self) -> bool:
        """Whether messages have come into queues since it has looked at them."""
        return any(queue.max_offset != end for queue, end in self.seen or ())


@final
class Pop:
    """One pop on its way.

    @ivar done: takes its answer.
    @ivar phase: where it is.
    @ivar look: its last look at the queues.
    """

    __slots__ = ("connection", "done", "header", "look", "phase", "route")

    def __init__(
        self,
        connection: IConnection,
        header: PopMessageRequestHeader,
        route: PopRoute,
        look: PopLook,
    ) -> None:
        self.connection = connection
        self.header = header
        self.route = route
        self.done: Deferred[Command | None] = Deferred()
        self.phase = _LOOKING
        self.look = look

    def on(self, given: PopInput) -> PopPhase:
        """Go to the phase that C{given} leads to, and return it."""
        phase = self.phase = TRANSITIONS[self.phase][given]
        return phase

    @property
    def is_full(self) -> bool:
        """Whether it has got enough."""
        look = self.look
        return look.count >= self.header.max_msg_nums or look.size >= MAX_BYTES

    def stored(self) -> None:
        """A check point is in the log, or cannot be now: the messages may go."""
        look = self.look
        look.pending -= 1
        if not look.pending and self.on(_STORED) is _ANSWERED:
            self.done.callback(self._answer(ResponseCode.SUCCESS))

    def answer(self, code: int) -> None:
        """Answer it."""
        self.on(_ANSWER)
        self.done.callback(self._answer(code))

    def refuse(self, error: BrokerError) -> None:
        """Say why it has no answer."""
        self.on(_ANSWER)
        self.done.callback(Command(error.code, remark=error.remark))

    def _answer(self, code: int) -> Command:
        """Its answer: what it has got, and all fields, whatever the code."""
        look = self.look
        header = PopMessageResponseHeader(
            pop_time=look.pop_ms,
            invisible_time=self.header.invisible_time,
            revive_qid=look.revive_queue,
            rest_num=look.rest,
            start_offset_info=";".join(look.starts),
            msg_offset_info=";".join(look.offsets),
            order_count_info=";".join(look.counts) if self.header.order else None,
        )
        remark = FOUND if look.count else NO_MESSAGE_IN_QUEUE
        return Command(code, header.to_ext(), b"".join(look.records), remark=remark)


def first_offset(
    store: IStore, options: BrokerOptions, queue: IQueue, init_mode: int
) -> int:
    """Where a group begins that never consumed a queue."""
    if init_mode != _FROM_LAST or is_retry_topic(queue.topic):
        return queue.min_offset
    if (
        options.init_pop_offset_by_check_msg_in_mem
        and queue.min_offset <= 0
        and queue.max_offset > 0
        and not store.is_cold(queue, 0)
    ):
        return 0
    return max(0, queue.max_offset - 1)
