"""The tasks of an export as Spark's processes call them, without Spark."""

from __future__ import annotations

import errno
import os
import pickle
from typing import Any

import attrs
import pyarrow.parquet as pq
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import ConfigurationError, ConnectionLost
from rocketbroker.export.copying import Copier, CopyFailed, Report, copy, file_columns
from rocketbroker.export.parquet import crc32c
from rocketbroker.export.plans import FileTask
from rocketbroker.export.progress import Done, read_reports
from rocketbroker.export.storage import DirectoryStorage
from rocketbroker.files.disk import Disk
from rocketbroker.records.batches import encode
from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.ranges import Queue, Range
from rocketbroker.testing.files import MemoryDisk
from tests.sources.messages import START_MS, stored
from tests.sources.origins import MemoryOrigin

QUEUE = Queue("T", "b", 0)
TASK = FileTask("T/dt=1/hour=2/x.zstd.parquet", (Range(QUEUE, 3, 13),))
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

    def copy(self, task: FileTask = TASK, **words: Any) -> dict[str, Any]:
        """Copy the file."""
        options = ReadOptions(name_server="n:1", topics=("T",), **words)
        report = Report(os.path.join(self.root, "missing", "0.json"))
        storage = DirectoryStorage(Disk(), os.path.abspath(self.root))
        return copy(self.origin, storage, task, options, report)

    def test_row(self) -> None:
        """The manifest row says what is in the file."""
        row = self.copy()
        bodies = b"".join(b"%d" % n for n in range(3, 13))
        self.assertEqual(row["rows"], 10)
        (part,) = row["ranges"]
        self.assertEqual((part["from"], part["until"]), (3, 13))
        self.assertEqual(part["first"]["storeTimestamp"], START_MS + 4)
        self.assertEqual(part["last"]["storeTimestamp"], START_MS + 13)
        self.assertEqual(part["last"]["offset"], 12)
        self.assertEqual(row["bodyDigest"], crc32c(bodies))
        self.assertEqual((row["decodeErrors"], part["holes"]), (0, []))
        size = os.stat(os.path.join(self.root, TASK.path)).st_size
        self.assertEqual(row["bytes"], size)

    def test_batches(self) -> None:
        """Messages of a batch are rows like others, also if a file begins within it;
        rows and digests are those of the same messages alone."""
        task = attrs.evolve(TASK, wanted=(Range(QUEUE, 7, 13),))
        plain = self.copy(task)
        parts = [(0, b"%d" % n, b"TAGS\1t\2") for n in range(5, 10)]
        batch = stored(5, encode(parts), sys_flag=0xC0)
        self.origin.records = dict.fromkeys(range(5, 10), batch)
        found = self.copy(attrs.evolve(task, path="T/dt=1/hour=2/y.zstd.parquet"))
        for name in ("rows", "bodyDigest"):
            self.assertEqual(found[name], plain[name])
        (one,), (other,) = plain["ranges"], found["ranges"]
        self.assertEqual(one["queueDigest"], other["queueDigest"])
        table = pq.read_table(os.path.join(self.folder, "y.zstd.parquet"))
        self.assertEqual(table.column("queueOffset").to_pylist(), [*range(7, 13)])

    def test_columns(self) -> None:
        """A file has the columns that were chosen, and those that checks need."""
        whole = self.copy()
        row = self.copy(select=("tags", "topic"))
        names = ["topic", "brokerName", "queueId", "queueOffset", "tags", "bodyCRC"]
        self.assertEqual(row["columns"], names)
        path = os.path.join(self.root, TASK.path)
        self.assertEqual(pq.read_schema(path).names, names)
        self.assertEqual(row["bodyDigest"], 0)
        self.assertEqual(row["ranges"], whole["ranges"])
        # A file of the same run is taken, one with other columns is not.
        before = os.stat(path).st_ino
        self.assertEqual(self.copy(select=("topic", "tags")), row)
        self.assertEqual(os.stat(path).st_ino, before)
        self.assertEqual(self.copy(), whole)
        self.assertIn("body", pq.read_schema(path).names)

    def test_noSuchColumns(self) -> None:
        """Columns that do not exist, or are not RocketMQ's, are refused."""
        for words in ({"select": ("bdy",)}, {"columns": "kafka"}):
            options = attrs.evolve(OPTIONS, **words)
            self.assertRaises(ConfigurationError, file_columns, options)

    def test_severalRanges(self) -> None:
        """A file may have messages of several queues, one queue after the other."""
        other = Queue("T", "broker-c", 1)
        self.origin = MemoryOrigin({QUEUE: 20, other: 5})
        task = attrs.evolve(TASK, wanted=(Range(QUEUE, 3, 6), Range(other, 0, 2)))
        row = self.copy(task)
        self.assertEqual([part["rows"] for part in row["ranges"]], [3, 2])
        table = pq.read_table(os.path.join(self.root, task.path), partitioning=None)
        self.assertEqual(table["queueOffset"].to_pylist(), [3, 4, 5, 0, 1])
        self.assertEqual(table["brokerName"][4].as_py(), "broker-c")
        self.assertEqual(self.copy(task), row)
        self.assertEqual(self.copy()["ranges"][0]["rows"], 10)

    def test_sameBytes(self) -> None:
        """The bytes of a file depend on the messages, not on how they come."""
        found = set()
        task = attrs.evolve(TASK, group_rows=4)
        for step in (1, 3, 20):
            self.origin.step = step
            row = self.copy(task)
            os.remove(os.path.join(self.root, task.path))
            found.add((row["bytes"], row["fileCrc32c"]))
        self.assertEqual(len(found), 1)

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
        self.assertEqual(self.copy()["failure"], "loss")
        self.origin.records[7] = b"garbage"
        self.assertEqual(self.copy()["failure"], "loss")
        self.assertEqual(os.listdir(self.folder), [])

    def test_holes(self) -> None:
        """What was gone is in the row, if that is allowed."""
        self.origin.first[QUEUE] = 5
        row = self.copy(fail_on_data_loss=False)
        hole = {"from": 3, "until": 5, "reason": "deleted"}
        self.assertEqual((row["rows"], row["ranges"][0]["holes"]), (8, [hole]))

    def test_connection(self) -> None:
        """A failure that another attempt may cure is Spark's to retry."""
        self.origin = BrokenOrigin({QUEUE: 20})
        self.assertRaises(ConnectionLost, self.copy)
        self.assertEqual(os.listdir(self.folder), [])


class CopierTests(SynchronousTestCase):
    """L{Copier}."""

    def setUp(self) -> None:
        """Two queues, one of which has lost messages, and three files."""
        self.storage = DirectoryStorage(Disk(), os.path.abspath(self.mktemp()))
        other = Queue("T", "b", 1)
        self.origin = MemoryOrigin({QUEUE: 20, other: 20})
        self.origin.first[other] = 5
        ranges = (Range(QUEUE, 0, 4), Range(other, 0, 10), Range(QUEUE, 4, 9))
        self.files = [
            FileTask(f"T/d/h/{n}", (wanted,)) for n, wanted in enumerate(ranges)
        ]

    def copier(self, **words: Any) -> Copier:
        """A copier of files here."""
        return Copier(self.storage, OPTIONS, origins=lambda _: self.origin, **words)

    def test_rows(self) -> None:
        """There is a row for each file, up to a failure."""
        rows = self.copier()((0, self.files[::2]))
        self.assertEqual([row["rows"] for row in rows], [4, 5])
        rows = self.copier()((0, self.files))
        self.assertEqual([row.get("failure") for row in rows], [None, "loss"])

    def test_progress(self) -> None:
        """How far it is stands in a file, and finished files are tallied."""
        folder = self.mktemp()
        os.makedirs(folder)
        tally = Sum()
        self.copier(progress=folder, tally=tally)((3, self.files[::2]))
        self.assertEqual(os.listdir(folder), ["3.json"])
        self.assertEqual(tally.all, [4, 5])
        self.assertEqual(read_reports(folder)[::2], (9, 2))

    def test_failed(self) -> None:
        """What another attempt may cure is one sentence that names the file."""
        self.origin = BrokenOrigin({QUEUE: 20})
        files = [FileTask("T/d/h/x", (Range(QUEUE, 3, 13),))]
        error = self.assertRaises(CopyFailed, self.copier(), (0, files))
        self.assertEqual(str(error), f"{self.storage.address}/T/d/h/x: gone")

    def test_fullDisk(self) -> None:
        """A full disk is such a case."""
        disk = MemoryDisk()
        self.storage = DirectoryStorage(disk, "/lake")
        disk.fail("pwrite", errno.ENOSPC)
        error = self.assertRaises(CopyFailed, self.copier(), (0, self.files))
        self.assertEqual(str(error), "/lake/T/d/h/0: No space left on device")
        self.assertEqual(disk.list("/lake/T/d/h"), [])

    def test_pickled(self) -> None:
        """It can be sent to a task."""
        there = pickle.loads(pickle.dumps(Copier(self.storage, OPTIONS, "p")))
        self.assertEqual((there.options, there.progress), (OPTIONS, "p"))
        self.assertEqual(there.storage.address, self.storage.address)


class Sum:
    """Provides C{Tally}.

    @ivar all: the rows of each file.
    """

    def __init__(self) -> None:
        self.all: list[int] = []

    def add(self, term: Done) -> None:
        """See C{Tally}."""
        self.all.append(term.rows)


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
        self.assertEqual(read_reports(self.mktemp()), Done(0, 0, 0))
