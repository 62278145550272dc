# -*- test-case-name: tests.spark.test_microbatches -*-
"""Micro-batches of a stream, their ends and their content; without Spark.

Whatever a micro-batch has follows from the offsets at its two ends, which Spark keeps
in its checkpoint: a micro-batch that is run again, by another process or on another
day, has the same messages. An offset that this process did not make itself is checked
first against the fingerprints in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, final

import numpy as np

from rocketbroker.arrow.message_identity import (
    Fingerprint,
    fingerprint_of,
    first_messages,
)
from rocketbroker.errors import BrokerError
from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.ranges import Queue, Range
from rocketbroker.sources.resolving import resolve
from rocketbroker.sources.source import DataLoss, Hole, StreamOrigin
from rocketbroker.spark.lag import Lags
from rocketbroker.spark.limits import BatchLimits, shares, shares_of_bytes
from rocketbroker.spark.offsets import StreamOffset, read_offset
from rocketbroker.spark.splits import log_lost, logger
from rocketbroker.spark.watching import Watch

#: So many messages of a queue are looked at to guess how large the next ones are.
SAMPLE: Final = 32

#: So many offsets are known to be sound; Spark asks for the last two.
KNOWN: Final = 8

#: A task with so many messages takes longer than starting it.
SMALL: Final = 10_000


@final
class MicroBatches:
    """The micro-batches of one stream.

    @ivar lags: how far behind it is.
    """

    def __init__(
        self,
        now_ms: Callable[[], int],
        watch: Watch,
        origin: StreamOrigin,
        options: ReadOptions,
    ) -> None:
        """
        @param now_ms: the time, ms since 1970.
        @param watch: over the same origin.
        """
        self.lags = Lags(now_ms)
        self._now_ms = now_ms
        self._watch = watch
        self._origin = origin
        self._options = options
        self._known: dict[str, StreamOffset] = {}
        self._unchecked: dict[Queue, tuple[int, Fingerprint | None]] = {}
        self._target: dict[Queue, tuple[int, int]] | None = None
        self._waiting_since: int | None = None
        self._committed: Mapping[Queue, int] = {}

    def initial(self) -> dict[str, Any]:
        """The offset where a new stream begins.

        @raise DataLoss: it was told to begin where nothing is any more.
        """
        lost: list[Range] = []
        ranges = resolve(self._origin, self._options, self._now_ms(), lost)
        for gone in lost:
            self._record(gone.queue, Hole(gone.start, gone.until, "it was deleted"))
        bounds = self._origin.all_bounds(each.queue for each in ranges)
        fingerprints = {}
        for queue, start, _ in ranges:
            if bounds[queue][0] < start:
                fingerprints[queue], since = self._seen(queue, start, bounds[queue][1])
                self.lags.at(queue, start, since)
        positions = {queue: start for queue, start, _ in ranges}
        return self._made(StreamOffset(positions, without_none(fingerprints)))

    def stop_at_present_ends(self) -> None:
        """Let the stream end with what is there now."""
        self._watch.look_at_once()
        self._target = dict(self._watch.bounds)

    def following(self, begin: dict[str, Any], limits: BatchLimits) -> dict[str, Any]:
        """The end of the micro-batch that begins at an offset.

        Where nothing is to be read it is the same offset, after as long a wait as
        brokers must not be asked; with L{stop_at_present_ends} at once.

        @raise DataLoss: messages are gone, unless C{failOnDataLoss} allows it; or a
            queue is another one than before.
        """
        start = self._sound(begin)
        self._watch.include(start.positions)
        self._watch.look()
        end = self._end(start, limits)
        if end is None and self._target is None:
            self._watch.wait()
            end = self._end(start, limits)
        self.lags.known(start.positions, self._watch.bounds, self._origin.asked)
        return begin if end is None else self._made(end)

    def ranges(self, begin: dict[str, Any], end: dict[str, Any]) -> list[Range]:
        """What the micro-batch between two offsets reads.

        @raise DataLoss: as L{following}.
        """
        start, until = self._sound(begin), self._sound(end)
        found = []
        for queue, position in sorted(until.positions.items()):
            first = start.positions.get(queue)
            if first is None:
                first = until.begins.get(queue, 0)
            if queue in until.holes:
                first = max(first, until.holes[queue].until)
            found.append(Range(queue, min(first, position), position))
        return found

    def latest(self) -> dict[str, Any]:
        """The ends of all queues, and how far behind them the next offset is."""
        ends = {queue: end for queue, (_, end) in self._watch.bounds.items()}
        return StreamOffset(ends).to_json() | {"lag": self.lags.to_json()}

    def commit(self, end: dict[str, Any]) -> None:
        """Tell the consumer group of C{commitGroup}, for those who look at lag.

        A broker that refuses is no reason to stop the stream; it is logged.
        """
        positions = read_offset(end).positions
        group = self._options.commit_group
        for queue, position in positions.items():
            if not group or self._committed.get(queue) == position:
                continue
            try:
                self._origin.commit_offset(queue, group, position)
            except BrokerError as problem:
                logger.warning("commitGroup=%s is refused: %s", group, problem)
                return
        self._committed = positions

    def _made(self, offset: StreamOffset) -> dict[str, Any]:
        found = offset.to_json()
        self._know(json.dumps(found, sort_keys=True), offset)
        return found

    def _know(self, text: str, offset: StreamOffset) -> None:
        while len(self._known) >= KNOWN:
            self._known.pop(next(iter(self._known)))
        self._known[text] = offset

    def _sound(self, found: dict[str, Any]) -> StreamOffset:
        """The offset of this JSON, checked if it is not of our own making."""
        text = json.dumps(found, sort_keys=True)
        offset = self._known.pop(text, None)
        if offset is None:
            offset = read_offset(found)
            self._watch.include(offset.positions)
            self._watch.look()
            self._unchecked = {
                queue: (position, offset.fingerprints.get(queue))
                for queue, position in offset.positions.items()
            }
            self._check()
        self._know(text, offset)
        return offset

    def _check(self) -> None:
        """Check what can be; a queue whose broker is away is checked when it is back.

        @raise DataLoss: a queue is another one.
        """
        for queue in self._unchecked.keys() & self._watch.bounds.keys():
            position, expected = self._unchecked.pop(queue)
            first, end = self._watch.bounds[queue]
            check_end(queue, position, end)
            if not self._options.detect_reset or not first < position:
                continue
            seen, since = self._seen(queue, position, end)
            self.lags.at(queue, position, since)
            if None not in (seen, expected) and seen != expected:
                raise DataLoss(
                    f"TOPIC_RECREATED: message {position - 1} of {queue} is another "
                    "one than the one read; begin with another checkpoint"
                )

    def _seen(
        self, queue: Queue, position: int, end: int
    ) -> tuple[Fingerprint | None, int | None]:
        """What stands before a position, and when what stands at it was stored.

        @return: None for each that does not exist, or if C{failOnDataLoss} allows it,
            cannot be read.
        @raise DataLoss: what stands before it cannot be read.
        """
        wanted = Range(queue, position - 1, min(position + 1, end))
        layout = first_messages(self._origin, wanted)
        offsets = layout.front["queue_offset"]
        rows = [np.flatnonzero(offsets == each) for each in (position - 1, position)]
        if not len(rows[0]):
            if self._options.fail_on_data_loss:
                raise DataLoss(f"message {position - 1} of {queue} cannot be read")
            return None, None
        seen = fingerprint_of(layout, int(rows[0][0]), queue.broker)
        since = int(layout.store_ms[rows[1][0]]) if len(rows[1]) else None
        return seen, since

    def _end(self, start: StreamOffset, limits: BatchLimits) -> StreamOffset | None:
        """The end of the micro-batch that begins at C{start}; None if there is none."""
        self._check()
        bounds = self._watch.bounds if self._target is None else self._target
        begins, holes = self._begins(start, bounds)
        waiting = {
            queue: bounds[queue][1] - first
            for queue, first in begins.items()
            if first < bounds[queue][1]
        }
        if not waiting or self._too_few(waiting, limits):
            return None
        self._waiting_since = None
        taken = self._limited(begins, waiting, limits)
        positions = dict(start.positions)
        fingerprints: dict[Queue, Fingerprint | None] = {**start.fingerprints}
        for queue, number in taken.items():
            until = positions[queue] = begins[queue] + number
            seen, since = self._seen(queue, until, bounds[queue][1])
            fingerprints[queue] = seen
            self.lags.at(queue, until, since)
        new = {queue: begins[queue] for queue in taken if queue not in start.positions}
        gone = {queue: holes[queue] for queue in taken if queue in holes}
        for queue, hole in gone.items():
            self._record(queue, hole)
        return StreamOffset(positions, without_none(fingerprints), new, gone)

    def _begins(
        self, start: StreamOffset, bounds: Mapping[Queue, tuple[int, int]]
    ) -> tuple[dict[Queue, int], dict[Queue, Hole]]:
        """Where each queue goes on, and what is gone before that.

        @raise DataLoss: something is gone, and that is not allowed.
        """
        begins: dict[Queue, int] = {}
        holes: dict[Queue, Hole] = {}
        for queue, (first, end) in bounds.items():
            position = start.positions.get(queue)
            if position is None:
                begins[queue] = first
                continue
            if queue in self._unchecked:
                continue
            check_end(queue, position, end)
            if position < first:
                why = f"{queue} begins at {first}"
                if self._options.fail_on_data_loss:
                    gone = Range(queue, position, first)
                    raise DataLoss(f"the messages {gone} are gone: {why}")
                holes[queue] = Hole(position, first, why)
            begins[queue] = max(position, first)
        return begins, holes

    def _too_few(self, waiting: Mapping[Queue, int], limits: BatchLimits) -> bool:
        if self._target is not None or sum(waiting.values()) >= limits.min_offsets:
            return False
        now = self._now_ms()
        if self._waiting_since is None:
            self._waiting_since = now
        return now - self._waiting_since < limits.max_delay_ms

    def _limited(
        self,
        begins: Mapping[Queue, int],
        waiting: dict[Queue, int],
        limits: BatchLimits,
    ) -> dict[Queue, int]:
        if limits.max_bytes:
            sizes = {
                queue: self._mean_size(Range(queue, begins[queue], begins[queue] + n))
                for queue, n in waiting.items()
            }
            waiting = shares_of_bytes(waiting, sizes, limits.max_bytes)
        if limits.max_offsets:
            waiting = shares(waiting, limits.max_offsets)
        return waiting

    def _mean_size(self, wanted: Range) -> int:
        sample = wanted._replace(until=min(wanted.until, wanted.start + SAMPLE))
        layout = first_messages(self._origin, sample)
        return max(1, int(layout.front["size"].sum()) // max(1, layout.size))

    def _record(self, queue: Queue, hole: Hole) -> None:
        self.lags.lost(queue, hole.until - hole.start)
        gone = Range(queue, hole.start, hole.until)
        log_lost(self._options, [gone])


def check_end(queue: Queue, position: int, end: int) -> None:
    """See that a queue is as long as it was.

    @raise DataLoss: it is shorter.
    """
    if end < position:
        raise DataLoss(
            f"TOPIC_RECREATED: {queue} ends at {end}, but was read up to {position}; "
            "begin with another checkpoint"
        )


def without_none(
    found: Mapping[Queue, Fingerprint | None],
) -> dict[Queue, Fingerprint]:
    """The fingerprints that there are."""
    return {queue: seen for queue, seen in found.items() if seen is not None}


def least_partitions(ranges: Iterable[Range], options: ReadOptions, cores: int) -> int:
    """How many tasks a micro-batch gets at least.

    A task costs 60 to 190 ms whatever it reads, so a small micro-batch gets few.

    @param cores: how many run at once.
    """
    if options.least_partitions:
        return options.least_partitions
    total = sum(each.size for each in ranges)
    return min(cores, -(-total // SMALL))
