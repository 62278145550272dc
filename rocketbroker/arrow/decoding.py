# -*- test-case-name: tests.arrow.test_decoding -*-
"""Stored records to Arrow record batches.

Only the columns asked for are computed: that is all the column pruning there is, and it
is worth it (two columns 1115 k messages/s, all of them 450 k; C{docs/facts/spark.md 3}
and 4).

A body that is compressed is made large again, and its system flag then no longer says
that it is compressed, as in a client. One that cannot be is kept as it is, flag and
all, and counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, final

import numpy as np
import pyarrow as pa

from rocketbroker.arrow.columns import COMPRESSED, BatchRecords, Columns, arrow_schema
from rocketbroker.arrow.layout import CUTS, Layout
from rocketbroker.records import compression
from rocketbroker.records.malformed import Malformed

KIND: Final = 0x700
KIND_SHIFT: Final = 8

#: Compressed bodies of a few bytes can become megabytes each; a batch is closed when
#: those in it have become this large together.
MAX_PLAIN_BATCH: Final = 256 * 1024 * 1024


@final
class Decoder:
    """Makes record batches with certain columns.

    @ivar schema: the schema of the batches.
    @ivar undecodable: how many bodies could not be decompressed.
    """

    def __init__(self, columns: Columns, broker: str, decompress: bool) -> None:
        """
        @param columns: which, in order.
        @param broker: the broker's name, which no record holds.
        @param decompress: whether bodies are made large again.
        """
        self.schema = arrow_schema(columns)
        self.undecodable = 0
        self._columns = columns
        self._broker = broker
        self._decompress = decompress and bool(
            {"body", "value", "sysFlag"} & columns.keys()
        )

    def batches(self, layout: Layout) -> Iterator[Any]:
        """The records as batches, one unless compressed bodies become very large.

        @param layout: records of one message each.
        """
        for part, plain in self._parts(layout):
            rows = BatchRecords(part, plain, self._broker)
            arrays = [column.make(rows) for column in self._columns.values()]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _parts(self, layout: Layout) -> Iterator[tuple[Layout, dict[int, bytes]]]:
        if layout.size == 0:
            return
        flags = layout.front["sys_flag"]
        if not self._decompress or not (flags & COMPRESSED).any():
            yield layout, {}
            return
        start, size = 0, 0
        plain: dict[int, bytes] = {}
        for row in np.flatnonzero(flags & COMPRESSED).tolist():
            begin, end = layout.cuts[CUTS * row : CUTS * row + 2].tolist()
            kind = (int(flags[row]) & KIND) >> KIND_SHIFT
            try:
                body = compression.decompress(layout.data[begin:end].tobytes(), kind)
            except Malformed:
                self.undecodable += 1
                continue
            if plain and size + len(body) > MAX_PLAIN_BATCH:
                yield layout.rows(start, row), plain
                start, size, plain = row, 0, {}
            plain[row - start] = body
            size += len(body)
        yield layout.rows(start, layout.size), plain
