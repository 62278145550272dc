# -*- test-case-name: tests.integration.test_export -*-
"""Spark as what carries out plans: the one module of the export that needs it.

Spark is a scheduler here: it gives each task some files, and gets manifest rows back.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from typing import Any, Final, final

import attrs

from rocketbroker.export.copying import Copier, JobFailed
from rocketbroker.export.plans import FileTask, groups
from rocketbroker.export.progress import Done, read_reports
from rocketbroker.export.storage import Storage
from rocketbroker.ranges.options import ReadOptions
from rocketbroker.spark.sessions import end_of_jvm, reason, start_context

#: Tasks for each core: enough to even out, few enough that their start costs little.
TASKS_PER_CORE: Final = 3

#: The JVM closes its connections before it is gone.
LAST_SECONDS: Final = 5.0


@final
class SparkCopying:
    """Provides L{Copying<rocketbroker.export.copying.Copying>}.

    Spark starts with the first plan.
    """

    def __init__(self, cores: int, log: str) -> None:
        """
        @param log: a file for what Spark has to say.
        """
        self._cores = cores
        self._log = log
        self._context: Any = None
        self._progress = ""

    def run(
        self, storage: Storage, options: ReadOptions, files: Sequence[FileTask]
    ) -> list[dict[str, Any]]:
        """See L{Copying.run}."""
        if self._context is not None and end_of_jvm(self._context._gateway) is not None:
            self._context = None
        if self._context is None:
            self._context = start_context(
                "rocketbroker export", f"local[{self._cores}]", {}, self._log
            )
        self._progress = tempfile.mkdtemp(prefix="rocketbroker-progress-")
        if options.store:
            options = attrs.evolve(options, store=os.path.abspath(options.store))
        tasks = list(enumerate(groups(files, self._cores * TASKS_PER_CORE)))
        copier = Copier(storage, options, self._progress)
        try:
            lists = self._context.parallelize(tasks, len(tasks)).map(copier).collect()
        except Exception as error:
            raise self._failure(error) from error
        finally:
            shutil.rmtree(self._progress, ignore_errors=True)
        return [row for rows in lists for row in rows]

    def _failure(self, error: Exception) -> JobFailed:
        end = end_of_jvm(self._context._gateway, LAST_SECONDS)
        said = reason(error) if end is None else f"the Java process of Spark {end}"
        return JobFailed(f"{said}; {self._log} says more")

    def done(self) -> Done:
        """See L{Copying.done}."""
        return read_reports(self._progress)

    def abandon(self) -> None:
        """See L{Copying.abandon}: the JVM ends with us."""
        self._context = None

    def close(self) -> None:
        """See L{Copying.close}."""
        context, self._context = self._context, None
        if context is not None and end_of_jvm(context._gateway) is None:
            context.stop()
