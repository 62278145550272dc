# -*- test-case-name: tests.broker.transaction.test_op_queue -*-
"""The op queue, written and read: the half messages that are over.

A mark is written in the same turn as the final message, right behind it in the log. So
after C{kill -9} a mark is never there without the final message; a final message
without its mark is the one case in which a message is delivered twice: there are some
microseconds for it. After a power failure the disk may have the mark and not the
message before it. So each mark names that (L{transaction_messages.Over}), and when the
broker starts, a mark whose final message, or copy, is lost does not count. RocketMQ
keeps marks in memory for up to three seconds (transactionOpBatchInterval,
transactionOpMsgMaxSize); these settings have no effect here.

A mark that cannot be written waits in memory, where it counts already.
"""

from __future__ import annotations

from typing import Final, final

from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.messages.transaction_messages import (
    Over,
    is_lost,
    mark_at,
    mark_of,
)
from rocketbroker.broker.transaction.open_transactions import OpenTransactions
from rocketbroker.errors import ServiceNotAvailable
from rocketbroker.records.names import HALF_TOPIC, OP_HALF_TOPIC
from rocketbroker.store.interfaces import PUT_OK, Draft

#: How many marks may wait for a disk that is full; no transaction is ended beyond it.
MAX_WAITING: Final = 20_000

#: How many records of the op queue are read at once.
MAX_READ: Final = 32

#: Offset in the op queue, and the offsets in the half queue that are marked there.
Block = tuple[int, list[int]]


@final
class OpQueue:
    """The op queue, which names the half messages that are over.

    @ivar state: which transactions are open; what is written is marked there.
    @ivar read_offset: from where it has not been read.
    @ivar waiting: marks that are to be written.
    @ivar failures: how many could not be written at once.
    @ivar doubted: how many did not count, as what they name was lost.
    """

    def __init__(self, context: BrokerContext, state: OpenTransactions) -> None:
        self.read_offset = 0
        self.waiting: list[Over] = []
        self.failures = 0
        self.doubted = 0
        self.state = state
        self._store = context.store
        self._host = context.host
        self._wall_ms = context.wall_ms

    def is_full(self) -> bool:
        """Whether too many marks wait."""
        return len(self.waiting) >= MAX_WAITING

    def write(self, over: list[Over]) -> list[Draft]:
        """Mark halves as over, and those that wait.

        @return: the marks that are stored.
        """
        for offset, _ in over:
            self.state.mark(offset)
        over = self.waiting + over
        if not over:
            return []
        self.waiting, now = over, self._wall_ms()
        try:
            queue = self._store.queue(OP_HALF_TOPIC, 0)
        except ServiceNotAvailable:
            self.failures += len(over)
            return []
        drafts = [mark_of(each, queue, self._host, now) for each in over]
        self._store.append(drafts)
        stored = [draft for draft in drafts if draft.status == PUT_OK]
        self.waiting = []
        if len(stored) < len(drafts):
            self.waiting = [
                each
                for each, draft in zip(over, drafts, strict=True)
                if draft.status != PUT_OK
            ]
            self.failures += len(self.waiting)
        return stored

    def read(self, doubting: bool = False) -> Block | None:
        """I{Blocking.} What is marked by the next records that have not been read.

        @param doubting: whether what they name may have been lost.
        @return: None if there are none. L{take} is to be called with it.
        @raise OSError: the disk cannot be read.
        """
        queue = self._store.queue(OP_HALF_TOPIC, 0)
        offset = max(self.read_offset, queue.min_offset)
        if offset >= queue.max_offset:
            return None
        entries = self._store.entries(queue, offset, MAX_READ)
        if not entries:
            return None
        marked: list[int] = []
        for position, _, _ in entries:
            offsets, instead = mark_at(self._store, position)
            if doubting and is_lost(self._store, instead):
                self.doubted += len(offsets)
            else:
                marked.extend(offsets)
        return offset + len(entries), marked

    def take(self, block: Block) -> None:
        """Remember what was read."""
        end, marked = block
        half_end = self._store.queue(HALF_TOPIC, 0).next_offset
        self.state.read_marks(self.read_offset, marked, half_end)
        self.read_offset = end

    def needed_offset(self) -> int:
        """From where the op queue has to be read after a restart."""
        return self.state.op_offset(self.read_offset)
