"""The tasks of an export as Spark's processes call them, without Spark."""

from __future__ import annotations

import os
import pickle
from typing import Any

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import ConnectionLost
from rocketbroker.export.checksums import crc32c
from rocketbroker.export.copying import CopyReader, CopySource, Report, copy
from rocketbroker.export.plans import FileTask, Plan, plan_bytes
from rocketbroker.export.progress import Done, read_reports
from rocketbroker.spark.options import ReadOptions
from rocketbroker.spark.ranges import Queue, Range
from tests.spark.messages import START_MS
from tests.spark.origins import MemoryOrigin

QUEUE = Queue("T", "b", 0)
TASK = FileTask("T/dt=1/hour=2/x.zstd.parquet", Range(QUEUE, 3, 13))
OPTIONS = ReadOptions(name_server="n:1", topics=("T",))


class BrokenOrigin(MemoryOrigin):
    """Loses its connection."""

    def message(self, queue: Queue, number: int) -> bytes:
        """See L{MemoryOrigin}."""
        if number == 9:
            raise ConnectionLost("gone")
        return super().message(queue, number)


class CopyTests(SynchronousTestCase):
    """L{copy}."""

    def setUp(self) -> None:
        """A queue and a directory."""
        self.root = self.mktemp()
        self.folder = os.path.join(self.root, "T", "dt=1", "hour=2")
        self.origin = MemoryOrigin({QUEUE: 20})

    def copy(self, **words: Any) -> dict[str, Any]:
        """Copy the file."""
        options = ReadOptions(name_server="n:1", topics=("T",), **words)
        report = Report(os.path.join(self.root, "missing", "0.json"))
        return copy(self.origin, self.root, TASK, options, report)

    def test_row(self) -> None:
        """The manifest row says what is in the file."""
        row = self.copy()
        bodies = b"".join(b"%d" % n for n in range(3, 13))
        self.assertEqual(row["rows"], 10)
        self.assertEqual((row["from"], row["until"]), (3, 13))
        self.assertEqual(row["firstStoreTimestamp"], START_MS + 4)
        self.assertEqual(row["lastStoreTimestamp"], START_MS + 13)
        self.assertEqual(row["bodyDigest"], crc32c(bodies))
        self.assertEqual((row["decodeErrors"], row["holes"]), (0, []))
        size = os.stat(os.path.join(self.root, TASK.path)).st_size
        self.assertEqual(row["bytes"], size)

    def test_again(self) -> None:
        """The same file has the same row, written or found."""
        first = self.copy()
        self.assertEqual(self.copy(), first)
        os.remove(os.path.join(self.root, TASK.path))
        self.assertEqual(self.copy(), first)

    def test_failures(self) -> None:
        """What no other attempt cures is a row, and leaves no file."""
        self.origin.first[QUEUE] = 5
        self.assertEqual(self.copy()["failure"], "loss")
        self.origin.first[QUEUE] = 0
        self.origin.records[7] = b""
        self.assertEqual(self.copy()["failure"], "mismatch")
        self.origin.records[7] = b"garbage"
        self.assertEqual(self.copy()["failure"], "mismatch")
        self.assertEqual(os.listdir(self.folder), [])

    def test_holes(self) -> None:
        """What was gone is in the row, if that is allowed."""
        self.origin.first[QUEUE] = 5
        row = self.copy(fail_on_data_loss=False)
        self.assertEqual((row["rows"], row["holes"]), (8, [[3, 5]]))

    def test_connection(self) -> None:
        """A failure that another attempt may cure is Spark's to retry."""
        self.origin = BrokenOrigin({QUEUE: 20})
        self.assertRaises(ConnectionLost, self.copy)
        self.assertEqual(os.listdir(self.folder), [])


class SourceTests(SynchronousTestCase):
    """L{CopySource}."""

    def setUp(self) -> None:
        """A plan in a file."""
        self.path = self.mktemp()
        files = tuple(FileTask(f"T/d/h/{n}", Range(QUEUE, n, n + 1)) for n in range(5))
        with open(self.path, "wb") as file:
            file.write(plan_bytes(Plan(1, "T", 0, (Range(QUEUE, 0, 5),), files)))
        given = {"nameServer": "n:1", "subscribe": "T", "root": "r"}
        given |= {"plan": self.path, "tasks": "2", "PROGRESS": "p"}
        reader = CopySource(given).reader(StructType())
        assert isinstance(reader, CopyReader)
        self.reader = reader

    def test_partitions(self) -> None:
        """The files of the plan are shared out to the tasks."""
        self.assertEqual(CopySource.name(), "rocketmq_export")
        partitions = self.reader.partitions()
        self.assertEqual([len(p.value[1]) for p in partitions], [3, 2])
        self.assertEqual(pickle.loads(pickle.dumps(self.reader)).options, OPTIONS)

    def test_noPartition(self) -> None:
        """Spark reads one partition without a value where there are none."""
        self.assertEqual(list(self.reader.read(InputPartition(None))), [])


class ReportTests(SynchronousTestCase):
    """L{Report} and L{read_reports}."""

    def test_report(self) -> None:
        """Rows, bytes and files of all tasks are added up."""
        folder = self.mktemp()
        os.makedirs(folder)
        now = [0.0]
        one = Report(os.path.join(folder, "1.json"), lambda: now[0])
        two = Report(os.path.join(folder, "2.json"), lambda: now[0])
        one.more(10, 100)
        two.more(1, 1)
        self.assertEqual(read_reports(folder), Done(11, 101, 0))
        one.more(5, 150)
        self.assertEqual(read_reports(folder), Done(11, 101, 0))
        one.file_done(160)
        self.assertEqual(read_reports(folder), Done(16, 161, 1))
        now[0] = 1.0
        one.more(1, 7)
        self.assertEqual(read_reports(folder), Done(17, 168, 1))

    def test_damaged(self) -> None:
        """What is no report is passed over."""
        folder = self.mktemp()
        os.makedirs(folder)
        for number, text in enumerate(("", "[1]", '{"a": 1}', "[1, 2, 3]")):
            with open(os.path.join(folder, f"{number}.json"), "w") as file:
                file.write(text)
        self.assertEqual(read_reports(folder), Done(1, 2, 3))
