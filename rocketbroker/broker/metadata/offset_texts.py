# -*- test-case-name: tests.broker.metadata.test_offset_texts -*-
"""The text of the offset table, made anew where offsets have changed.

Twenty thousand groups that all went on in the last five seconds take a tenth of a
second to write, so L{OffsetTexts.steps} does it a few at a time. Offsets that change
meanwhile are in the text or not; each was the group's offset when the work began or
later.

The shapes: C{docs/facts/broker.md} 26.2.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Final, TypeAlias, final

from rocketbroker.records.names import is_lmq
from rocketbroker.wire.fastjson import Written, joined, quoted

#: C{topic@group -> queue -> offset}.
Offsets: TypeAlias = "dict[str, dict[int, int]]"

#: How many texts are made in one step.
STEP_KEYS: Final = 50


@final
class _Members:
    """The members of one JSON object, sorted by key."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._sorted: list[str] = []

    def put(self, key: str, text: str) -> None:
        """Add or replace a member."""
        if key not in self._texts:
            insort(self._sorted, key)
        self._texts[key] = text

    def drop(self, key: str) -> None:
        """Remove a member, if it is there."""
        if self._texts.pop(key, None) is not None:
            del self._sorted[bisect_left(self._sorted, key)]

    def written(self) -> Written | None:
        """The object; None without members."""
        texts = self._texts
        return joined([texts[key] for key in self._sorted]) if texts else None


@final
class OffsetTexts:
    """The texts of a table of offsets.

    @ivar stale: the keys whose text is to be made anew; added to by the table.
    """

    def __init__(self) -> None:
        self.stale: set[str] = set()
        self._begun: list[str] = []
        self._queues = _Members()
        self._light = _Members()

    def steps(self, offsets: Offsets) -> Iterator[None]:
        """Make the texts of what is stale now, some at each step."""
        self._begun += self.stale
        self.stale.clear()
        while self._begun:
            for key in self._begun[-STEP_KEYS:]:
                self._make(key, offsets.get(key))
            del self._begun[-STEP_KEYS:]
            yield

    def make(self, offsets: Offsets) -> None:
        """Make all of them now."""
        for _ in self.steps(offsets):
            pass

    def waiting(self) -> int:
        """How many texts are to be made."""
        return len(self.stale) + len(self._begun)

    def _make(self, key: str, queues: dict[int, int] | None) -> None:
        if queues is None:
            self._queues.drop(key)
            self._light.drop(key)
        elif is_lmq(key.rpartition("@")[2]) and 0 in queues:
            self._queues.drop(key)
            self._light.put(key, f"{quoted(key)}:{queues[0]}")
        else:
            pairs = [f"{queue}:{offset}" for queue, offset in sorted(queues.items())]
            self._queues.put(key, f"{quoted(key)}:{{{','.join(pairs)}}}")

    def tables(self) -> tuple[Written, Written | None]:
        """As of the last steps: the offsets by queue, and those of LMQs, if any."""
        return self._queues.written() or joined([]), self._light.written()
