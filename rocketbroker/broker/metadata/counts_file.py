# -*- test-case-name: tests.broker.transaction.test_counters -*-
"""A file of RocketMQ's in which something is counted by topic.

C{transactionMetrics} and C{timermetrics} are alike: a version, and under one name the
count of each topic and when that changed.

C{docs/facts/transaction-timer-pop.md} A8 and B3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias, final

from twisted.internet.defer import Deferred

from rocketbroker.broker.json_table import JsonTable
from rocketbroker.broker.metadata.topics import loaded_version
from rocketbroker.wire.bodies.topics import DataVersion
from rocketbroker.wire.fastjson import joined, quoted
from rocketbroker.wire.fields import integer_of

#: Counts beyond it make no sense.
MAX_COUNT: Final = 1 << 62

#: Topic, count, and when that changed, in milliseconds.
Row: TypeAlias = tuple[str, int, int]


@final
class CountsFile:
    """A JSON file of counts by topic.

    @ivar version: moves with each write.
    """

    def __init__(self, file: JsonTable, name: str, wall_ms: Callable[[], int]) -> None:
        """
        @param name: under which the counts are.
        """
        self.version = DataVersion(timestamp=wall_ms())
        self._file = file
        self._name = name
        self._wall_ms = wall_ms
        self._is_behind = False

    def load(self) -> list[Row] | None:
        """I{Blocking.} Read it; None if there is none."""
        value = self._file.load()
        return None if value is None else self.read(value)

    def read(self, value: Mapping[object, object]) -> list[Row]:
        """The rows of a content, whose version counts from now on; what makes no sense
        in it is left out."""
        table = value.get(self._name)
        found = []
        for topic, entry in table.items() if isinstance(table, dict) else ():
            if not isinstance(entry, dict):
                continue
            count = integer_of(entry.get("count"))
            if count is not None and abs(count) < MAX_COUNT:
                changed_ms = integer_of(entry.get("timeStamp")) or 0
                found.append((str(topic), count, changed_ms))
        self.version = loaded_version(value, self.version)
        return found

    def content(self, rows: Iterable[Row]) -> dict[str, object]:
        """What a file with these rows says, to be written."""
        return {
            "dataVersion": self.version.to_json(),
            # In one piece each: a broker may have many thousand topics.
            self._name: joined(
                [
                    f'{quoted(topic)}:{{"count":{count},"timeStamp":{changed_ms}}}'
                    for topic, count, changed_ms in sorted(rows)
                ]
            ),
        }

    def changed(self) -> int:
        """The file is behind; the time."""
        self._is_behind = True
        return self._wall_ms()

    def save(self, content: Callable[[], dict[str, object]]) -> None:
        """Write it in a thread if it is behind."""
        if self._is_behind or self._file.failed:
            self._is_behind = False
            self.version = self.version.next(self._wall_ms())
            self._file.save_soon(content)

    def saved(self) -> Deferred[None]:
        """Fires when no write is under way."""
        return self._file.idle()
