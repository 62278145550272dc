"""What Spark's processes do with the files of a plan, without Spark."""

from __future__ import annotations

import json
import os

import pyarrow as pa
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.export.copying import Copier
from rocketbroker.export.plans import FileTask
from rocketbroker.export.spark_jobs import frame_copier
from rocketbroker.export.storage import DirectoryStorage
from rocketbroker.files.disk import Disk
from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.ranges import Queue, Range
from tests.sources.origins import MemoryOrigin

QUEUE = Queue("T", "b", 0)


class FrameTests(SynchronousTestCase):
    """L{frame_copier}: a frame of tasks, for Spark Connect."""

    def test_copied(self) -> None:
        """Each number in a frame is a task, and a row of JSON comes of it."""
        storage = DirectoryStorage(Disk(), os.path.abspath(self.mktemp()))
        origin = MemoryOrigin({QUEUE: 20})
        options = ReadOptions(name_server="n", topics=("T",))
        copier = Copier(storage, options, origins=lambda _: origin)
        files = [
            FileTask(f"T/d/h/{n}", (Range(QUEUE, 5 * n, 5 * n + 5),)) for n in range(3)
        ]
        copy = frame_copier(copier, [(0, files[:2]), (1, files[2:])])
        numbers = [pa.RecordBatch.from_pydict({"id": [each]}) for each in (1, 0)]
        found = pa.Table.from_batches(copy(iter(numbers)))
        rows = [json.loads(text) for text in found["rows"].to_pylist()]
        paths = [[row["path"] for row in each] for each in rows]
        self.assertEqual(paths, [["T/d/h/2"], ["T/d/h/0", "T/d/h/1"]])
        self.assertEqual([row["rows"] for each in rows for row in each], [5, 5, 5])
