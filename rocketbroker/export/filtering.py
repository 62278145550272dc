# -*- test-case-name: tests.export.test_filtering -*-
"""Exports of some messages only, by tags or a condition, and still exactly once.

A broker that filters leaves offsets out, and nobody can tell what it has left out from
what is lost. So all messages are read and checked, and what is not wanted is left out
here, and counted: rows, holes and what was left out add up to the offsets of a range.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, final

import attrs
import numpy as np

from rocketbroker.arrow.layout import CUTS, Layout, lay_out
from rocketbroker.arrow.reading import RangeReader, filter_of
from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.ranges import Range
from rocketbroker.sources.source import EVERYTHING, SQL92, TAG, Filter, Hole, Origin

#: The name of a filter in manifest rows.
FILTER: Final = "filter"


def unfiltered(options: ReadOptions) -> ReadOptions:
    """The same for all messages."""
    return attrs.evolve(options, tags=EVERYTHING.expression, sql_filter="")


def filter_json(options: ReadOptions) -> dict[str, Any]:
    """The filter as a part of a manifest row; nothing if there is none."""
    if not options.filtered:
        return {}
    kind, expression = options.filter
    return {FILTER: {"kind": kind, "expression": expression}}


def with_filter_of(options: ReadOptions, row: Mapping[str, Any]) -> ReadOptions:
    """Options with the filter of a manifest row."""
    tree = row.get(FILTER, {})
    found = Filter(tree.get("kind", TAG), tree.get("expression", "*"))
    is_sql = found.kind == SQL92
    return attrs.evolve(
        options,
        tags="*" if is_sql else found.expression,
        sql_filter=found.expression if is_sql else "",
    )


@final
class WantedReader:
    """Reads the wanted messages of a range, and checks all of them.

    @ivar rows: how many wanted ones it has given.
    @ivar filtered: how many it has left out.
    """

    def __init__(self, origin: Origin, wanted: Range, options: ReadOptions) -> None:
        self._reader = RangeReader(origin, wanted, unfiltered(options))
        self._is_wanted = filter_of(options.filter)
        self.rows = self.filtered = 0

    @property
    def holes(self) -> list[Hole]:
        """See L{RangeReader}."""
        return self._reader.holes

    def layouts(self) -> Iterator[tuple[Layout, Layout]]:
        """All messages that were read, and those of them that are wanted.

        @raise RocketbrokerError: see L{RangeReader.layouts}.
        """
        for layout in self._reader.layouts():
            kept = layout if self._is_wanted is None else self._kept(layout)
            self.rows += kept.size
            self.filtered += layout.size - kept.size
            yield layout, kept

    def _kept(self, layout: Layout) -> Layout:
        assert self._is_wanted is not None
        starts, ends = layout.cuts[4::CUTS].tolist(), layout.cuts[5::CUTS].tolist()
        data = layout.data.tobytes()
        rows = [
            row
            for row, (start, end) in enumerate(zip(starts, ends, strict=False))
            if self._is_wanted(data[start:end])
        ]
        if len(rows) == layout.size:
            return layout
        firsts = layout.starts.tolist()
        sizes = layout.front["size"].tolist()
        found = lay_out(
            b"".join(data[firsts[row] : firsts[row] + sizes[row]] for row in rows)
        )
        # Offsets may be others than in the records, in queues of many topics.
        front = found.front.copy()
        places = np.array(rows, np.int64)
        for name in ("queue_offset", "queue_id"):
            front[name] = layout.front[name][places]
        return found._replace(front=front)
