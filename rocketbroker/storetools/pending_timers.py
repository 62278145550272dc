# -*- test-case-name: tests.storetools.test_pending_timers -*-
"""The timers of a store's directory: what waits, and whether it can be delivered.

The files are read as they are; a broker in use may be a second ahead of them.

C{docs/facts/transaction-timer-pop.md} B3.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final, final

from rocketbroker.errors import StoreError
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.names import TIMER_TOPIC
from rocketbroker.records.properties import (
    REAL_TOPIC,
    TIMER_DEL_UNIQUE_KEY,
    TIMER_OUT_MS,
)
from rocketbroker.records.record import StoredMessage, decode
from rocketbroker.store.file_names import position_of_name, segment_name
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.store.timerwheel.checkpoint import NAME as CHECKPOINT
from rocketbroker.store.timerwheel.checkpoint import Checkpoint
from rocketbroker.store.timerwheel.checkpoint import decode as decode_checkpoint
from rocketbroker.store.timerwheel.log import FOLDER, chain
from rocketbroker.store.timerwheel.timers import NAME as WHEEL
from rocketbroker.store.timerwheel.units import Unit
from rocketbroker.store.timerwheel.wheel import FILE_SIZE, PAGE_SIZE, Slot, Wheel
from rocketbroker.storetools import inspect
from rocketbroker.storetools.verify.report import Fault

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
        lengths = [
            length
            for name, length in self._files.lengths(self._folder)
            if position_of_name(name) >= 0
        ]
        self._segment_size = max(lengths, default=0)

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

    def more(self, message: StoredMessage) -> inspect.Row:
        """What is known of a message of the timer topic: where it belongs, when it is
        due, and its state: C{new} (not in the wheel yet), C{waits}, C{recalls} (it
        takes another one back), C{over}."""
        if message.topic != TIMER_TOPIC:
            return {}
        own = message.properties
        text = own.get(TIMER_OUT_MS, "")
        due_ms = int(text) if text.isascii() and text.isdigit() else 0
        checkpoint = self.checkpoint or Checkpoint()
        if message.queue_offset >= checkpoint.queue_offset:
            state = "new"
        elif due_ms < checkpoint.read_ms:
            state = "over"
        else:
            state = "recalls" if TIMER_DEL_UNIQUE_KEY in own else "waits"
        return {
            "real_topic": own.get(REAL_TOPIC, ""),
            "due_ms": due_ms,
            "state": state,
        }

    def faults(self) -> Iterator[Fault]:
        """What cannot be delivered: a slot without its units, a unit without its
        message."""
        if self.checkpoint is None:
            return
        if self._files.exists(self._wheel_path):
            size = self._files.size(self._wheel_path)
            if size != FILE_SIZE:
                text = f"it has {size} bytes in place of {FILE_SIZE}"
                yield Fault("timer", self._wheel_path, 0, text)
        count = 0
        for due_ms, slot in self.slots():
            for fault in self._slot_faults(due_ms, slot):
                count += 1
                if count <= _MAX_FAULTS:
                    yield fault
        if count > _MAX_FAULTS:
            text = f"{count - _MAX_FAULTS} more timers cannot be delivered"
            yield Fault("timer", self._folder, 0, text)

    def _slot_faults(self, due_ms: int, slot: Slot) -> Iterator[Fault]:
        last = slot.last
        while last >= 0:
            units, after = self._chain(last, _AT_ONCE)
            if not units:
                text = f"no unit of the slot that is due at {due_ms} stands there"
                yield Fault("timer", self._folder, last, text)
                return
            for unit in units:
                problem = self._problem(unit)
                if problem:
                    text = f"the message that is due at {due_ms} {problem}"
                    yield Fault("timer", self._folder, unit.position, text)
            last = after

    def _problem(self, unit: Unit) -> str:
        """Why the message of a unit cannot be delivered; empty if it can."""
        if unit.position < self._reader.lowest:
            return "was removed with its part of the log"
        try:
            message = decode(self._reader.record(unit.position, unit.size))
        except (StoreError, Malformed) as error:
            return f"cannot be read: {error}"
        return "" if message.topic == TIMER_TOPIC else "is one of another topic"
