# -*- test-case-name: tests.storetools.test_pending_timers -*-
"""The timers of a store's directory: what waits, and whether it can be delivered.

The files are read as they are; a broker in use may be a second ahead of them.

The state of a message of the timer topic is one of these::

    ========  ===========================================================
    new       it is not in the wheel yet
    pending   it waits in the slot of its time
    rolls     it is due later than the wheel reaches: it is entered anew
    rolled    it was: a copy, further behind in the topic, waits instead
    recalls   it takes another one back
    recalled  it is taken back: it is not delivered
    fired     it was delivered
    ========  ===========================================================

C{docs/facts/transaction-timer-pop.md} B3.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, final

from rocketbroker.errors import StoreError
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.names import TIMER_TOPIC
from rocketbroker.records.properties import (
    REAL_TOPIC,
    TIMER_DEL_UNIQUE_KEY,
    TIMER_OUT_MS,
    UNIQUE_KEY,
)
from rocketbroker.records.record import StoredMessage, decode
from rocketbroker.store.file_names import position_of_name, segment_name
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.store.timerwheel.checkpoint import NAME as CHECKPOINT
from rocketbroker.store.timerwheel.checkpoint import Checkpoint
from rocketbroker.store.timerwheel.checkpoint import decode as decode_checkpoint
from rocketbroker.store.timerwheel.log import FOLDER, chain, scan
from rocketbroker.store.timerwheel.timers import NAME as WHEEL
from rocketbroker.store.timerwheel.timers import snapshots
from rocketbroker.store.timerwheel.units import (
    BLANK_SIZE,
    SIZE,
    Unit,
)
from rocketbroker.store.timerwheel.units import (
    decode as decode_unit,
)
from rocketbroker.store.timerwheel.wheel import FILE_SIZE, PAGE_SIZE, Slot, Wheel
from rocketbroker.storetools import inspect
from rocketbroker.storetools.verify.report import Fault, Remark

#: What the precision may be; which it is, a unit and its slot say together.
PRECISIONS: Final = (1000, 500, 200, 100)

#: So many units of a chain are read at once.
_AT_ONCE: Final = 10_000

#: So many faults are named of each kind.
_MAX_FAULTS: Final = 100


@final
class PendingTimers:
    """The timers of a directory.

    @ivar checkpoint: how far they are; None if there are none.
    """

    def __init__(self, reader: StoreReader) -> None:
        self._reader = reader
        self._files = reader.files
        self._wheel_path = os.path.join(reader.root, WHEEL)
        self._folder = os.path.join(reader.root, FOLDER)
        path = os.path.join(reader.root, CHECKPOINT)
        self.checkpoint: Checkpoint | None = None
        if self._files.exists(path) and not self._files.is_dir(path):
            self.checkpoint = decode_checkpoint(self._files.read(path))
        segments = {
            position_of_name(name): length
            for name, length in self._files.lengths(self._folder)
        }
        self._starts = sorted(start for start in segments if start >= 0)
        self._segment_size = max(map(segments.__getitem__, self._starts), default=0)
        self._rolling: dict[int, int] | None = None
        self._recalled: set[tuple[int, str]] = set()

    def _read(self, position: int, size: int) -> bytes:
        """Bytes of one segment of the timer log; none if it is not there."""
        start = position - position % self._segment_size
        path = os.path.join(self._folder, segment_name(start))
        if not self._files.exists(path):
            return b""
        file = self._files.open_readonly(path)
        try:
            return file.pread(size, position - start)
        finally:
            file.close()

    def _chain(self, last: int, most: int) -> tuple[list[Unit], int]:
        if not self._segment_size:
            return [], -1
        return chain(self._read, self._segment_size, last, most)

    def slots(self) -> list[tuple[int, Slot]]:
        """The slots that are still to be delivered, with their times, in order."""
        if self.checkpoint is None or not self._files.exists(self._wheel_path):
            return []
        if self._files.size(self._wheel_path) != FILE_SIZE:
            return []
        wheel = Wheel(1)
        file = self._files.open_readonly(self._wheel_path)
        try:
            size = PAGE_SIZE * 64
            parts = (file.pread(size, at) for at in range(0, FILE_SIZE, size))
            wheel.load(parts, 0)
        finally:
            file.close()
        used = list(wheel.used(0))
        precision = self._precision(used)
        found = [(time * precision, slot) for time, slot in used]
        return sorted(each for each in found if each[0] >= self.checkpoint.read_ms)

    def _precision(self, used: list[tuple[int, Slot]]) -> int:
        """How much time a slot is."""
        for time, slot in reversed(used):
            units, _ = self._chain(slot.last, 1)
            for precision in PRECISIONS:
                if units and units[0].due_ms // precision == time:
                    return precision
        return PRECISIONS[0]

    def rows(self) -> Iterator[inspect.Row]:
        """What waits, in one row; none if nothing ever did."""
        if self.checkpoint is None:
            return
        slots = self.slots()
        end = self._reader.max_offset(TIMER_TOPIC, 0)
        yield {
            "pending": sum(slot.messages for _, slot in slots),
            "not_entered": max(0, end - max(0, self.checkpoint.queue_offset)),
            "next_due_ms": slots[0][0] if slots else 0,
            "last_due_ms": slots[-1][0] if slots else 0,
            "read_ms": self.checkpoint.read_ms,
            "queue_offset": self.checkpoint.queue_offset,
        }

    def waiting(self, prefix: str = "") -> Iterator[StoredMessage]:
        """The messages that wait, in no order; what cannot be read is left out.

        @param prefix: what the topics begin with where they belong. Of others only one
            is read, as a unit has a hash of the topic.
        """
        others: set[int] = set()
        for _, slot in self.slots():
            for unit in self._units(slot):
                if unit.topic_hash in others:
                    continue
                try:
                    found = decode(self._reader.record(unit.position, unit.size))
                except (StoreError, Malformed):
                    continue
                if found.properties.get(REAL_TOPIC, "").startswith(prefix):
                    yield found
                else:
                    others.add(unit.topic_hash)
        if 0 not in inspect.queue_ids(self._reader, TIMER_TOPIC):
            return
        first = max(0, (self.checkpoint or Checkpoint()).queue_offset)
        for message in inspect.messages(self._reader, TIMER_TOPIC, 0, first, None):
            if isinstance(message, StoredMessage) and message.properties.get(
                REAL_TOPIC, ""
            ).startswith(prefix):
                yield message

    def more(self, message: StoredMessage) -> inspect.Row:
        """What is known of a message of the timer topic: where it belongs, when it is
        due, and its state."""
        if message.topic != TIMER_TOPIC:
            return {}
        own = message.properties
        text = own.get(TIMER_OUT_MS, "")
        due_ms = int(text) if text.isascii() and text.isdigit() else 0
        return {
            "real_topic": own.get(REAL_TOPIC, ""),
            "due_ms": due_ms,
            "state": self._state(message, due_ms),
        }

    def _state(self, message: StoredMessage, due_ms: int) -> str:
        """What has become of a message."""
        own, checkpoint = message.properties, self.checkpoint or Checkpoint()
        if message.queue_offset >= checkpoint.queue_offset:
            return "new"
        if self._rolling is None:
            self._rolling = self._look()
        slot_ms = self._rolling.get(message.position)
        if slot_ms is not None:
            return "rolls" if slot_ms >= checkpoint.read_ms else "rolled"
        if TIMER_DEL_UNIQUE_KEY in own:
            return "recalls"
        key = f"{own.get(REAL_TOPIC, '')}+{own.get(UNIQUE_KEY, '')}"
        if (due_ms, key) in self._recalled:
            return "recalled"
        return "pending" if due_ms >= checkpoint.read_ms else "fired"

    def _look(self) -> dict[int, int]:
        """Look through the timer log for what rolls and what takes others back.

        @return: where the messages are that roll, and the times of their slots.
        """
        rolling: dict[int, int] = {}
        for _, unit in self._all_units():
            if unit.rolls:
                rolling[unit.position] = unit.due_ms
            elif unit.deletes:
                with suppress(StoreError, Malformed):
                    found = decode(self._reader.record(unit.position, unit.size))
                    key = found.properties.get(TIMER_DEL_UNIQUE_KEY, "")
                    self._recalled.add((unit.due_ms, key))
        return rolling

    def _all_units(self) -> Iterator[tuple[int, Unit]]:
        """The units of the timer log and where they stand, up to the first place where
        none is."""
        if not self._starts:
            return
        first = self._starts[0]
        for at, data in scan(self._read, self._starts, self._segment_size, first):
            for begin in range(0, len(data), SIZE):
                unit = decode_unit(data, begin)
                assert unit is not None
                yield at + begin, unit

    def findings(self) -> Iterator[Fault | Remark]:
        """What cannot be delivered: a slot without its units, a unit without its
        message; and figures that are wrong, without which all is delivered."""
        if self.checkpoint is None:
            return
        if self._files.exists(self._wheel_path):
            size = self._files.size(self._wheel_path)
            if size != FILE_SIZE:
                text = f"it has {size} bytes in place of {FILE_SIZE}"
                yield Fault("timer", self._wheel_path, 0, text)
        if found := snapshots(self._files, self._reader.root):
            text = (
                f"{', '.join(found)} of RocketMQ's broker may be newer "
                "(timerWheelSnapshotFlush), so some waiting timers may not be counted; "
                "a start makes the wheel again from the timer log"
            )
            yield Remark(self._wheel_path, 0, text)
        yield from self._log_faults(self.checkpoint.log_position)
        faults = miscounted = 0
        for due_ms, slot in self.slots():
            for fault in self._slot_faults(due_ms, slot):
                faults += 1
                if faults <= _MAX_FAULTS:
                    yield fault
            units = list(self._units(slot))
            miscounted += slot.messages != sum(-1 if u.deletes else 1 for u in units)
        if faults > _MAX_FAULTS:
            text = f"{faults - _MAX_FAULTS} more timers cannot be delivered"
            yield Fault("timer", self._folder, 0, text)
        if miscounted:
            text = (
                f"{miscounted} slots of the wheel count other numbers of messages than "
                "the timer log has units of their times: it was not stopped cleanly"
            )
            yield Remark(self._wheel_path, 0, text)

    def _log_faults(self, end: int) -> Iterator[Fault]:
        """Whether the timer log has units up to the end that the checkpoint says."""
        found = self._starts[0] if self._starts else 0
        for position, _ in self._all_units():
            found = position + SIZE
        if found + SIZE + BLANK_SIZE <= end:
            text = f"no unit stands there; the checkpoint knows of units up to {end}"
            yield Fault("timer", self._folder, found, text)

    def _units(self, slot: Slot) -> Iterator[Unit]:
        """The units of a slot, the newest first."""
        last = slot.last
        while last >= 0:
            units, last = self._chain(last, _AT_ONCE)
            yield from units

    def _slot_faults(self, due_ms: int, slot: Slot) -> Iterator[Fault]:
        last = slot.last
        for unit in self._units(slot):
            problem = self._problem(unit)
            if problem:
                text = f"the message that is due at {due_ms} {problem}"
                yield Fault("timer", self._folder, unit.position, text)
            last = unit.previous
        if last >= 0:
            text = f"no unit of the slot that is due at {due_ms} stands there"
            yield Fault("timer", self._folder, last, text)

    def _problem(self, unit: Unit) -> str:
        """Why the message of a unit cannot be delivered; empty if it can."""
        if unit.position < self._reader.lowest:
            return "was removed with its part of the log"
        try:
            message = decode(self._reader.record(unit.position, unit.size))
        except (StoreError, Malformed) as error:
            return f"cannot be read: {error}"
        return "" if message.topic == TIMER_TOPIC else "is one of another topic"
