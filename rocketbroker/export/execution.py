# -*- test-case-name: tests.export.test_runs -*-
"""Carrying out one plan: its tasks, and what they give back, verified."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, Final, final

from rocketbroker.export.copying import LOSS, CopyJobs
from rocketbroker.export.parquet import FileMismatch, check_file
from rocketbroker.export.plans import Plan, cover_problem, queue_range, row_parts
from rocketbroker.export.progress import Display, Done
from rocketbroker.export.storage import Storage
from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.source import DataLoss

#: How often the bar moves.
LOOK_SECONDS: Final = 0.2


@final
class Execution:
    """Plans are carried out here, one after the other."""

    def __init__(self, storage: Storage, copying: CopyJobs, display: Display) -> None:
        self._storage = storage
        self._copying = copying
        self._display = display

    def carry_out(self, plan: Plan, options: ReadOptions) -> list[dict[str, Any]]:
        """The manifest rows of the plan's files, in order, verified.

        @param options: how the topic of the plan is read.
        @raise DataLoss: messages of the plan are gone.
        @raise FileMismatch: what was written is not what the plan wants.
        """
        self._display.say(
            "exporting",
            plan=plan.number,
            topic=plan.topic,
            messages=plan.rows,
            queues=len(plan.ranges),
            files=len(plan.files),
        )
        if not plan.files:
            return []
        with self._shown(plan) as last:
            rows = self._copying.run(self._storage, options, plan.files)
            last.append(done_of(rows))
        rows.sort(key=lambda row: str(row["path"]))
        self._verify(plan, rows)
        return rows

    @contextmanager
    def _shown(self, plan: Plan) -> Iterator[list[Done]]:
        """Show how far the tasks are, in a thread, and what is appended at the end.

        The job has the main thread, so that an interrupt ends it.
        """
        display = self._display
        over = Event()
        last: list[Done] = []

        def look() -> None:
            while not over.wait(LOOK_SECONDS):
                display.show(self._copying.done())

        display.start(plan.rows, len(plan.files))
        watcher = Thread(target=look, name="progress", daemon=True)
        watcher.start()
        try:
            yield last
        finally:
            over.set()
            watcher.join()
            for done in last:
                display.show(done)
            display.stop()

    def _verify(self, plan: Plan, rows: list[dict[str, Any]]) -> None:
        """See that the written files are those of the plan.

        @raise DataLoss: messages of the plan are gone.
        @raise FileMismatch: they are not.
        """
        for row in rows:
            if row.get("failure") == LOSS:
                raise DataLoss(row["reason"])
            if "failure" in row:
                raise FileMismatch(f"{row['path']}: {row['reason']}")
        written = [row["path"] for row in rows]
        if written != sorted(task.path for task in plan.files):
            raise FileMismatch("the files written are not those of the plan")
        covered = [
            queue_range(plan.topic, part) for row in rows for part in row_parts(row)
        ]
        problem = cover_problem(plan.ranges, covered)
        if problem is not None:
            raise FileMismatch(problem)
        for row in rows:
            check_file(self._storage, row)


def done_of(rows: list[dict[str, Any]]) -> Done:
    """How much these rows are."""
    whole = [row for row in rows if "failure" not in row]
    return Done(
        sum(row["rows"] for row in whole),
        sum(row["bytes"] for row in whole),
        len(whole),
    )
