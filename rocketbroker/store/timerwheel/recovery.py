# -*- test-case-name: tests.store.timerwheel.test_recovery -*-
"""The recovery of the timer wheel at a start: it is made to agree with the timer log.

A flush puts the log on the disk, then the wheel, then the checkpoint. So all units
before the checkpoint's log position are in the wheel's file, whatever has happened
since; those behind it may be, each page for itself. A slot says which unit is its last,
so it is known which of them it counts already.

RocketMQ goes back by a segment more, and leaves the counts as they are. Where its wheel
file has another length, it refuses the start; here the wheel is made again, of all of
the log. So it is where a slot names a place behind the end of the log, of which a power
failure has taken more than the disk had promised.

C{docs/facts/transaction-timer-pop.md} B9.
"""

from __future__ import annotations

from collections.abc import Collection

from rocketbroker.store.timerwheel.log import TimerLog
from rocketbroker.store.timerwheel.units import DELETE, NONE, SIZE, iterate
from rocketbroker.store.timerwheel.wheel import Slot, Wheel


def recover(
    wheel: Wheel, log: TimerLog, position: int, read_ms: int, log_end: int
) -> int:
    """I{Blocking.} Enter the units from a position on that the wheel does not have, and
    cut the log behind the last of them.

    @param position: the checkpoint's; 0 to enter all.
    @param read_ms: slots before it are not needed.
    @param log_end: where the commit log ends: a unit of a message behind it is one that
        a power failure has left without its message.
    @return: how many units there were.
    @raise OSError: the disk refuses.
    """
    start = max(log.begin, position)
    if start >= log.end and log.starts:
        # The checkpoint's end of the log is the end of its last segment, or a lie.
        start = log.starts[-1]
    end, count = _enter(wheel, log, start, read_ms, log_end, None)
    if not count and start > log.begin and not _is_behind_unit(log, start):
        # No unit stands before it either: its grid is another one.
        end, count = _enter(wheel, log, log.begin, read_ms, log_end, None)
    log.cut(end)
    lost = {ms for ms, slot in wheel.used(read_ms) if slot.last >= end}
    for ms in lost:
        wheel.put(ms, Slot(NONE, NONE, 0, 0))
    if lost:
        _enter(wheel, log, log.begin, read_ms, log_end, lost)
    return count


def _is_behind_unit(log: TimerLog, position: int) -> bool:
    """Whether a unit ends there, or a segment begins."""
    if position % log.size == 0:
        return True
    return bool(log.chain(position - SIZE, 1)[0])


def _enter(
    wheel: Wheel,
    log: TimerLog,
    start: int,
    read_ms: int,
    log_end: int,
    only: Collection[int] | None,
) -> tuple[int, int]:
    """Enter units that their slots do not count yet.

    @param only: slots of other times are left alone.
    @return: where the units end, and how many there are.
    """
    precision = wheel.precision_ms
    end, total = start, 0
    for first, data in log.scan(start):
        position = first
        for _, _, magic, write_ms, delay_ms, message, *_ in iterate(data):
            if message >= log_end:
                return position, total + (position - first) // SIZE
            ms = write_ms + delay_ms
            if ms >= read_ms and (only is None or ms - ms % precision in only):
                step = -1 if magic & DELETE else 1
                slot = wheel.get(ms)
                if slot is None or slot.last < 0:
                    wheel.put(ms, Slot(position, position, step, 0))
                elif position > slot.last:
                    wheel.put(
                        ms,
                        Slot(slot.first, position, slot.messages + step, slot.magic),
                    )
            position += SIZE
        end = position
        total += len(data) // SIZE
    return end, total
