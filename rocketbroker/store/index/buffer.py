# -*- test-case-name: tests.store.index.test_service -*-
"""The buffer of messages on their way into the index, in columns.

C{docs/facts/store.md} 12.3.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, islice, repeat
from typing import final

from rocketbroker.codec.append import columns
from rocketbroker.codec.build import COMPILED
from rocketbroker.records.record_head import RecordHead
from rocketbroker.store.commitlog.received import ReceivedRecords
from rocketbroker.store.commitlog.writer import Hint
from rocketbroker.store.index.keys import Keys, codes_of
from rocketbroker.store.interfaces import Draft, Placed


@final
class KeyColumns:
    """Messages whose keys are to be entered, as columns.

    @ivar prefixes: the unsigned hash of each topic and C{#}.
    @ivar properties: the properties of each.
    @ivar positions: where each is, ascending.
    @ivar times: the store time of each in ms.
    """

    __slots__ = ("_high_ms", "_low_ms", "positions", "prefixes", "properties", "times")

    def __init__(self) -> None:
        self.prefixes: list[int] = []
        self.properties: list[bytes] = []
        self.positions = array("q")
        self.times = array("q")
        self._low_ms = 1 << 63
        self._high_ms = -1 << 63

    def _spans(self, ms: int) -> None:
        if ms < self._low_ms:
            self._low_ms = ms
        if ms > self._high_ms:
            self._high_ms = ms

    def add(self, prefix: int, properties: bytes, position: int, ms: int) -> None:
        """Add a message."""
        self.prefixes.append(prefix)
        self.properties.append(properties)
        self.positions.append(position)
        self.times.append(ms)
        self._spans(ms)

    def read(
        self, scan: Iterable[RecordHead], max_records: int, prefix: Callable[[str], int]
    ) -> None:
        """Add messages that are read from the log."""
        for found in islice(scan, max_records):
            if found[5] & 12 != 12:
                topic = found[2].decode("utf-8", "replace")
                self.add(prefix(topic), found[7], found[0], found[6])

    def take(self, share: Share) -> None:
        """Add the messages of an append."""
        self.prefixes += share.prefixes
        self.properties += share.properties
        self.positions.extend(share.positions)
        if share.times:
            self.times += share.times
            self._spans(min(share.times))
            self._spans(max(share.times))
            return
        self.times += array("q", (share.store_ms,)) * len(share.positions)
        self._spans(share.store_ms)

    def cut(self, count: int) -> None:
        """Leave out the first."""
        del self.prefixes[:count]
        del self.properties[:count]
        del self.positions[:count]
        del self.times[:count]

    def keys(self, start: int, end: int) -> tuple[Keys, Sequence[int] | int]:
        """The keys of some, and how many each has."""
        codes, counts = codes_of(self.prefixes[start:end], self.properties[start:end])
        positions = _spread(self.positions[start:end], counts)
        times = _spread(self.times[start:end], counts)
        return Keys(codes, positions, times, (self._low_ms, self._high_ms)), counts


@final
class Share:
    """The messages of one append, with no more than the index needs: it is kept until
    the next step, and bodies would fill the memory that the next sends need at hand.

    @ivar times: the store time of each; empty where all have that of the append.
    """

    __slots__ = (
        "end",
        "positions",
        "prefixes",
        "properties",
        "start",
        "store_ms",
        "times",
    )

    def __init__(self, hint: Hint, prefix: Callable[[str], int]) -> None:
        self.start = hint.start
        self.end = hint.end
        self.store_ms = hint.store_ms
        self.times = array("q")
        if hint.received is not None:
            self._take(hint.received, prefix)
            return
        drafts = hint.drafts
        count = len(drafts)
        found = columns(drafts) if COMPILED else None
        if found is not None:
            self.properties, self.positions, names = found
            if names.count(names[0]) == len(names):
                self.prefixes: list[int] = [prefix(names[0])] * count
            else:
                self.prefixes = [prefix(draft.queue.topic) for draft in drafts]
            return
        self.properties = [draft.properties for draft in drafts]
        self.positions = [draft.position for draft in drafts]
        if [None for each in drafts if each.parts is not None or each.sys_flag & 8]:
            self.prefixes = []
            self._select(drafts, prefix)
            return
        topics = {draft.queue.topic for draft in drafts}
        if len(topics) == 1:
            self.prefixes = [prefix(topics.pop())] * count
        else:
            self.prefixes = [prefix(draft.queue.topic) for draft in drafts]

    def _take(self, received: ReceivedRecords, prefix: Callable[[str], int]) -> None:
        """The same of records of a master."""
        self.properties, self.positions = [], []
        self.prefixes = []
        for run in received.runs:
            if run.sys_flag & 12 == 12:
                continue
            count = len(run.positions)
            self.properties += run.properties
            self.positions += run.positions
            self.times += array("q", (run.store_ms,)) * count
            topic = run.topic.decode("utf-8", "replace")
            self.prefixes += [prefix(topic)] * count

    def _select(self, drafts: list[Draft], prefix: Callable[[str], int]) -> None:
        """The same, where there may be batches, or messages that were rolled back."""
        self.properties, self.positions = [], []
        for draft in drafts:
            if draft.sys_flag & 12 == 12:
                continue
            if draft.parts is None:
                self.properties.append(draft.properties)
                self.positions.append(draft.position)
            else:
                assert type(draft.parts) is not Placed, "those are read from the log"
                self.properties += [part[2] for part in draft.parts]
                self.positions += draft.positions
            count = len(self.positions) - len(self.prefixes)
            self.prefixes += [prefix(draft.queue.topic)] * count


def _spread(column: array[int], counts: Sequence[int] | int) -> array[int]:
    """Each number as often as its message has keys."""
    if not isinstance(counts, int):
        return array("q", chain.from_iterable(map(repeat, column, counts)))
    if counts == 1:
        return column
    spread = array("q", bytes(counts * len(column) * 8))
    for at in range(counts):
        spread[at::counts] = column
    return spread
