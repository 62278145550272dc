# -*- test-case-name: tests.export.test_copying -*-
"""The copy lane: tasks that read ranges and write their own Parquet files.

Rows that go from Python through the JVM into Spark's own Parquet writer cost three
times as much as writing them where they are (C{docs/facts/spark.md 1}). So a task gets
files of a plan and copies them, with the reader and decoder of the data source
C{rocketmq}, and what it gives back are manifest rows, one for each file.

A failure that another attempt cannot cure (messages gone, counts wrong) is a row too:
Spark shall not try it four times and bury the reason in a trace of the JVM. Any other
is one sentence, for the same reason.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, final

import attrs

from rocketbroker.errors import ConfigurationError, RocketbrokerError
from rocketbroker.export.error_text import sentence
from rocketbroker.export.plans import (
    FileTask,
    Mark,
    hole_json,
    mark_json,
    queue_json,
    queue_range,
    row_parts,
)
from rocketbroker.export.progress import Done
from rocketbroker.export.storage import Storage
from rocketbroker.sources.open_source import shared_origin
from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.source import Origin

if TYPE_CHECKING:
    from rocketbroker.arrow.columns import Columns
    from rocketbroker.arrow.decoding import Decoder
    from rocketbroker.export.parquet import ParquetFile
    from rocketbroker.sources.ranges import Range

#: Which columns files have, and in which form; a new number for each change.
SCHEMA_ID: Final = 1

#: Columns that all files have, whatever is chosen: which message a row is, and what
#: C{queueDigest} covers.
ALWAYS: Final = ("brokerName", "queueId", "queueOffset", "bodyCRC")

#: A task says this often how far it is.
REPORT_SECONDS: Final = 0.2

#: Failures that no other attempt cures, as they stand in rows.
LOSS: Final = "loss"
MISMATCH: Final = "mismatch"


class CopyFailed(RocketbrokerError):
    """A file could not be copied; another attempt may succeed. One sentence."""


@final
@attrs.frozen
class Copier:
    """What a task does; picklable.

    @ivar storage: where the files go.
    @ivar options: where the messages come from, and how they are read.
    @ivar progress: a directory of this machine for how far tasks are; empty: none.
    @ivar tally: gets how much each finished file is.
    @ivar origins: opens where the messages come from.
    """

    storage: Storage
    options: ReadOptions
    progress: str = ""
    tally: Tally | None = None
    origins: Callable[[ReadOptions], Origin] = shared_origin

    def __call__(self, task: tuple[int, Sequence[FileTask]]) -> list[dict[str, Any]]:
        """Copy files.

        @param task: its number, and its files.
        @return: a manifest row for each; where there is a failure, up to it.
        @raise CopyFailed: another attempt may succeed.
        """
        number, files = task
        path = os.path.join(self.progress, f"{number}.json")
        report = Report(path if self.progress else "")
        rows = []
        for file in files:
            try:
                origin = self.origins(self.options)
                row = copy(origin, self.storage, file, self.options, report)
            except Exception as error:
                where = self.storage.where(file.path)
                raise CopyFailed(f"{where}: {sentence(error)}") from error
            report.file_done(row.get("bytes", 0))
            rows.append(row)
            if "failure" in row:
                break
            if self.tally is not None:
                self.tally.add(Done(row["rows"], row["bytes"], 1))
        return rows


class Tally(Protocol):
    """Sums up."""

    def add(self, term: Done) -> None:
        """Add to the sum."""


class CopyJobs(Protocol):
    """Carries out copies: Spark, or the double of the tests."""

    def run(
        self, storage: Storage, options: ReadOptions, files: Sequence[FileTask]
    ) -> list[dict[str, Any]]:
        """Copy files; their manifest rows, or those of failures.

        @raise JobFailed: another run may succeed.
        """

    def done(self) -> Done:
        """How much of it is done; asked by another thread."""

    def abandon(self) -> None:
        """Leave what was started to itself: the process has been interrupted."""

    def close(self) -> None:
        """Stop what was started."""


class JobFailed(RocketbrokerError):
    """A plan could not be carried out; another run may. One sentence."""


@final
class Report:
    """How far a task is, in a small file that the driver reads now and then."""

    def __init__(
        self, path: str, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """
        @param path: the file; empty for none.
        """
        self._path = path
        self._monotonic = monotonic
        self._due = 0.0
        self._files = 0
        self._rows = 0
        self._bytes = 0
        self._written = 0

    def more(self, rows: int, written: int) -> None:
        """Rows have been copied.

        @param written: how large the current file has become.
        """
        self._rows += rows
        self._written = written
        if self._monotonic() >= self._due:
            self._write()

    def file_done(self, size: int) -> None:
        """A file has got its name, and this size."""
        self._files += 1
        self._bytes += size
        self._written = 0
        self._write()

    def _write(self) -> None:
        """Nobody depends on it: a directory that is gone stops no task."""
        words = [self._rows, self._bytes + self._written, self._files]
        if not self._path:
            return
        try:
            with open(self._path + ".tmp", "w", encoding="ascii") as file:
                json.dump(words, file)
            os.replace(self._path + ".tmp", self._path)
        except OSError:
            return
        self._due = self._monotonic() + REPORT_SECONDS


def copy(
    origin: Origin,
    storage: Storage,
    task: FileTask,
    options: ReadOptions,
    report: Report,
) -> dict[str, Any]:
    """Copy the messages of one file; its manifest row, or that of its failure."""
    from rocketbroker.export.parquet import FileMismatch
    from rocketbroker.records.malformed import Malformed
    from rocketbroker.sources.source import CountMismatch, DataLoss

    try:
        row = finished_row(storage, task, options)
        if row is None:
            row = write_file(origin, storage, task, options, report)
        else:
            report.more(row["rows"], row["bytes"])
    except (DataLoss, CountMismatch, Malformed) as error:
        return {"path": task.path, "failure": LOSS, "reason": str(error)}
    except FileMismatch as error:
        return {"path": task.path, "failure": MISMATCH, "reason": str(error)}
    return row


def finished_row(
    storage: Storage, task: FileTask, options: ReadOptions
) -> dict[str, Any] | None:
    """The manifest row of a file that a run which died has finished, None if none."""
    from rocketbroker.export.parquet import (
        FileMismatch,
        check_file,
        file_checksum,
        read_footer,
    )

    storage.remove_drafts(task.path)
    row = read_footer(storage, task.path)
    if row is None or not is_of(row, task, options):
        return None
    size, crc = file_checksum(storage, task.path)
    row = {**row, "bytes": size, "fileCrc32c": crc}
    try:
        check_file(storage, row)
    except (FileMismatch, KeyError, TypeError):
        return None
    return row


def file_columns(options: ReadOptions) -> Columns:
    """The columns of an export's files: those chosen and L{ALWAYS}, in usual order.

    @raise ConfigurationError: one does not exist, or is not RocketMQ's own.
    """
    from rocketbroker.arrow.columns import NATIVE, columns_of

    if options.columns != "native":
        raise ConfigurationError("an export has RocketMQ's own columns, not Kafka's")
    wanted = {*columns_of(options), *ALWAYS}
    return {name: column for name, column in NATIVE.items() if name in wanted}


def identity(task: FileTask, options: ReadOptions) -> dict[str, Any]:
    """The identity of a file; it names its columns and its filter if there are any."""
    from rocketbroker.export.filtering import filter_json

    chosen = {"columns": list(file_columns(options))} if options.select else {}
    return {
        **chosen,
        **filter_json(options),
        "path": task.path,
        "topic": task.wanted[0].queue.topic,
        "groupRows": task.group_rows,
        "schema": SCHEMA_ID,
    }


def is_of(row: Mapping[str, Any], task: FileTask, options: ReadOptions) -> bool:
    """Whether a manifest row is that of a file, with the same ranges and columns."""
    wanted = {"columns": None, "filter": None, **identity(task, options)}
    return all(row.get(name) == value for name, value in wanted.items()) and [
        queue_range(task.wanted[0].queue.topic, part) for part in row_parts(row)
    ] == list(task.wanted)


def write_file(
    origin: Origin,
    storage: Storage,
    task: FileTask,
    options: ReadOptions,
    report: Report,
) -> dict[str, Any]:
    """Read the messages of one file and write it.

    @return: its manifest row. C{queueDigest} of a range covers queue offset (u64) and
        CRC of the stored body (u32) of each message, big-endian; C{bodyDigest} the
        bodies as they are in the file, one after the other; 0 if they are not.
    @raise DataLoss: messages are gone.
    @raise CountMismatch: they are not those that the range must have.
    """
    from rocketbroker.arrow.columns import arrow_schema
    from rocketbroker.arrow.decoding import Decoder
    from rocketbroker.export.parquet import ParquetFile

    columns = file_columns(options)
    decoders = [
        Decoder(columns, wanted.queue.broker, options.decompress)
        for wanted in task.wanted
    ]
    file = ParquetFile(storage, task.path, arrow_schema(columns), task.group_rows)
    body_digest = 0
    parts: list[dict[str, Any]] = []
    try:
        for wanted, decoder in zip(task.wanted, decoders, strict=True):
            part, body_digest = write_range(
                origin, wanted, decoder, options, file, body_digest, report
            )
            parts.append(part)
        row = {
            **identity(task, options),
            "rows": sum(part["rows"] for part in parts),
            "ranges": parts,
            "bodyDigest": body_digest,
            "decodeErrors": sum(decoder.undecodable for decoder in decoders),
        }
        size, crc = file.finish(row)
    except BaseException:
        file.abandon()
        raise
    return {**row, "bytes": size, "fileCrc32c": crc}


def write_range(
    origin: Origin,
    wanted: Range,
    decoder: Decoder,
    options: ReadOptions,
    file: ParquetFile,
    body_digest: int,
    report: Report,
) -> tuple[dict[str, Any], int]:
    """Read the messages of one range and write them into a file.

    @param body_digest: that of the bodies before.
    @return: the range's entry in the manifest row, and the digest with its bodies.
    """
    import numpy as np

    from rocketbroker.arrow.binary_arrays import values_and_offsets
    from rocketbroker.export.filtering import WantedReader
    from rocketbroker.export.parquet import crc32c
    from rocketbroker.export.queue_identity import mark_of

    reader = WantedReader(origin, wanted, options)
    digest = np.dtype([("offset", ">u8"), ("crc", ">u4")])
    queue_digest = 0
    names = list(file_columns(options))
    first: Mark | None = None
    last: Mark | None = None
    whole = None
    for whole, layout in reader.layouts():
        first = first or mark_of(whole, 0, wanted.queue.broker)
        words = np.empty(layout.size, digest)
        words["offset"] = layout.front["queue_offset"]
        words["crc"] = layout.front["body_crc"]
        queue_digest = crc32c(words.tobytes(), queue_digest)
        for batch in decoder.batches(layout):
            if "body" in names:
                bodies, _ = values_and_offsets(batch.column("body"))
                body_digest = crc32c(bodies, body_digest)
            file.write(batch)
        report.more(whole.size, file.size)
    if whole is not None:
        last = mark_of(whole, whole.size - 1, wanted.queue.broker)
    filtered = {"filtered": reader.filtered} if options.filtered else {}
    part = {
        **queue_json(wanted),
        "rows": reader.rows,
        **filtered,
        "first": mark_json(first) if first else None,
        "last": mark_json(last) if last else None,
        "queueDigest": queue_digest,
        "holes": [hole_json(hole) for hole in reader.holes],
    }
    return part, body_digest
