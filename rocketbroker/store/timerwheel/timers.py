# -*- test-case-name: tests.store.timerwheel.test_timers -*-
"""Wheel, timer log and checkpoint together: what the timer service does its work with.

Files are made with the first message for later, so a broker without has none. What is
entered is in the timer log when L{Timers.enter} returns, though not on the disk; the
wheel's file and the checkpoint follow with a flush. A flush is two steps: one takes
what has changed (L{Timers.begin_flush}), and one writes it (L{Flush.write}), which may
be in a thread while the next messages are entered.

C{docs/facts/transaction-timer-pop.md} B3, B5, B8, B9.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, final

from rocketbroker.config.store import StoreOptions
from rocketbroker.files.directories import make_lasting
from rocketbroker.files.interfaces import IFile, IFiles
from rocketbroker.files.open_files import OpenFiles
from rocketbroker.store.timerwheel.checkpoint import Checkpoint, CheckpointFile
from rocketbroker.store.timerwheel.log import TimerLog
from rocketbroker.store.timerwheel.recovery import recover
from rocketbroker.store.timerwheel.units import (
    DEFAULT,
    DELETE,
    NONE,
    ROLL,
    SIZE,
    Unit,
    iterate,
)
from rocketbroker.store.timerwheel.wheel import FILE_SIZE, PAGE_SIZE, Slot, Wheel

NAME: Final = "timerwheel"

#: Begins the names of wheels that RocketMQ's broker writes whole, from 5.4 on; behind
#: it stands where the timer log ended (C{docs/facts/since-5.3.md} 10).
SNAPSHOT: Final = NAME + "."

#: A message further ahead than so many slots is entered anew when they have passed:
#: half of the wheel, less an hour's blank.
MAX_WINDOW: Final = 604_800 - 60

#: The file is read in parts of so many bytes.
_PART: Final = PAGE_SIZE * 256


def snapshots(files: IFiles, root: str) -> list[str]:
    """The names of wheels that RocketMQ's broker has written whole."""
    return [
        name
        for name in files.list(root)
        if name.startswith(SNAPSHOT) and name.removeprefix(SNAPSHOT).isdigit()
    ]


class Entry(NamedTuple):
    """A message to be entered.

    @ivar due_ms: when it is due, a multiple of the precision.
    @ivar position: its physical offset.
    @ivar size: the length of its record.
    @ivar deletes: whether it takes another message away.
    @ivar topic_hash: of its real topic.
    """

    due_ms: int
    position: int
    size: int
    deletes: bool
    topic_hash: int


@final
class Timers:
    """The timers of a store.

    @ivar wheel: the slots.
    @ivar log: the units.
    @ivar precision_ms: timerPrecisionMs: one of 100, 200, 500 and 1000.
    @ivar report: sentences on what the start found wrong.
    @ivar units: how many units of the log the start has looked at.
    @ivar entered: positions of messages that were entered after the checkpoint, as the
        start found them: from its queue offset on, these are in the wheel already.
    """

    def __init__(self, open_files: OpenFiles, options: StoreOptions) -> None:
        root = options.store_path_root_dir
        self.precision_ms = precision_of(options.timer_precision_ms)
        self.wheel = Wheel(self.precision_ms)
        self.log = TimerLog(open_files, root, options.mapped_file_size_timer_log)
        self.report: list[str] = []
        self.units = 0
        self.entered: set[int] = set()
        self._window = window_of(options.timer_roll_window_slot)
        self._files = open_files.files
        self._root = root
        self._path = os.path.join(root, NAME)
        self._checkpoint = CheckpointFile(self._files, root)
        self._file: IFile | None = None

    def load(self, now_ms: int, log_end: int) -> Checkpoint:
        """I{Blocking.} Read the files, and make them agree.

        @param now_ms: the time of day.
        @param log_end: where the commit log ends.
        @return: the checkpoint; its times are those of a fresh one if there is none.
        @raise OSError: the disk refuses.
        """
        self._checkpoint.load()
        self.report += self.log.load()
        now_ms -= now_ms % self.precision_ms
        found = self._checkpoint.found
        read_ms = 0 if found is None else found.read_ms
        read_ms -= read_ms % self.precision_ms
        window_ms = MAX_WINDOW * self.precision_ms
        if not 0 < read_ms < now_ms + window_ms:
            # None is known, or it makes no sense: all in the log may still be due.
            read_ms = now_ms - window_ms if self.log.starts else now_ms
        if self.log.starts or self._files.exists(self._path):
            begin_ms = min(read_ms, now_ms)
            is_whole = self._load_wheel(begin_ms)
            position = 0 if found is None or not is_whole else found.log_position
            self.units = recover(self.wheel, self.log, position, begin_ms, log_end)
            self._note_entered(0 if found is None else found.log_position)
        # Of a clock that was set back: what was due before it was is not due again.
        self.wheel.clear(now_ms, read_ms, passed=False)
        return (found or Checkpoint())._replace(read_ms=min(read_ms, now_ms))

    def _note_entered(self, position: int) -> None:
        """Note the messages of the units from a position on."""
        for _, data in self.log.scan(max(position, self.log.begin)):
            self.entered.update(fields[5] for fields in iterate(data))

    @property
    def has_checkpoint(self) -> bool:
        """Whether the start found a checkpoint."""
        return self._checkpoint.found is not None

    @property
    def delivered_from(self) -> int:
        """Where copies of what was due last begin in the commit log, as the start found
        it; -1 if it is not known."""
        return self._checkpoint.delivered_from

    def _load_wheel(self, read_ms: int) -> bool:
        """Read the file of the wheel; whether it is whole."""
        files, path = self._files, self._path
        found = snapshots(files, self._root)
        if found:
            # Who writes these leaves the file behind; what is in them is in the log.
            self.report.append(
                f"{self._root} has {', '.join(found)} of RocketMQ's broker "
                "(timerWheelSnapshotFlush); the wheel is made again from the timer log."
            )
            if files.exists(path):
                files.remove(path)
            return False
        if files.exists(path) and files.size(path) == FILE_SIZE:
            self.wheel.load(self._parts(), read_ms)
            return True
        if files.exists(path):
            self.report.append(
                f"{path} has {files.size(path)} bytes in place of {FILE_SIZE}; it is "
                "made again from the timer log."
            )
            files.rename(path, f"{path}.damaged")
        return False

    def _parts(self) -> Iterator[bytes]:
        file = self._files.open_readonly(self._path)
        try:
            for start in range(0, FILE_SIZE, _PART):
                if not file.is_hole(start):
                    yield file.pread(min(_PART, FILE_SIZE - start), start)
                else:
                    yield bytes(min(_PART, FILE_SIZE - start))
        finally:
            file.close()

    def enter(self, entries: Sequence[Entry], write_ms: int) -> None:
        """Enter messages.

        @param write_ms: the wheel's write time; what is due before it, as its slot is
            not delivered yet, counts as entered when it was due.
        @raise OSError: the disk refuses; none is entered.
        """
        log, wheel = self.log, self.wheel
        window = self._window * self.precision_ms
        slots: dict[int, Slot] = {}
        units: list[tuple[int, bytes]] = []
        end = log.end
        for due_ms, position, size, deletes, topic_hash in entries:
            magic, ms = DEFAULT, due_ms
            if due_ms - write_ms >= window:
                magic |= ROLL
                ms = write_ms + rolled_ms(due_ms - write_ms, window, self.precision_ms)
            if deletes:
                magic |= DELETE
            slot = slots.get(ms)
            if slot is None:
                slot = wheel.get(ms)
            if slot is None or slot.last < 0:
                slot = Slot(NONE, NONE, 0, 0)
            at = log.place(end)
            wrote_ms = min(write_ms, ms)
            unit = Unit(
                slot.last, magic, wrote_ms, ms - wrote_ms, position, size, topic_hash
            )
            units.append((at, unit.encode()))
            end = at + SIZE
            first = at if slot.first < 0 else slot.first
            count = slot.messages + (-1 if deletes else 1)
            slots[ms] = Slot(first, at, count, slot.magic)
        log.append(units)
        for ms, slot in slots.items():
            wheel.put(ms, slot)

    @property
    def is_there(self) -> bool:
        """Whether there are files: whether a message ever waited."""
        return bool(self.log.starts) or self.has_checkpoint

    def begin_flush(self) -> Flush:
        """Take what has changed since the last flush."""
        return Flush(self, self.wheel.take_dirty(), self.log.end)

    def write_pages(self, pages: Sequence[tuple[int, bytes]]) -> None:
        """I{Blocking.} Write pages of the wheel, and put them on the disk.

        @raise OSError: the disk refuses.
        """
        file = self._file
        if file is None:
            make_lasting(self._files, self._root)
            fresh = not self._files.exists(self._path)
            file = self._file = self._files.open(self._path, create=True)
            if file.size() != FILE_SIZE:
                file.truncate(FILE_SIZE)
            if fresh:
                self._files.sync_dir(self._root)
        for number, page in pages:
            file.pwrite(page, number * PAGE_SIZE)
        file.datasync()

    def save_checkpoint(self, checkpoint: Checkpoint, delivered_from: int) -> None:
        """I{Blocking.} Write the checkpoint, when all that it says is on the disk.

        @raise OSError: the disk refuses.
        """
        self._checkpoint.save(checkpoint, delivered_from)

    def close(self) -> None:
        """Close the files."""
        self._checkpoint.close()
        if self._file is not None:
            self._file.close()
            self._file = None


@final
class Flush:
    """A flush of the timers, and what it writes.

    @ivar log_position: where the timer log ended when it began.
    """

    def __init__(
        self, timers: Timers, pages: list[tuple[int, bytes]], log_position: int
    ) -> None:
        self.log_position = log_position
        self._timers = timers
        self._pages = pages

    def write(self, checkpoint: Checkpoint, delivered_from: int) -> None:
        """I{Blocking.} Put the log on the disk, then the wheel, then a checkpoint.

        @raise OSError: the disk refuses; L{give_back} then.
        """
        self._timers.log.sync()
        if self._pages:
            self._timers.write_pages(self._pages)
        self._timers.save_checkpoint(checkpoint, delivered_from)

    def give_back(self) -> None:
        """It was not written: the next flush has it, too."""
        self._timers.wheel.not_written([number for number, _ in self._pages])


def precision_of(ms: int) -> int:
    """The precision that a setting means: the next of 100, 200, 500, 1000 below."""
    return max((each for each in (100, 200, 500, 1000) if each <= ms), default=100)


def window_of(slots: int) -> int:
    """How many slots ahead a message is at most, by timerRollWindowSlot."""
    return slots if 2 <= slots <= MAX_WINDOW else MAX_WINDOW


def rolled_ms(ahead_ms: int, window_ms: int, precision_ms: int) -> int:
    """How far ahead a message is entered that is due too far ahead.

    Half of the window if little more than the window is left, so that the last roll
    does not come shortly before the end.
    """
    slots = window_ms // precision_ms
    if ahead_ms - window_ms < slots // 3 * precision_ms:
        return slots // 2 * precision_ms
    return window_ms
