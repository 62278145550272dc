# -*- test-case-name: tests.broker.timer.test_timer_service -*-
"""The messages of one slot of the wheel, step by step.

A slot is a chain of units in the timer log, the newest first. They are walked to the
oldest; what is kept of each meanwhile is 21 bytes. Then the messages that delete others
are read, for a message has to be known as deleted whether it was sent before or after
that. Then the rest is read and delivered in the order in which it was sent.

A slot that is not over may be read ahead. When it is, the units that came meanwhile are
walked, back to what is known, and take that over.

C{docs/facts/transaction-timer-pop.md} B6.
"""

from __future__ import annotations

from array import array
from collections import deque
from typing import Final, final

from rocketbroker.broker.messages.timer_messages import key_of
from rocketbroker.broker.timer.due_sink import Due
from rocketbroker.broker.timer.timer_records import TimerRecords
from rocketbroker.records.properties import find
from rocketbroker.store.interfaces import IStore
from rocketbroker.store.timerwheel.log import TimerLog
from rocketbroker.store.timerwheel.units import DELETE, NONE, ROLL

#: How many units one step walks: a ms or two.
MAX_WALKED: Final = 1000

#: A record that lies so many bytes back in the log is read in a thread: what is nearer
#: was written lately, and is in the memory of the system.
WARM_BYTES: Final = 64 << 20


@final
class DueSlot:
    """A slot of the wheel that is due.

    @ivar begin_ms: its time.
    @ivar last: its newest unit.
    @ivar ready_bytes: so many bytes of records were read ahead.
    @ivar deleted: the keys of messages that are not delivered.
    @ivar lost: how many were gone from the commit log, or are others by now.
    """

    def __init__(
        self,
        store: IStore,
        log: TimerLog,
        last: int,
        begin_ms: int,
        end_ms: int,
        behind: int = NONE,
    ) -> None:
        """
        @param end_ms: the time of the next slot.
        @param behind: the newest unit that is known, if it was read ahead.
        """
        self.begin_ms = begin_ms
        self.last = last
        self.ready_bytes = 0
        self.deleted: set[bytes] = set()
        self.lost = 0
        self._store = store
        self._records = TimerRecords(store)
        self._log = log
        self._next = last
        self._behind = behind
        self._end_ms = end_ms
        self._positions = array("q")
        self._sizes = array("i")
        self._enqueued = array("q")
        self._magics = array("b")
        self._deleting = array("i")
        self._ready: deque[list[Due]] = deque()

    def walk(self) -> bool:
        """I{Blocking if cold.} Walk some units of the chain; whether there are more.

        @raise OSError: the disk refuses.
        """
        units, self._next = self._log.chain(self._next, MAX_WALKED, self._behind)
        number = len(self._positions)
        magics = [unit.magic for unit in units]
        self._positions.extend([unit.position for unit in units])
        self._sizes.extend([unit.size for unit in units])
        self._enqueued.extend([unit.write_ms for unit in units])
        self._magics.extend(magics)
        self._deleting.extend(
            [at for at, magic in enumerate(magics, number) if _deletes(magic)]
        )
        return self._next > self._behind

    @property
    def is_whole(self) -> bool:
        """Whether the walk has come to what is known, or the oldest unit: not if the
        slot was emptied meanwhile."""
        return self._next == self._behind

    def take_over(self, known: DueSlot) -> None:
        """Have what is known of older units; those that delete are read, of both."""
        self._positions.extend(known._positions)
        self._sizes.extend(known._sizes)
        self._enqueued.extend(known._enqueued)
        self._magics.extend(known._magics)
        self._ready, known._ready = known._ready, deque()
        self.deleted |= known.deleted
        self.lost += known.lost

    def is_walk_cold(self) -> bool:
        """Whether L{walk} may wait for the disk."""
        return self._log.end - self._next > WARM_BYTES

    def is_cold(self, most: int) -> bool:
        """Whether one of the messages to be read next may have to come from the
        disk."""
        oldest = min(self._positions[-most:], default=0)
        return self._store.published_position - oldest > WARM_BYTES

    def __len__(self) -> int:
        """How many units are left, those that delete included."""
        return len(self._positions) + sum(map(len, self._ready))

    @property
    def has_unread(self) -> bool:
        """Whether there are units whose messages are not read."""
        return bool(self._positions)

    def read_deleting(self, most: int) -> bool:
        """I{Blocking if cold.} Read some messages that delete others; whether there are
        more."""
        for _ in range(min(most, len(self._deleting))):
            at = self._deleting.pop()
            message = self._records.at(self._positions[at], self._sizes[at])
            if message is not None:
                key = find(message.property_bytes, b"TIMER_DEL_UNIQKEY")
                if key is not None:
                    self.deleted.add(key)
        return bool(self._deleting)

    def prepare(self, most: int, max_bytes: int) -> None:
        """I{Blocking if cold.} Read messages ahead; see L{read}."""
        due = self._read(most, max_bytes)
        self._ready.append(due)
        self.ready_bytes += sum([each.message.size for each in due])

    @property
    def is_ready(self) -> bool:
        """Whether the next messages were read ahead."""
        return bool(self._ready)

    def read(self, most: int, max_bytes: int) -> list[Due]:
        """I{Blocking if cold, and not ready.} The next messages to be delivered.

        @param most: how many units are looked at, if they were not read ahead.
        @param max_bytes: so many bytes of records, or one message.
        """
        due = self._ready.popleft() if self._ready else self._read(most, max_bytes)
        if not self.deleted:
            return due
        return [
            each
            for each in due
            if key_of(each.message.property_bytes) not in self.deleted
        ]

    def _read(self, most: int, max_bytes: int) -> list[Due]:
        """The next messages, those that are deleted, too.

        @param most: how many units are looked at.
        @param max_bytes: so many bytes of records, or one message.
        """
        found: list[Due] = []
        size = 0
        positions, sizes = self._positions, self._sizes
        for _ in range(min(most, len(positions))):
            if found and size + sizes[-1] > max_bytes:
                break
            position, length = positions.pop(), sizes.pop()
            enqueue_ms, magic = self._enqueued.pop(), self._magics.pop()
            rolls = bool(magic & ROLL)
            if magic & DELETE and not rolls:
                continue
            message = self._records.at(position, length)
            if message is None:
                self.lost += 1
                continue
            out_ms, place = self._records.destiny(message)
            if not self._is_its(out_ms, rolls):
                self.lost += 1
                continue
            size += length
            found.append(Due(message, enqueue_ms, rolls, place))
        return found

    def _is_its(self, out_ms: int | None, rolls: bool) -> bool:
        """Whether a message is due with this slot, or later if it rolls. After a power
        failure another one may stand in the place of what a unit of RocketMQ names."""
        if out_ms is None or out_ms < self.begin_ms:
            return False
        return rolls or out_ms < self._end_ms


def _deletes(magic: int) -> bool:
    """Whether a unit has no message to be delivered, but a key."""
    return magic & (DELETE | ROLL) == DELETE
