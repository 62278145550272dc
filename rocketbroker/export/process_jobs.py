# -*- test-case-name: tests.integration.test_follow -*-
"""Processes of this machine as what carries out plans: an export without Spark.

They do what Spark's workers do, with the same L{Copier}, so the files are the same.
What they have over Spark on one machine, in numbers: L{rocketbroker.export.follow}.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Final, final

import attrs

from rocketbroker.export.copying import Copier, CopyFailed, JobFailed
from rocketbroker.export.plans import FileTask, groups
from rocketbroker.export.progress import Done, read_reports
from rocketbroker.export.storage import Storage
from rocketbroker.sources.options import ReadOptions

#: Tasks for each process: enough to even out.
TASKS_PER_PROCESS: Final = 3


def begin_worker() -> None:
    """Let a worker go by what its parent says, and end with it.

    A terminal and a service manager send their signals to all processes; which of them
    end, and when, is for the parent to decide.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end() -> None:
        parent.join()
        os._exit(1)

    # A parent that was killed closes nothing that the worker waits for.
    threading.Thread(target=end, name="parent", daemon=True).start()


@final
class ProcessCopyJobs:
    """Provides L{CopyJobs<rocketbroker.export.copying.CopyJobs>}.

    The processes start with the first plan, and stay.
    """

    def __init__(self, processes: int) -> None:
        """
        @param processes: how many work at once.
        """
        self._count = processes
        self._pool: ProcessPoolExecutor | None = None
        self._progress = ""

    def run(
        self, storage: Storage, options: ReadOptions, files: Sequence[FileTask]
    ) -> list[dict[str, Any]]:
        """See L{CopyJobs.run}."""
        if self._pool is None:
            # What is forked has pyarrow's threads no longer, but their locks.
            spawn = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self._count, spawn, begin_worker)
        self._progress = tempfile.mkdtemp(prefix="rocketbroker-progress-")
        if options.store:
            options = attrs.evolve(options, store=os.path.abspath(options.store))
        copier = Copier(storage, options, self._progress)
        try:
            tasks = enumerate(groups(files, self._count * TASKS_PER_PROCESS))
            futures = [self._pool.submit(copier, task) for task in tasks]
            wait(futures, return_when=FIRST_EXCEPTION)
            for future in futures:
                if future.done():
                    future.result()
            return [row for future in futures for row in future.result()]
        except BrokenProcessPool:
            self._kill()
            raise JobFailed("a process that copies was killed") from None
        except CopyFailed as error:
            # The others are in the middle of files that nobody will wait for.
            self._kill()
            raise JobFailed(str(error)) from error
        finally:
            shutil.rmtree(self._progress, ignore_errors=True)

    def done(self) -> Done:
        """See L{CopyJobs.done}."""
        return read_reports(self._progress)

    def abandon(self) -> None:
        """See L{CopyJobs.abandon}: what was being written has no name yet."""
        self._kill()

    def close(self) -> None:
        """See L{CopyJobs.close}; nothing is under way."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()

    def _kill(self) -> None:
        pool, self._pool = self._pool, None
        if pool is None:
            return
        # This program has no other children of this kind.
        for process in multiprocessing.active_children():
            process.kill()
        pool.shutdown(cancel_futures=True)
