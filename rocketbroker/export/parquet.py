# -*- test-case-name: tests.export.test_parquet -*-
"""One Parquet file: written under a private name, synced, renamed; and checked.

Until the rename nothing has the final name, so no file with that name is ever torn. The
footer carries the manifest row, so that a run which finds the file of one that died
need not write it again.
"""

from __future__ import annotations

import json
import os
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, final

import pyarrow as pa
import pyarrow.parquet as pq

from rocketbroker.errors import RocketbrokerError
from rocketbroker.export.checksums import crc32c

#: A group of rows is closed at this size; readers hold one in memory.
ROW_GROUP_BYTES: Final = 64 * 1024 * 1024

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

#: How much of a file is read at once.
READ_SIZE: Final = 8 * 1024 * 1024


class FileMismatch(RocketbrokerError):
    """A file has other content than it must have."""


@final
class Sink:
    """A file that counts and checks what is written to it.

    @ivar size: how many bytes.
    @ivar crc: their CRC-32C.
    """

    def __init__(self, path: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        self._handle = os.open(path, flags, 0o666)
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
        while rest:
            rest = rest[os.write(self._handle, rest) :]
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
        """Close it, wanted by nobody; idempotent."""
        if not self.closed:
            self.closed = True
            os.close(self._handle)

    def close(self) -> None:
        """Put everything on the disk; idempotent."""
        if not self.closed:
            self.closed = True
            try:
                os.fsync(self._handle)
            finally:
                os.close(self._handle)


@final
class ParquetFile:
    """A Parquet file that is being written.

    @ivar path: its final name.
    """

    def __init__(self, path: str, schema: Any) -> None:
        self.path = path
        folder, name = os.path.split(path)
        make_folder(folder)
        self._draft = os.path.join(folder, f".{name}.{uuid.uuid4().hex}.tmp")
        self._sink = Sink(self._draft)
        names = set(schema.names)
        self._writer = pq.ParquetWriter(
            pa.PythonFile(self._sink, "w"),
            schema,
            compression="zstd",
            compression_level=COMPRESSION_LEVEL,
            use_dictionary=[name for name in DICTIONARY if name in names],
            column_encoding={
                name: "DELTA_BINARY_PACKED" for name in DELTA if name in names
            },
            store_schema=False,
        )
        self._schema = schema
        self._batches: list[Any] = []
        self._bytes = 0

    @property
    def size(self) -> int:
        """How many bytes have been written so far."""
        return self._sink.size

    def write(self, batch: Any) -> None:
        """Add rows."""
        self._batches.append(batch)
        self._bytes += batch.nbytes
        if self._bytes >= ROW_GROUP_BYTES:
            self._write_group()

    def _write_group(self) -> None:
        if self._batches:
            table = pa.Table.from_batches(self._batches, self._schema)
            self._writer.write_table(table, row_group_size=max(1, len(table)))
            self._batches, self._bytes = [], 0

    def finish(self, footer: dict[str, Any]) -> tuple[int, int]:
        """Close it, put it on the disk and give it its name.

        @param footer: its description in the footer.
        @return: its size and its CRC-32C.
        """
        self._write_group()
        self._writer.add_key_value_metadata({FOOTER_KEY: json.dumps(footer)})
        self._writer.close()
        self._sink.close()
        os.replace(self._draft, self.path)
        sync_folder(os.path.dirname(self.path))
        return self._sink.size, self._sink.crc

    def abandon(self) -> None:
        """Remove the file."""
        self._batches = []
        self._sink.abandon()
        self._writer.close()
        with suppress(FileNotFoundError):
            os.remove(self._draft)


def make_folder(folder: str) -> None:
    """Make a directory and those above it, so that they outlive a loss of power."""
    above = os.path.dirname(folder)
    if above and not os.path.isdir(above):
        make_folder(above)
    try:
        os.mkdir(folder)
    except FileExistsError:
        return
    sync_folder(above or os.curdir)


def sync_folder(folder: str) -> None:
    """Put a directory's entries on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_drafts(path: str) -> int:
    """Remove the files that dead attempts left; return how many there were."""
    folder, name = os.path.split(path)
    left = [
        draft
        for draft in Path(folder).glob(".*.tmp")
        if draft.name.startswith(f".{name}.")
    ]
    for draft in left:
        draft.unlink(missing_ok=True)
    return len(left)


def read_footer(path: str) -> dict[str, Any] | None:
    """The manifest row in a file's footer; None if there is no such file, or none."""
    try:
        metadata = pq.read_metadata(path).metadata or {}
        row = json.loads(metadata[FOOTER_KEY.encode("ascii")])
    except (OSError, pa.ArrowInvalid, KeyError, ValueError):
        return None
    return row if isinstance(row, dict) else None


def file_checksum(path: str) -> tuple[int, int]:
    """A file's size and its CRC-32C."""
    size = crc = 0
    with open(path, "rb", buffering=0) as file:
        while data := file.read(READ_SIZE):
            size += len(data)
            crc = crc32c(data, crc)
    return size, crc


def check_file(root: str, row: dict[str, Any]) -> None:
    """See that a file is there and has the rows that its manifest row says.

    @raise FileMismatch: it has not, in one sentence.
    """
    path = os.path.join(root, row["path"])
    try:
        size = os.stat(path).st_size
        footer = pq.read_metadata(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise FileMismatch(f"{row['path']} cannot be read: {error}") from None
    if size != row["bytes"]:
        raise FileMismatch(f"{row['path']} has {size} bytes, not {row['bytes']}")
    if footer.num_rows != row["rows"]:
        raise FileMismatch(
            f"{row['path']} has {footer.num_rows} rows, not {row['rows']}"
        )
    missing = sum(until - start for start, until in row["holes"])
    if row["rows"] != row["until"] - row["from"] - missing:
        raise FileMismatch(
            f"{row['path']} has {row['rows']} rows for the offsets from "
            f"{row['from']} to {row['until']}"
        )
    bounds = offset_bounds(footer)
    if bounds is not None and not row["holes"]:
        expected = (row["from"], row["until"] - 1)
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
