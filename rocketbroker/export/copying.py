# -*- test-case-name: tests.export.test_copying -*-
"""The copy lane: Spark tasks that read ranges and write their own Parquet files.

Rows that go from Python through the JVM into Spark's own Parquet writer cost three
times as much as writing them where they are (C{docs/facts/spark.md 1}). So the
partitions of this data source are files of a plan; reading a partition copies them,
with the reader and decoder of the data source C{rocketmq}, and what Spark gets are
manifest rows, one for each file, as JSON.

A failure that another attempt cannot cure (messages gone, counts wrong) is a row too:
Spark shall not try it four times and bury the reason in a trace of the JVM.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, final

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from rocketbroker.export.plans import FileTask, groups, read_plan
from rocketbroker.spark.columns import NATIVE
from rocketbroker.spark.options import ReadOptions, parse_options

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from rocketbroker.spark.origins import Origin

#: Options of this source; all others are those of C{rocketmq}.
ROOT: Final = "root"
PLAN: Final = "plan"
TASKS: Final = "tasks"
PROGRESS: Final = "progress"

#: Which columns files have, and in which form; a new number for each change.
SCHEMA_ID: Final = 1

#: A task says this often how far it is.
REPORT_SECONDS: Final = 0.2

#: Failures that no other attempt cures, as they stand in rows.
LOSS: Final = "loss"
MISMATCH: Final = "mismatch"


@final
class CopyPartition(InputPartition):
    """The files that one task writes.

    @ivar value: number of the task and its files.
    """

    def __init__(self, number: int, files: list[FileTask]) -> None:
        super().__init__((number, files))


class CopySource(DataSource):
    """The data source C{format("rocketmq_export")}, internal to the export."""

    @classmethod
    def name(cls) -> str:
        """See C{DataSource.name}."""
        return "rocketmq_export"

    def schema(self) -> str:
        """See C{DataSource.schema}."""
        return "row string"

    def reader(self, schema: StructType) -> DataSourceReader:
        """See C{DataSource.reader}."""
        given = {name.lower(): value for name, value in self.options.items()}
        own = {name: given.pop(name) for name in (ROOT, PLAN, TASKS, PROGRESS)}
        return CopyReader(parse_options(given), own)


class CopyReader(DataSourceReader):
    """Carries out a plan.

    @ivar options: how to read.
    """

    def __init__(self, options: ReadOptions, own: dict[str, str]) -> None:
        self.options = options
        self._own = own

    def partitions(self) -> list[InputPartition]:
        """See C{DataSourceReader.partitions}."""
        with open(self._own[PLAN], "rb") as file:
            plan = read_plan(file.read())
        tasks = groups(plan.files, int(self._own[TASKS]))
        return [CopyPartition(number, files) for number, files in enumerate(tasks)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """See C{DataSourceReader.read}: one row for each file that was written."""
        import pyarrow as pa

        from rocketbroker.spark.open_origins import shared_origin

        if partition.value is None:
            return
        number, files = partition.value
        report = Report(os.path.join(self._own[PROGRESS], f"{number}.json"))
        origin = shared_origin(self.options)
        for task in files:
            row = copy(origin, self._own[ROOT], task, self.options, report)
            report.file_done(row.get("bytes", 0))
            yield pa.record_batch({"row": [json.dumps(row)]})
            if "failure" in row:
                return


@final
class Report:
    """How far a task is, in a small file that the driver reads now and then."""

    def __init__(
        self, path: str, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
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
        try:
            with open(self._path + ".tmp", "w", encoding="ascii") as file:
                json.dump(words, file)
            os.replace(self._path + ".tmp", self._path)
        except OSError:
            return
        self._due = self._monotonic() + REPORT_SECONDS


def copy(
    origin: Origin, root: str, task: FileTask, options: ReadOptions, report: Report
) -> dict[str, Any]:
    """Copy the messages of one file; its manifest row, or that of its failure."""
    from rocketbroker.export.parquet import FileMismatch
    from rocketbroker.records.malformed import Malformed
    from rocketbroker.spark.origins import CountMismatch, DataLoss

    try:
        row = finished_row(root, task)
        if row is None:
            row = write_file(origin, root, task, options, report)
        else:
            report.more(row["rows"], row["bytes"])
    except DataLoss as error:
        return {"path": task.path, "failure": LOSS, "reason": str(error)}
    except (CountMismatch, Malformed, FileMismatch) as error:
        return {"path": task.path, "failure": MISMATCH, "reason": str(error)}
    return row


def finished_row(root: str, task: FileTask) -> dict[str, Any] | None:
    """The manifest row of a file that a run which died has finished, None if none."""
    from rocketbroker.export.parquet import (
        FileMismatch,
        check_file,
        file_checksum,
        read_footer,
        remove_drafts,
    )

    path = os.path.join(root, task.path)
    remove_drafts(path)
    row = read_footer(path)
    if row is None or not row.items() >= identity(task).items():
        return None
    size, crc = file_checksum(path)
    row = {**row, "bytes": size, "fileCrc32c": crc}
    try:
        check_file(root, row)
    except (FileMismatch, KeyError, TypeError):
        return None
    return row


def identity(task: FileTask) -> dict[str, Any]:
    """The identity of a file."""
    queue = task.wanted.queue
    return {
        "path": task.path,
        "topic": queue.topic,
        "brokerName": queue.broker,
        "queueId": queue.queue_id,
        "from": task.wanted.start,
        "until": task.wanted.until,
        "schema": SCHEMA_ID,
    }


def write_file(
    origin: Origin, root: str, task: FileTask, options: ReadOptions, report: Report
) -> dict[str, Any]:
    """Read the messages of one file and write it.

    @return: its manifest row. C{queueDigest} covers queue offset (u64) and CRC of the
        stored body (u32) of each message, big-endian; C{bodyDigest} the bodies as they
        are in the file, one after the other.
    @raise DataLoss: messages are gone.
    @raise CountMismatch: they are not those that the range must have.
    """
    import numpy as np

    from rocketbroker.export.checksums import crc32c
    from rocketbroker.export.parquet import ParquetFile
    from rocketbroker.spark.decoding import Decoder
    from rocketbroker.spark.gathering import values_and_offsets
    from rocketbroker.spark.reading import RangeReader

    decoder = Decoder(tuple(NATIVE), task.wanted.queue.broker, options.decompress)
    reader = RangeReader(origin, task.wanted, options)
    file = ParquetFile(os.path.join(root, task.path), decoder.schema)
    digest = np.dtype([("offset", ">u8"), ("crc", ">u4")])
    queue_digest = body_digest = 0
    times: list[int] = []
    last_id = ""
    try:
        for layout in reader.layouts():
            words = np.empty(layout.size, digest)
            words["offset"] = layout.front["queue_offset"]
            words["crc"] = layout.front["body_crc"]
            queue_digest = crc32c(words.tobytes(), queue_digest)
            times = [*times[:1], int(layout.store_ms[0]), int(layout.store_ms[-1])]
            for batch in decoder.batches(layout):
                bodies, _ = values_and_offsets(batch.column("body"))
                body_digest = crc32c(bodies, body_digest)
                last_id = batch.column("msgId")[-1].as_py()
                file.write(batch)
            report.more(layout.size, file.size)
        row = {
            **identity(task),
            "rows": reader.rows,
            "firstStoreTimestamp": times[0] if times else -1,
            "lastStoreTimestamp": times[-1] if times else -1,
            "lastMsgId": last_id,
            "queueDigest": queue_digest,
            "bodyDigest": body_digest,
            "decodeErrors": decoder.undecodable,
            "holes": [[hole.start, hole.until] for hole in reader.holes],
        }
        size, crc = file.finish(row)
    except BaseException:
        file.abandon()
        raise
    return {**row, "bytes": size, "fileCrc32c": crc}
