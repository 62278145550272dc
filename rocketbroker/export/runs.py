# -*- test-case-name: tests.export.test_runs -*-
"""One run of an export: lease, and of each topic plan, copies, commit.

Nothing counts before the commit. A run that dies anywhere leaves at most a plan and
some files of it; the next one carries out that plan again, into the same files, before
it makes a new one. So every message is in the committed files once. See
C{docs/facts/spark.md 8}.

Topics are exported one after the other, each with plans and commits of its own. One
that cannot be exported stops none of the others.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, TypeVar, cast, final

import attrs

from rocketbroker.errors import ConfigurationError, RocketbrokerError
from rocketbroker.export.copying import CopyJobs
from rocketbroker.export.error_text import sentence
from rocketbroker.export.execution import Execution
from rocketbroker.export.ledger import Ledger
from rocketbroker.export.parquet import FileMismatch
from rocketbroker.export.plan_check import (
    as_planned,
    check_job,
    check_plan,
    source_of,
    unreadable,
)
from rocketbroker.export.planning import TARGET_BYTES, make_plan
from rocketbroker.export.plans import Plan, PlanSource, row_parts
from rocketbroker.export.progress import Display
from rocketbroker.export.sizes import planning_options
from rocketbroker.export.storage import Storage
from rocketbroker.records.malformed import Malformed
from rocketbroker.sources.open_source import open_origin
from rocketbroker.sources.options import ReadOptions, named_queues
from rocketbroker.sources.resolving import wanted_topics
from rocketbroker.sources.source import CountMismatch, DataLoss, Origin

Given = TypeVar("Given")

# Exit statuses.
DONE: Final = 0
FAILED: Final = 1
NOTHING_NEW: Final = 3
DATA_LOSS: Final = 4
VERIFY_FAILED: Final = 5

#: From the best to the worst: a run of several topics has that of the worst.
STATUSES: Final = (NOTHING_NEW, DONE, FAILED, DATA_LOSS, VERIFY_FAILED)


@attrs.frozen
class Job:
    """What to export.

    @ivar options: where from, which topics, and how.
    @ivar target: how large a file becomes, about.
    @ivar tasks: how many files are written at once.
    """

    options: ReadOptions
    target: int = TARGET_BYTES
    tasks: int = 1


@final
class ExportRuns:
    """Runs of one job, one or many, one after the other.

    Between them nothing is held but what L{CopyJobs} has: no lease, no connection. Its
    owner closes that.

    @ivar statuses: of the last run the status of each topic, as far as it came.
    """

    def __init__(
        self,
        storage: Storage,
        copying: CopyJobs,
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
        self._execution = Execution(storage, copying, display)
        self.statuses: dict[str, int] = {}

    def run(self) -> int:
        """Export what there is when it begins; may be called again.

        @return: the exit status.
        @raise KeyboardInterrupt: it was interrupted; C{CopyJobs} is abandoned.
        """
        self.statuses = {}
        return self._guarded(self._leased)

    def _leased(self) -> int:
        self._ledger.take_lease({"host": socket.gethostname(), "pid": os.getpid()})
        try:
            return self._under_lease()
        except KeyboardInterrupt:
            # In the middle of a call Spark can only be left: its JVM ends with us.
            self._copying.abandon()
            raise
        finally:
            self._ledger.release()

    def _under_lease(self) -> int:
        origin = self._origins(planning_options(self._job.options))
        try:
            topics = wanted_topics(origin, self._job.options)
            check_named_topics(self._job.options, topics)
            for topic in topics:
                more = {"topic": topic} if len(topics) > 1 else {}
                export = partial(self._export, origin, topic)
                self.statuses[topic] = self._guarded(export, **more)
        finally:
            origin.close()
        return worst(self.statuses.values())

    def _guarded(self, act: Callable[[], int], **more: object) -> int:
        """The status of an act; what fails is said.

        @param more: what else to say then.
        """
        say = self._display.say
        try:
            return act()
        except (DataLoss, CountMismatch, Malformed) as error:
            say("data loss", **more, reason=error)
            return DATA_LOSS
        except FileMismatch as error:
            say("verify failed", **more, reason=error)
            return VERIFY_FAILED
        except (RocketbrokerError, OSError) as error:
            say("failed", **more, reason=sentence(error))
            return FAILED

    def _export(self, origin: Origin, topic: str) -> int:
        """Export one topic: what was left unfinished, then what is new."""
        options = self._options(topic)
        left = self._ledger.pending().get(topic)
        if left is not None:
            self._display.say("replaying", plan=left.number, topic=topic)
            check_plan(origin, options, left, self._storage.address)
            self._carry_out(left, as_planned(options, left))
        plan = self._new_plan(origin, options, topic)
        if plan is not None:
            self._carry_out(plan, options)
        elif left is None:
            self._display.say("nothing new", topic=topic)
        self._name_unreadable(origin, options, topic)
        done = [each for each in (left, plan) if each and (each.rows or each.lost)]
        return DONE if done else NOTHING_NEW

    def _options(self, topic: str) -> ReadOptions:
        """How one topic is read."""
        options = self._job.options
        return attrs.evolve(
            options,
            topics=(topic,),
            pattern="",
            assigned=tuple(each for each in options.assigned if each.topic == topic),
            starting=(
                () if options.starting_times else of_topic(options.starting, topic)
            ),
            ending=of_topic(options.ending, topic),
            starting_times=of_topic(options.starting_times, topic),
            ending_times=of_topic(options.ending_times, topic),
        )

    def _carry_out(self, plan: Plan, options: ReadOptions) -> None:
        """Carry out a plan and commit it."""
        began = self._wall_ms()
        rows = self._execution.carry_out(plan, options)
        now = self._wall_ms()
        number = self._ledger.commit(plan, rows, now)
        self._summary(plan, rows, number, max(1, now - began))

    def _new_plan(
        self, origin: Origin, options: ReadOptions, topic: str
    ) -> Plan | None:
        ledger, ends = self._ledger, self._ledger.ends()
        here = source_of(origin, options, topic)
        if not here.brokers:
            raise ConfigurationError(
                f"{topic} may not be read: its permission or its number of read "
                "queues does not let anybody"
            )
        known = ledger.sources().get(topic, PlanSource())
        check_job(self._storage.address, topic, known, here, ends)
        number, now = ledger.next_number(), self._wall_ms()
        job = self._job
        plan = make_plan(origin, options, ends, number, now, job.target, job.tasks)
        if plan is not None:
            ledger.add_source(topic, here)
            ledger.write_plan(plan)
            for gone in plan.lost:
                self._display.say("lost", messages=gone.gone.size, range=gone.gone)
        return plan

    def _name_unreadable(
        self, origin: Origin, options: ReadOptions, topic: str
    ) -> None:
        """Tell of what the topic has that could not be exported.

        @raise DataLoss: there is something, and nobody has allowed that.
        """
        behind, gone = unreadable(origin, topic, self._ledger.ends())
        for queue in gone:
            self._display.say("not there now", queue=queue)
        if options.assigned:
            behind = [each for each in behind if each.queue in options.assigned]
        for wanted in behind:
            self._display.say("cannot be read", messages=wanted.size, range=wanted)
        if behind and options.fail_on_data_loss:
            count = sum(wanted.size for wanted in behind)
            raise DataLoss(
                f"{topic} has {count} messages in queues that cannot be read now: give "
                "it its read queues or its permission back, or export its store's "
                "files (--store); --allow-data-loss leaves them out"
            )

    def _summary(
        self, plan: Plan, rows: list[dict[str, Any]], number: int, took_ms: int
    ) -> None:
        count = sum(row["rows"] for row in rows)
        filtered = sum(part["filtered"] for row in rows for part in row_parts(row))
        more = {"filtered": filtered} if filtered else {}
        self._display.say(
            "exported",
            rows=count,
            expected=plan.rows,
            missing=plan.rows - count - filtered,
            **more,
            files=len(rows),
            bytes=sum(row["bytes"] for row in rows),
            undecodable=sum(row["decodeErrors"] for row in rows),
            rows_per_second=round(count * 1000 / took_ms),
            seconds=round(took_ms / 1000, 1),
            commit=number,
            topic=plan.topic,
        )


def of_topic(given: Given, topic: str) -> Given:
    """What an option gives by name for the queues of one topic; all else as it is."""
    if not isinstance(given, tuple):
        return given
    # mypy: a tuple stays one of the same kind.
    found: Any = tuple(pair for pair in given if pair[0].topic == topic)
    return cast(Given, found)


def check_named_topics(options: ReadOptions, topics: Iterable[str]) -> None:
    """See that options name only topics that are exported.

    @raise ConfigurationError: they name others.
    """
    for name, queues in named_queues(options):
        for queue in queues:
            if queue.topic not in topics:
                raise ConfigurationError(
                    f"{name} names topic {queue.topic!r}, which is not exported"
                )


def worst(statuses: Iterable[int]) -> int:
    """The exit status of a run whose topics have these."""
    return max(statuses, key=STATUSES.index, default=NOTHING_NEW)
