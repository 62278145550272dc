# -*- test-case-name: tests.broker.transaction.test_open_transactions -*-
"""The open transactions, as far as memory has to know.

The truth is on the disk: half messages in their queue, marks in the op queue. In memory
is, from the I{base} on (the first half message that may be open), a byte for each half
message: whether it is marked. Besides there are the copies of half messages that were
checked back, and the outcomes of the last transactions, so that one that is ended twice
is delivered once.
"""

from __future__ import annotations

from collections import deque
from typing import Final, final

from rocketbroker.broker.messages.transaction_messages import root_of
from rocketbroker.records.record import StoredMessage

#: How many outcomes and copies are remembered: 20 MB of memory. Of a transaction that
#: is ended twice with more than so many between, both are delivered, as by RocketMQ.
MAX_REMEMBERED: Final = 100_000

#: Outcomes of a transaction that was not ended, or of which the outcome is not known;
#: beside TRANSACTION_COMMIT and TRANSACTION_ROLLBACK, which are 8 and 12.
OPEN: Final = 0
DISCARDED: Final = 1
OVER: Final = 2


@final
class OpenTransactions:
    """What is known of the halves from the base on.

    @ivar base: every half before it is over.
    """

    def __init__(self, most: int) -> None:
        """
        @param most: how many outcomes and copies are remembered.
        """
        self.base = 0
        self._most = most
        self._marked = bytearray()
        self._copies: dict[int, int] = {}
        self._outcomes: dict[int, int] = {}
        self._same: dict[int, int] = {}
        self._blocks: deque[tuple[int, int]] = deque()

    def begin(self, base: int) -> None:
        """Nothing is known but that every half before C{base} is over."""
        self.base = base
        self._marked.clear()
        self._copies.clear()
        self._outcomes.clear()
        self._same.clear()
        self._blocks.clear()

    # Marks.

    def mark(self, offset: int) -> None:
        """The half at C{offset} is over."""
        at = offset - self.base
        if at < 0:
            return
        marked = self._marked
        if at >= len(marked):
            marked.extend(bytes(at + 1 - len(marked)))
        marked[at] = 1

    def is_over(self, offset: int) -> bool:
        """Whether the half at C{offset} is marked, or before the base."""
        at = offset - self.base
        return at < 0 or (at < len(self._marked) and self._marked[at] == 1)

    def open_from(self, offset: int, end: int, most: int) -> list[int]:
        """The next offsets that are not marked, in order.

        @param end: they are before it.
        """
        found: list[int] = []
        marked = self._marked
        at, stop = max(0, offset - self.base), end - self.base
        while len(found) < most and at < stop:
            if at < len(marked):
                # Marks may go further: of halves that are in the log, but not in their
                # queue yet.
                at = marked.find(0, at, stop)
                if at < 0:
                    at = len(marked)
                    continue
            found.append(self.base + at)
            at += 1
        return found

    def advance(self, base: int) -> None:
        """Every half before C{base} is over."""
        if base > self.base:
            del self._marked[: base - self.base]
            self.base = base

    # How far the op queue is needed.

    def read_marks(self, first: int, offsets: list[int], end: int) -> None:
        """A block of the op queue was read.

        @param first: its first offset in the op queue.
        @param offsets: what it marks.
        @param end: no half queue goes further; a disk may say anything.
        """
        real = [offset for offset in offsets if offset < end]
        for offset in real:
            self.mark(offset)
        self._blocks.append((first, max(real, default=-1)))

    def op_offset(self, read: int) -> int:
        """The first offset of the op queue that is needed after a restart.

        @param read: the one that will be read next.
        """
        blocks = self._blocks
        while blocks and blocks[0][1] < self.base:
            blocks.popleft()
        return blocks[0][0] if blocks else read

    # Transactions.

    def same(self, offset: int, first: int) -> None:
        """The half at C{offset} is a copy of that at C{first}, and does not say so."""
        self._same[offset] = first

    def root(self, half: StoredMessage) -> int:
        """The offset of the half that its transaction began with, as far as known."""
        root = root_of(half)
        return self._same.get(root, root)

    def found(self, half: StoredMessage) -> int | None:
        """An open half was found on the disk.

        @return: the offset of the older one of two halves of its transaction, this or
            another one, which is over.
        """
        root, offset = self.root(half), half.queue_offset
        other = self._copies.get(root)
        if other is not None and other > offset:
            return offset
        if root == offset:
            return None
        if other is None and not self.is_over(root):
            other = root
        self.renewed(root, offset)
        return other if other != offset else None

    def renewed(self, root: int, offset: int) -> None:
        """The transaction now has its half at C{offset}."""
        if root in self._copies or len(self._copies) < self._most:
            self._copies[root] = offset

    def outcome(self, half: StoredMessage) -> int:
        """How the half's transaction was ended.

        @return: TRANSACTION_COMMIT, TRANSACTION_ROLLBACK; L{OPEN}; L{DISCARDED};
            L{OVER} if only the disk shows it: it was ended or discarded.
        """
        return self.outcome_of(self.root(half), half.queue_offset)

    def outcome_of(self, root: int, offset: int) -> int:
        """The same of a transaction by the half that it began with.

        @param offset: of its half, if no copy is known.
        """
        known = self._outcomes.get(root)
        if known is not None:
            return known
        last = self._copies.get(root, offset)
        return OVER if self.is_over(last) else OPEN

    def resumed(self, root: int, offset: int) -> None:
        """A transaction that was discarded, or is open, has its half at C{offset}."""
        self._outcomes.pop(root, None)
        self.renewed(root, offset)

    def ended(self, half: StoredMessage, outcome: int) -> list[int]:
        """A transaction is over.

        @return: the offsets of the halves that have to be marked for it.
        """
        root, offset = self.root(half), half.queue_offset
        if len(self._outcomes) >= self._most:
            del self._outcomes[next(iter(self._outcomes))]
        self._outcomes[root] = outcome
        last = self._copies.pop(root, offset)
        return [last] if last == offset or self.is_over(offset) else [last, offset]

    def discarded(self, half: StoredMessage) -> list[int]:
        """A transaction is discarded; it can still be ended.

        @return: as L{ended}.
        """
        return self.ended(half, DISCARDED)
