# -*- test-case-name: tests.integration.test_export -*-
"""Spark as what carries out plans: the one module of the export that needs it.

Spark is a scheduler here: it gives each task some files, and gets manifest rows back.
Where the tasks are on this machine, they write how far they are into small files;
elsewhere Spark tells what the tasks that ended have done.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, final

import attrs

from rocketbroker.export.copying import Copier, JobFailed
from rocketbroker.export.plans import FileTask, groups
from rocketbroker.export.progress import Done, read_reports
from rocketbroker.export.storage import Storage
from rocketbroker.sources.options import ReadOptions
from rocketbroker.spark.sessions import end_of_jvm, reason, start_context

#: Tasks for each core: enough to even out, few enough that their start costs little.
TASKS_PER_CORE: Final = 3

#: The JVM closes its connections before it is gone.
LAST_SECONDS: Final = 5.0

#: What a frame of tasks gives back.
ROWS_SCHEMA: Final = "rows string"

Tasks = list[tuple[int, list[FileTask]]]
Rows = list[dict[str, Any]]


@final
class SparkCopyJobs:
    """Provides L{CopyJobs<rocketbroker.export.copying.CopyJobs>}: a Spark of our own.

    It starts with the first plan, and again if its JVM is gone.
    """

    def __init__(
        self,
        cores: int,
        log: str,
        master: str = "",
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """
        @param cores: how many tasks run at once, where no master says otherwise.
        @param log: a file for what Spark has to say.
        @param master: Spark's; empty for this process.
        @param settings: of Spark's, which go before ours.
        """
        self._cores = cores
        self._log = log
        self._master = master or f"local[{cores}]"
        self._settings = settings or {}
        self._context: Any = None
        self._work: Work | None = None

    def run(
        self, storage: Storage, options: ReadOptions, files: Sequence[FileTask]
    ) -> Rows:
        """See L{CopyJobs.run}."""
        if self._context is not None and end_of_jvm(self._context._gateway) is not None:
            self._context = None
        if self._context is None:
            self._context = start_context(
                "rocketbroker export", self._master, self._settings, self._log
            )
        # A cluster shares out the files itself; its cores come and go.
        is_local = self._master.startswith("local")
        most = self._cores * TASKS_PER_CORE if is_local else len(files)
        self._work = Work(storage, options, files, most, is_local)
        try:
            return self._work.by_context(self._context)
        except Exception as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> JobFailed:
        end = end_of_jvm(self._context._gateway, LAST_SECONDS)
        said = reason(error) if end is None else f"the Java process of Spark {end}"
        return JobFailed(f"{said}; {self._log} says more")

    def done(self) -> Done:
        """See L{CopyJobs.done}."""
        return Done(0, 0, 0) if self._work is None else self._work.done()

    def abandon(self) -> None:
        """See L{CopyJobs.abandon}: the JVM ends with us."""
        self._context = None

    def close(self) -> None:
        """See L{CopyJobs.close}."""
        context, self._context = self._context, None
        if context is not None and end_of_jvm(context._gateway) is None:
            context.stop()


@final
class SessionCopyJobs:
    """Provides L{CopyJobs<rocketbroker.export.copying.CopyJobs>}: somebody's session.

    A session of Spark Connect has no context, and gets a frame of tasks; any other may.
    """

    def __init__(self, session: Any, by_frame: bool | None = None) -> None:
        """
        @param session: C{SparkSession}, of this process or of Spark Connect. It is not
            stopped.
        @param by_frame: whether tasks go in a frame; None: if there is no other way.
        """
        self._session = session
        if by_frame is None:
            by_frame = context_of(session) is None
        self._by_frame = by_frame
        self._work: Work | None = None

    def run(
        self, storage: Storage, options: ReadOptions, files: Sequence[FileTask]
    ) -> Rows:
        """See L{CopyJobs.run}."""
        self._work = Work(storage, options, files, len(files), False)
        try:
            if self._by_frame:
                return self._work.by_frame(self._session)
            return self._work.by_context(context_of(self._session))
        except Exception as error:
            raise JobFailed(reason(error)) from error

    def done(self) -> Done:
        """See L{CopyJobs.done}."""
        return Done(0, 0, 0) if self._work is None else self._work.done()

    def abandon(self) -> None:
        """See L{CopyJobs.abandon}: its owner knows what becomes of it."""

    def close(self) -> None:
        """See L{CopyJobs.close}: it is its owner's."""


def context_of(session: Any) -> Any:
    """The context of a session; None if it has none, as with Spark Connect."""
    try:
        return session.sparkContext
    except Exception:
        # Spark Connect's own errors come only with its packages.
        return None


@final
class Work:
    """The files of one plan, shared out among tasks."""

    def __init__(
        self,
        storage: Storage,
        options: ReadOptions,
        files: Sequence[FileTask],
        most: int,
        is_here: bool,
    ) -> None:
        """
        @param most: so many tasks at most.
        @param is_here: whether tasks run on this machine.
        """
        if options.store:
            options = attrs.evolve(options, store=os.path.abspath(options.store))
        self._tasks: Tasks = list(enumerate(groups(files, most)))
        self._copier = Copier(storage, options)
        self._is_here = is_here
        self._folder = ""
        self._total: Any = None

    def by_context(self, context: Any) -> Rows:
        """Let a C{SparkContext} run the tasks; their rows."""
        copier = self._copier
        if self._is_here:
            self._folder = tempfile.mkdtemp(prefix="rocketbroker-progress-")
            copier = attrs.evolve(copier, progress=self._folder)
        else:
            self._total = context.accumulator(Done(0, 0, 0), done_sum())
            copier = attrs.evolve(copier, tally=self._total)
        try:
            tasks = context.parallelize(self._tasks, len(self._tasks))
            return [row for rows in tasks.map(copier).collect() for row in rows]
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def by_frame(self, session: Any) -> Rows:
        """Let a session run the tasks as a frame, one in each partition; their rows."""
        numbers = session.range(0, len(self._tasks), 1, len(self._tasks))
        copy = frame_copier(self._copier, self._tasks)
        found = numbers.mapInArrow(copy, ROWS_SCHEMA).collect()
        return [row for line in found for row in json.loads(line["rows"])]

    def done(self) -> Done:
        """How much is done, as far as it is known here."""
        if self._total is not None:
            done: Done = self._total.value
            return done
        return read_reports(self._folder)


def done_sum() -> Any:
    """How Spark adds up what tasks have done."""
    from pyspark import AccumulatorParam

    class DoneSum(AccumulatorParam):  # type: ignore[type-arg]  # PySpark's is generic
        """Sums of rows, bytes and files."""

        def zero(self, value: Done) -> Done:
            """Nothing."""
            return Done(0, 0, 0)

        def addInPlace(self, value1: Done, value2: Done) -> Done:
            """The sum."""
            return Done(*(a + b for a, b in zip(value1, value2, strict=True)))

    return DoneSum()


def frame_copier(
    copier: Copier, tasks: Tasks
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """What copies the files of the tasks whose numbers are in a frame.

    @return: from record batches with one column, the numbers, to such with the manifest
        rows as JSON.
    """

    def copy(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            for number in batch.column(0).to_pylist():
                text = json.dumps(copier(tasks[number]))
                yield pa.RecordBatch.from_pydict({"rows": [text]})

    return copy
