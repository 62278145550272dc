# -*- test-case-name: tests.broker.test_transaction_marks -*-
"""Writes and reads the op queue: which halves are over.

A mark is written in the same turn as what it marks the end of, right behind it in the
log. So whatever a crash leaves, a mark is never there without the final message, and a
final message without its mark is the one case in which a message is delivered twice:
C{kill -9} has some microseconds for it. RocketMQ keeps marks in memory for up to three
seconds (transactionOpBatchInterval, transactionOpMsgMaxSize), which are not used here.

A mark that cannot be written waits in memory, where it counts already.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from rocketbroker.broker.transaction_messages import mark_of, marked_offsets
from rocketbroker.broker.transaction_state import OpenHalves
from rocketbroker.errors import ServiceNotAvailable
from rocketbroker.records.names import HALF_TOPIC, OP_HALF_TOPIC
from rocketbroker.store.interfaces import PUT_OK, Draft, IStore

#: How many marks may wait for a disk that is full; no transaction is ended beyond it.
MOST_WAITING: Final = 20_000

#: How many records of the op queue are read at once.
MOST_READ: Final = 32

#: Offset in the op queue, and the offsets in the half queue that are marked there.
Block = tuple[int, list[int]]


@final
class TransactionMarks:
    """The op queue.

    @ivar read_offset: from where it has not been read.
    @ivar waiting: marks that are to be written.
    @ivar failures: how many could not be written at once.
    """

    def __init__(
        self,
        store: IStore,
        state: OpenHalves,
        store_host: bytes,
        wall_ms: Callable[[], int],
    ) -> None:
        self.read_offset = 0
        self.waiting: list[int] = []
        self.failures = 0
        self._store = store
        self._state = state
        self._host = store_host
        self._wall_ms = wall_ms

    def is_full(self) -> bool:
        """Whether too many marks wait."""
        return len(self.waiting) >= MOST_WAITING

    def write(self, offsets: list[int]) -> list[Draft]:
        """Mark halves as over, and those that wait.

        @return: the marks that are stored.
        """
        for offset in offsets:
            self._state.mark(offset)
        offsets = self.waiting + offsets
        if not offsets:
            return []
        self.waiting, now = offsets, self._wall_ms()
        try:
            queue = self._store.queue(OP_HALF_TOPIC, 0)
        except ServiceNotAvailable:
            self.failures += len(offsets)
            return []
        drafts = [mark_of(offset, queue, self._host, now) for offset in offsets]
        self._store.append(drafts)
        stored = [draft for draft in drafts if draft.status == PUT_OK]
        self.waiting = []
        if len(stored) < len(drafts):
            self.waiting = [
                offset
                for offset, draft in zip(offsets, drafts, strict=True)
                if draft.status != PUT_OK
            ]
            self.failures += len(self.waiting)
        return stored

    def read(self) -> Block | None:
        """I{Blocking.} What is marked by the next records that have not been read.

        @return: None if there are none. L{take} is to be called with it.
        @raise OSError: the disk cannot be read.
        """
        queue = self._store.queue(OP_HALF_TOPIC, 0)
        offset = max(self.read_offset, queue.min_offset)
        if offset >= queue.max_offset:
            return None
        entries = self._store.entries(queue, offset, MOST_READ)
        if not entries:
            return None
        marked: list[int] = []
        for position, _, _ in entries:
            marked.extend(marked_offsets(self._store.record_at(position)))
        return offset + len(entries), marked

    def take(self, block: Block) -> None:
        """Remember what was read."""
        end, marked = block
        half_end = self._store.queue(HALF_TOPIC, 0).next_offset
        self._state.read_marks(self.read_offset, marked, half_end)
        self.read_offset = end

    def needed_offset(self) -> int:
        """From where the op queue has to be read after a restart."""
        return self._state.op_offset(self.read_offset)
