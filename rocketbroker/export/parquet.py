# -*- test-case-name: tests.export.test_parquet -*-
"""One Parquet file: written and checked.

Nobody sees it before it is whole. The footer carries the manifest row, so that a run
which finds the file of one that died need not write it again.
"""

from __future__ import annotations

import json
from typing import Any, Final, final

import google_crc32c
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rocketbroker.arrow.binary_arrays import values_and_offsets
from rocketbroker.errors import RocketbrokerError
from rocketbroker.export.plans import row_parts
from rocketbroker.export.storage import Output, Storage

#: A group of rows is closed, too, behind the message whose body makes it this large:
#: readers hold a group in memory, and a plan only guesses how large messages are.
MAX_GROUP_BODIES: Final = 256 * 1024 * 1024

COMPRESSION_LEVEL: Final = 3

#: Few different values each.
DICTIONARY: Final = ("topic", "brokerName", "tags", "bornHost", "storeHost")

#: Numbers that grow from row to row.
DELTA: Final = (
    "queueOffset",
    "commitLogOffset",
    "preparedTransactionOffset",
    "storeTimestamp",
    "bornTimestamp",
)

#: The key of the manifest row in the footer.
FOOTER_KEY: Final = "rocketbroker"

#: So many bytes of a file are written at once: its writer writes each page by itself.
BUFFER_SIZE: Final = 1 << 20

#: How much of a file is read at once.
READ_SIZE: Final = 8 * 1024 * 1024


class FileMismatch(RocketbrokerError):
    """A file has other content than it must have."""


def crc32c(data: Any, value: int = 0) -> int:
    """The CRC-32C (Castagnoli) of C{data}, the checksum that object stores use, too.

    @param data: anything that has a buffer.
    @param value: the CRC of what comes before.
    """
    if not len(data):
        return value
    return int(google_crc32c.extend(value, np.frombuffer(data, np.uint8)))


@final
class Sink:
    """A file that counts and checks what is written to it.

    @ivar size: how many bytes.
    @ivar crc: their CRC-32C.
    """

    def __init__(self, output: Output) -> None:
        self._output = output
        self.closed = False
        self.size = 0
        self.crc = 0

    def write(self, data: Any) -> int:
        """Write all of C{data}."""
        rest = memoryview(data).cast("B")
        size = len(rest)
        if self.closed:
            # An abandoned file; its writer still wants to write a footer.
            return size
        self.crc = crc32c(rest, self.crc)
        self._output.write(rest)
        self.size += size
        return size

    def tell(self) -> int:
        """The position."""
        return self.size

    def flush(self) -> None:
        """Nothing is held back."""

    def readable(self) -> bool:
        """It is not."""
        return False

    def writable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is not."""
        return False

    def abandon(self) -> None:
        """Remove it, wanted by nobody; idempotent."""
        self.closed = True
        self._output.abandon()

    def close(self) -> None:
        """Nothing: it is finished by its owner."""

    def finish(self) -> None:
        """Give it its name."""
        self.closed = True
        self._output.finish()


@final
class ParquetFile:
    """A Parquet file that is being written.

    Its bytes depend on its rows, and not on the batches in which they come.

    @ivar path: its name, below the root of the storage.
    """

    def __init__(
        self,
        storage: Storage,
        path: str,
        schema: Any,
        group_rows: int,
        max_bodies: int = MAX_GROUP_BODIES,
    ) -> None:
        """
        @param group_rows: so many rows are in each row group but the last.
        @param max_bodies: a group ends behind the message whose body makes it so large.
        """
        self.path = path
        self._sink = Sink(storage.create(path))
        try:
            # It writes the first bytes at once.
            self._stream = pa.BufferedOutputStream(
                pa.PythonFile(self._sink, "w"), BUFFER_SIZE
            )
            self._writer = writer_to(self._stream, schema)
        except BaseException:
            self._sink.abandon()
            raise
        self._schema = schema
        self._batches: list[Any] = []
        self._group_rows = group_rows
        self._max_bodies = max_bodies
        self._rows = 0
        self._bytes = 0

    @property
    def size(self) -> int:
        """How many bytes have been written so far."""
        return self._sink.size

    def write(self, batch: Any) -> None:
        """Add rows."""
        ends = np.zeros(len(batch) + 1, np.int64)
        if "body" in self._schema.names:
            _, ends = values_and_offsets(batch.column("body"))
        start = 0
        while start < len(batch):
            until = start + self._group_rows - self._rows
            full = ends[start] + self._max_bodies - self._bytes
            until = min(until, int(np.searchsorted(ends, full)), len(batch))
            self._batches.append(batch.slice(start, until - start))
            self._rows += until - start
            self._bytes += int(ends[until] - ends[start])
            start = until
            if self._rows >= self._group_rows or self._bytes >= self._max_bodies:
                self._write_group()

    def _write_group(self) -> None:
        if self._batches:
            table = pa.Table.from_batches(self._batches, self._schema)
            # Pages end where chunks end.
            table = table.combine_chunks()
            self._writer.write_table(table, row_group_size=max(1, len(table)))
            self._batches, self._rows, self._bytes = [], 0, 0

    def finish(self, footer: dict[str, Any]) -> tuple[int, int]:
        """Close it, put it there for good and give it its name.

        @param footer: its description in the footer.
        @return: its size and its CRC-32C.
        """
        self._write_group()
        self._writer.add_key_value_metadata({FOOTER_KEY: json.dumps(footer)})
        self._writer.close()
        self._stream.close()
        self._sink.finish()
        return self._sink.size, self._sink.crc

    def abandon(self) -> None:
        """Remove the file."""
        self._batches = []
        self._sink.abandon()
        self._writer.close()
        self._stream.close()


def writer_to(sink: Any, schema: Any) -> Any:
    """A writer with the encodings that suit messages.

    @param sink: a path, or an open file of Arrow's.
    """
    names = set(schema.names)
    return pq.ParquetWriter(
        sink,
        schema,
        compression="zstd",
        compression_level=COMPRESSION_LEVEL,
        use_dictionary=[name for name in DICTIONARY if name in names],
        column_encoding={
            name: "DELTA_BINARY_PACKED" for name in DELTA if name in names
        },
        store_schema=False,
    )


def read_metadata(storage: Storage, path: str) -> Any:
    """The metadata in a file's footer.

    @raise OSError: the file cannot be read.
    @raise pyarrow.ArrowInvalid: it is no Parquet file.
    """
    with storage.open(path) as file:
        return pq.read_metadata(file)


def read_footer(storage: Storage, path: str) -> dict[str, Any] | None:
    """The manifest row in a file's footer; None if there is no such file, or none."""
    try:
        metadata = read_metadata(storage, path).metadata or {}
        row = json.loads(metadata[FOOTER_KEY.encode("ascii")])
    except (OSError, pa.ArrowInvalid, KeyError, ValueError):
        return None
    return row if isinstance(row, dict) else None


def file_checksum(storage: Storage, path: str) -> tuple[int, int]:
    """A file's size and its CRC-32C."""
    size = crc = 0
    with storage.open(path) as file:
        while data := file.read(READ_SIZE):
            size += len(data)
            crc = crc32c(data, crc)
    return size, crc


def check_file(storage: Storage, row: dict[str, Any]) -> None:
    """See that a file is there and has the rows that its manifest row says.

    @raise FileMismatch: it has not, in one sentence.
    """
    try:
        size = storage.size(row["path"])
        footer = read_metadata(storage, row["path"])
    except (OSError, pa.ArrowInvalid) as error:
        raise FileMismatch(f"{row['path']} cannot be read: {error}") from None
    if size != row["bytes"]:
        raise FileMismatch(f"{row['path']} has {size} bytes, not {row['bytes']}")
    if footer.num_rows != row["rows"]:
        raise FileMismatch(
            f"{row['path']} has {footer.num_rows} rows, not {row['rows']}"
        )
    parts = row_parts(row)
    for part in parts:
        missing = sum(hole["until"] - hole["from"] for hole in part["holes"])
        missing += part["filtered"]
        if part["rows"] != part["until"] - part["from"] - missing:
            raise FileMismatch(
                f"{row['path']} has {part['rows']} rows for the offsets from "
                f"{part['from']} to {part['until']}"
            )
    if row["rows"] != sum(part["rows"] for part in parts):
        raise FileMismatch(f"{row['path']} has more or fewer rows than its ranges")
    bounds = offset_bounds(footer)
    is_whole = row["rows"] == sum(part["until"] - part["from"] for part in parts)
    if bounds is not None and len(parts) == 1 and is_whole:
        expected = (parts[0]["from"], parts[0]["until"] - 1)
        if bounds != expected:
            raise FileMismatch(
                f"{row['path']} holds the offsets {bounds[0]} to {bounds[1]}, not "
                f"{expected[0]} to {expected[1]}"
            )


def offset_bounds(footer: Any) -> tuple[int, int] | None:
    """The smallest and the largest queue offset in a file, by its statistics."""
    found = []
    for group in range(footer.num_row_groups):
        columns = footer.row_group(group)
        for number in range(columns.num_columns):
            column = columns.column(number)
            if column.path_in_schema == "queueOffset" and column.is_stats_set:
                found.append(column.statistics)
    if not found:
        return None
    return min(each.min for each in found), max(each.max for each in found)
