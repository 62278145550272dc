# -*- test-case-name: tests.export.test_runs -*-
"""One run of an export: lease, plan, Spark job, verification, commit.

Nothing counts before the commit. A run that dies anywhere leaves at most a plan and
some files of it; the next one carries out that plan again, into the same files, before
it makes a new one. So every message is in the committed files once. See
C{docs/facts/spark.md 8}.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, Final, final

import attrs

from rocketbroker.errors import ConfigurationError, RocketbrokerError
from rocketbroker.export.copying import LOSS, Copying
from rocketbroker.export.ledger import Ledger
from rocketbroker.export.parquet import FileMismatch, check_file
from rocketbroker.export.planning import TARGET_BYTES, make_plan
from rocketbroker.export.plans import (
    End,
    Plan,
    cover_problem,
    new_ends,
    queue_range,
    row_parts,
)
from rocketbroker.export.progress import Display, Done
from rocketbroker.export.sentences import sentence
from rocketbroker.export.storage import Storage
from rocketbroker.ranges.open_origins import open_origin
from rocketbroker.ranges.options import ReadOptions
from rocketbroker.ranges.origins import DataLoss, Origin
from rocketbroker.ranges.ranges import Queue
from rocketbroker.records.malformed import Malformed

# Exit statuses.
DONE: Final = 0
FAILED: Final = 1
NOTHING_NEW: Final = 3
DATA_LOSS: Final = 4
VERIFY_FAILED: Final = 5

#: How often the bar moves.
LOOK_SECONDS: Final = 0.2


@attrs.frozen
class Job:
    """What to export.

    @ivar options: where from, and how; with exactly one topic.
    @ivar target: how large a file becomes, about.
    """

    options: ReadOptions
    target: int = TARGET_BYTES


@final
class Run:
    """One run."""

    def __init__(
        self,
        storage: Storage,
        copying: Copying,
        display: Display,
        wall_ms: Callable[[], int],
        job: Job,
        origins: Callable[[ReadOptions], Origin] = open_origin,
    ) -> None:
        self._storage = storage
        self._copying = copying
        self._display = display
        self._wall_ms = wall_ms
        self._job = job
        self._origins = origins
        self._ledger = Ledger(storage)

    def run(self) -> int:
        """Do it.

        @return: the exit status.
        """
        display = self._display
        try:
            self._ledger.take_lease({"host": socket.gethostname(), "pid": os.getpid()})
            try:
                return self._under_lease()
            except KeyboardInterrupt:
                # In the middle of a call Spark can only be left: its JVM ends with us.
                self._copying.abandon()
                raise
            finally:
                self._copying.close()
                self._ledger.release()
        except DataLoss as error:
            display.say("data loss", reason=error)
            return DATA_LOSS
        except (FileMismatch, Malformed) as error:
            display.say("verify failed", reason=error)
            return VERIFY_FAILED
        except (RocketbrokerError, OSError) as error:
            display.say("failed", reason=sentence(error))
            return FAILED

    def _under_lease(self) -> int:
        plan = self._ledger.pending()
        if plan is not None:
            self._display.say("replaying", plan=plan.number, topic=plan.topic)
        else:
            plan = self._new_plan()
        if plan is None:
            self._display.say("nothing new", topic=self._job.options.topics[0])
            return NOTHING_NEW
        began = self._wall_ms()
        rows = self._carry_out(plan)
        problem = self._verify(plan, rows)
        if problem is not None:
            self._display.say("verify failed", reason=problem)
            return VERIFY_FAILED
        ends = new_ends(self._ledger.ends(), plan, rows)
        now = self._wall_ms()
        self._ledger.commit(plan, rows, ends, now)
        self._summary(plan, rows, max(1, now - began))
        return DONE

    def _check_brokers(self, origin: Origin, ends: Mapping[Queue, End]) -> None:
        """See that the same messages are not exported under two brokers' names.

        A store's files do not say what their broker is called.

        @raise ConfigurationError: they would be.
        """
        job = self._job
        (topic,) = job.options.topics
        if self._ledger.origin() in (None, origin_kind(job)):
            return
        known = {queue.broker for queue in ends if queue.topic == topic}
        now = {queue.broker for queue in origin.queues(topic)}
        if known and not known & now:
            raise ConfigurationError(
                f"{self._storage.address} holds {topic} of "
                f"{', '.join(sorted(known))}, not of {', '.join(sorted(now))}; "
                "--broker-name says which broker a store is of"
            )

    def _new_plan(self) -> Plan | None:
        job = self._job
        origin = self._origins(job.options)
        try:
            ends = self._ledger.ends()
            self._check_brokers(origin, ends)
            self._warn_of_missing(origin, ends)
            number = self._ledger.last_commit() + 1
            now = self._wall_ms()
            plan = make_plan(origin, job.options, ends, number, now, job.target)
        finally:
            origin.close()
        if plan is not None:
            if self._ledger.origin() is None:
                self._ledger.set_origin(origin_kind(job))
            self._ledger.write_plan(plan)
            for gone in plan.lost:
                self._display.say("lost", messages=gone.gone.size, range=gone.gone)
        return plan

    def _warn_of_missing(self, origin: Origin, ends: Mapping[Queue, End]) -> None:
        (topic,) = self._job.options.topics
        there = set(origin.queues(topic))
        for queue in sorted(ends):
            if queue.topic == topic and queue not in there:
                self._display.say("not there now", queue=queue)

    def _carry_out(self, plan: Plan) -> list[dict[str, Any]]:
        """The manifest rows of the plan's files, in order."""
        self._display.say(
            "exporting",
            plan=plan.number,
            topic=plan.topic,
            messages=plan.rows,
            queues=len(plan.ranges),
            files=len(plan.files),
        )
        options = attrs.evolve(self._job.options, topics=(plan.topic,))
        with self._shown(plan) as last:
            rows = self._copying.run(self._storage, options, plan.files)
            last.append(done_of(rows))
        return sorted(rows, key=lambda row: str(row["path"]))

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

    def _verify(self, plan: Plan, rows: list[dict[str, Any]]) -> str | None:
        """A fault of the written files; None if there is none.

        @raise DataLoss: messages of the plan are gone.
        """
        for row in rows:
            if row.get("failure") == LOSS:
                raise DataLoss(row["reason"])
            if "failure" in row:
                return f"{row['path']}: {row['reason']}"
        written = [row["path"] for row in rows]
        if written != sorted(task.path for task in plan.files):
            return "the files written are not those of the plan"
        covered = [
            queue_range(plan.topic, part) for row in rows for part in row_parts(row)
        ]
        problem = cover_problem(plan.ranges, covered)
        if problem is not None:
            return problem
        for row in rows:
            try:
                check_file(self._storage, row)
            except FileMismatch as error:
                return str(error)
        return None

    def _summary(self, plan: Plan, rows: list[dict[str, Any]], took_ms: int) -> None:
        count = sum(row["rows"] for row in rows)
        self._display.say(
            "exported",
            rows=count,
            expected=plan.rows,
            missing=plan.rows - count,
            files=len(rows),
            bytes=sum(row["bytes"] for row in rows),
            undecodable=sum(row["decodeErrors"] for row in rows),
            rows_per_second=round(count * 1000 / took_ms),
            seconds=round(took_ms / 1000, 1),
            commit=plan.number,
        )


def origin_kind(job: Job) -> str:
    """Where the messages of a job come from, as a ledger says it."""
    return "store" if job.options.store else "nameServer"


def done_of(rows: list[dict[str, Any]]) -> Done:
    """How much these rows are."""
    whole = [row for row in rows if "failure" not in row]
    return Done(
        sum(row["rows"] for row in whole),
        sum(row["bytes"] for row in whole),
        len(whole),
    )
