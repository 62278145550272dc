"""An export without Spark: an origin in memory, tasks in this process."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from typing import Any

import pyarrow.parquet as pq

from rocketbroker.export.copying import Report, copy
from rocketbroker.export.plans import FileTask
from rocketbroker.export.progress import Done, LineDisplay
from rocketbroker.export.runs import ExportRuns, Job
from rocketbroker.export.storage import DirectoryStorage, Storage
from rocketbroker.files.disk import Disk
from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.ranges import Queue
from rocketbroker.sources.source import Origin
from tests.sources.origins import MemoryOrigin

ZERO, ONE = Queue("T", "broker-a", 0), Queue("T", "broker-a", 1)


class Died(Exception):
    """The process is gone."""


class LocalCopying:
    """Provides C{CopyJobs}: carries out plans here.

    @ivar die_after: it dies after so many files; None: never.
    @ivar interrupt: it is interrupted at once.
    @ivar copied: the paths that it was asked for, in order.
    """

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.die_after: int | None = None
        self.copied: list[str] = []
        self.closed = 0
        self.abandoned = self.interrupt = False

    def run(
        self, storage: Storage, options: ReadOptions, files: Sequence[FileTask]
    ) -> list[dict[str, Any]]:
        """See C{CopyJobs}."""
        report = Report("", lambda: 0.0)
        if self.interrupt:
            raise KeyboardInterrupt
        rows = []
        for number, task in enumerate(files):
            if number == self.die_after:
                raise Died
            self.copied.append(task.path)
            rows.append(copy(self.origin, storage, task, options, report))
        if self.die_after is not None:
            raise Died
        return rows

    def done(self) -> Done:
        """See C{CopyJobs}."""
        return Done(0, 0, 0)

    def abandon(self) -> None:
        """See C{CopyJobs}."""
        self.abandoned = True

    def close(self) -> None:
        """See C{CopyJobs}."""
        self.closed += 1


class World:
    """An export directory and what is exported into it.

    @ivar out: what was shown.
    """

    def __init__(self, root: str, ends: dict[Queue, int]) -> None:
        self.root = os.path.abspath(root)
        self.origin = MemoryOrigin(ends)
        self.storage = DirectoryStorage(Disk(), self.root)
        self.copying = LocalCopying(self.origin)
        self.out = io.StringIO()

    def run(self, target: int = 10**9, **words: Any) -> int:
        """One run; its exit status."""
        return self.job(target, **words).run()

    def job(self, target: int = 10**9, **words: Any) -> ExportRuns:
        """A run that has not begun."""
        place: dict[str, Any] = {} if "store" in words else {"name_server": "n:1"}
        if not words.keys() & {"topics", "pattern", "assigned"}:
            words["topics"] = ("T",)
        options = ReadOptions(**place, **words)
        return ExportRuns(
            self.storage,
            self.copying,
            LineDisplay(self.out, lambda: 0.0),
            lambda: 1_700_000_000_000,
            Job(options, target),
            lambda options: self.origin,
        )

    def files(self) -> list[str]:
        """The Parquet files, by path."""
        return sorted(
            os.path.relpath(os.path.join(folder, name), self.root)
            for folder, _, names in os.walk(self.root)
            for name in names
            if name.endswith(".parquet")
        )

    def rows(self) -> list[tuple[int, int, bytes]]:
        """Queue, offset and body of each row of all files, sorted."""
        found: list[tuple[int, int, bytes]] = []
        for path in self.files():
            table = pq.read_table(
                os.path.join(self.root, path), partitioning=None
            ).to_pydict()
            found += zip(
                table["queueId"], table["queueOffset"], table["body"], strict=True
            )
        return sorted(found)

    def expected(self) -> list[tuple[int, int, bytes]]:
        """The same of what is in the queues."""
        return sorted(
            (queue.queue_id, offset, b"%d" % offset)
            for queue, end in self.origin.ends.items()
            for offset in range(self.origin.first[queue], end)
        )
