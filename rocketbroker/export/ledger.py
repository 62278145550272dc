# -*- test-case-name: tests.export.test_ledger -*-
"""The records of an export in its directory: C{ROOT/_rocketbroker/}.

Its files::

    ==================  ========================================================
    lease.json          held by the run that writes here; says which that is
    job.json            where the messages come from: clusters and brokers of topics
    plans/N.json        what is to be written, put there before any data
    commits/N.json      what was written; the only truth
    ==================  ========================================================

A plan without a commit of its number is I{pending}: its run died somewhere between, or
could not go on, and the next run of its topic carries it out again, to the same files
with the same rows. Other topics go on meanwhile.

The last commit says up to where all queues of all topics are exported, so commits stand
in the order in which they were made. A plan that others have overtaken gets the next
number when it is committed; behind that, its own number is closed with a commit of
nothing, as that of a plan that is dropped. So commits are numbered without gaps, but
for plans that are pending. A commit is put there once and never changed. No file here
ends in C{.parquet}. C{docs/facts/spark.md 8}.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, final

from rocketbroker.errors import StoreError
from rocketbroker.export.plans import (
    VERSION,
    End,
    Plan,
    PlanSource,
    check_version,
    ends_json,
    lost_json,
    new_ends,
    plan_bytes,
    read_ends,
    read_plan,
)
from rocketbroker.export.storage import Lease, Storage
from rocketbroker.sources.ranges import Queue

FOLDER: Final = "_rocketbroker"


@final
class Ledger:
    """The ledger of one export."""

    def __init__(self, storage: Storage) -> None:
        """
        @param storage: where the export lies.
        """
        self._storage = storage
        self._lease: Lease | None = None

    def take_lease(self, holder: Mapping[str, Any]) -> None:
        """Become the only writer here.

        @param holder: the name of the writer, for people.
        @raise ConfigurationError: see L{Storage.take_lease}.
        """
        self._lease = self._storage.take_lease(f"{FOLDER}/lease.json", holder)

    def release(self) -> None:
        """Give the lease back; idempotent."""
        if self._lease is not None:
            self._lease.release()
            self._lease = None

    def last_commit(self) -> int:
        """The number of the last run that was committed, 0 for none."""
        return max(self._numbers("commits"), default=0)

    def next_number(self) -> int:
        """The number of the next plan: higher than that of any plan or commit."""
        return max([*self._numbers("plans"), self.last_commit()], default=0) + 1

    def pending(self) -> dict[str, Plan]:
        """The plans that were not carried out, by topic.

        What died after its commit, and before its own number was closed, is closed.

        @raise StoreError: one cannot be read.
        """
        ends = self.ends()
        found: dict[str, Plan] = {}
        for number in sorted({*self._numbers("plans")} - {*self._numbers("commits")}):
            path = self._path("plans", number)
            try:
                plan = read_plan(self._storage.read(path))
            except ValueError as error:
                raise self._damaged(path, error) from None
            if is_done(plan, ends) and self._lease is not None:
                self._close(plan, {"carriedOut": True}, plan.made_ms)
            elif not is_done(plan, ends):
                found[plan.topic] = plan
        return found

    def ends(self) -> dict[Queue, End]:
        """Up to where each queue is exported.

        @raise StoreError: the last commit cannot be read.
        """
        number = self.last_commit()
        if number == 0:
            return {}
        path = self._path("commits", number)
        try:
            tree = json.loads(self._storage.read(path))
            check_version(tree)
            return read_ends(tree["ends"])
        except (ValueError, KeyError) as error:
            raise self._damaged(path, error) from None

    def write_plan(self, plan: Plan) -> None:
        """Put a plan there; its number must be L{next_number}."""
        assert self._lease is not None
        assert plan.number == self.next_number()
        self._lease.check()
        self._storage.put(self._path("plans", plan.number), plan_bytes(plan))

    def commit(self, plan: Plan, rows: list[dict[str, Any]], done_ms: int) -> int:
        """Say that a plan has been carried out.

        @param rows: the manifest rows of its files.
        @param done_ms: the time.
        @return: the number of the commit.
        @raise StoreError: there is such a commit already.
        """
        number = plan.number
        if number < self.last_commit():
            number = self.next_number()
        tree = {
            "number": number,
            "plan": plan.number,
            "topic": plan.topic,
            "made": plan.made_ms,
            "done": done_ms,
            "rows": sum(row["rows"] for row in rows),
            "lost": lost_json(plan.lost),
            "files": rows,
            "ends": ends_json(new_ends(self.ends(), plan, rows)),
        }
        self._put_commit(number, tree)
        if number != plan.number:
            self._close(plan, {"carriedOut": number}, done_ms)
        return number

    def abandon(self, plan: Plan, done_ms: int) -> None:
        """Drop a pending plan: its files first, then the ledger says so.

        @param done_ms: the time.
        @raise StoreError: it is not pending any more.
        """
        assert self._lease is not None
        self._lease.check()
        for task in plan.files:
            self._storage.remove_drafts(task.path)
            self._storage.remove(task.path)
        self._close(plan, {"abandoned": True}, done_ms)

    def _close(self, plan: Plan, why: Mapping[str, Any], done_ms: int) -> None:
        """Put a commit of nothing in the place of a plan."""
        tree = {
            "number": plan.number,
            "topic": plan.topic,
            "made": plan.made_ms,
            "done": done_ms,
            **why,
            "rows": 0,
            "lost": [],
            "files": [],
            "ends": ends_json(self.ends()),
        }
        self._put_commit(plan.number, tree)

    def _put_commit(self, number: int, tree: Mapping[str, Any]) -> None:
        assert self._lease is not None
        self._lease.check()
        text = json.dumps({"version": VERSION, **tree}, indent=1)
        try:
            self._storage.put_new(self._path("commits", number), text.encode("utf-8"))
        except FileExistsError as error:
            raise StoreError(str(error)) from None

    def origin(self) -> str | None:
        """Where the messages here come from, None if nothing was exported yet."""
        path = f"{FOLDER}/job.json"
        if not self._storage.exists(path):
            return None
        try:
            return str(json.loads(self._storage.read(path))["origin"])
        except (ValueError, KeyError, TypeError) as error:
            raise self._damaged(path, error) from None

    def sources(self) -> dict[str, PlanSource]:
        """Where each topic has come from so far.

        Version 1 does not know topics; its kind is that of all.
        """
        path = f"{FOLDER}/job.json"
        if not self._storage.exists(path):
            return {}
        try:
            tree = json.loads(self._storage.read(path))
            check_version(tree)
            topics = dict.fromkeys((queue.topic for queue in self.ends()), tree)
            topics.update(tree.get("topics", {}))
            return {
                str(topic): PlanSource(
                    str(each.get("origin", tree["origin"])),
                    tuple(map(str, each.get("clusters", ()))),
                    tuple(map(str, each.get("brokers", ()))),
                )
                for topic, each in topics.items()
            }
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._damaged(path, error) from None

    def add_source(self, topic: str, source: PlanSource) -> None:
        """Remember where a topic comes from, beside where it has come from."""
        known = self.sources()
        before = known.get(topic, PlanSource(source.kind))
        known[topic] = PlanSource(
            before.kind,
            tuple(sorted({*before.clusters, *source.clusters})),
            tuple(sorted({*before.brokers, *source.brokers})),
        )
        if known[topic] == before and topic in self.sources():
            return
        tree = {
            "version": VERSION,
            "origin": self.origin() or source.kind,
            "topics": {
                topic: {
                    "origin": each.kind,
                    "clusters": each.clusters,
                    "brokers": each.brokers,
                }
                for topic, each in sorted(known.items())
            },
        }
        assert self._lease is not None
        self._lease.check()
        text = json.dumps(tree, indent=1)
        self._storage.put(f"{FOLDER}/job.json", text.encode("utf-8"))

    def _path(self, kind: str, number: int) -> str:
        return f"{FOLDER}/{kind}/{number:08d}.json"

    def _numbers(self, kind: str) -> list[int]:
        return [
            int(name.removesuffix(".json"))
            for name in self._storage.list(f"{FOLDER}/{kind}")
            if name.endswith(".json") and name.removesuffix(".json").isdecimal()
        ]

    def _damaged(self, path: str, error: Exception) -> StoreError:
        return StoreError(f"{self._storage.where(path)}: {error}")


def is_done(plan: Plan, ends: Mapping[Queue, End]) -> bool:
    """Whether all that a plan covers is exported."""
    covered = [*plan.ranges, *(each.gone for each in plan.lost)]
    return all(
        wanted.queue in ends and ends[wanted.queue].offset >= wanted.until
        for wanted in covered
    )
