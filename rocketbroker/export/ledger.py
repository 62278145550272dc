# -*- test-case-name: tests.export.test_ledger -*-
"""The records of an export in its directory: C{ROOT/_rocketbroker/}.

    ==================  ========================================================
    lease.json          held by the run that writes here; says which that is
    job.json            where the messages come from
    plans/N.json        what run N writes, put there before any data
    commits/N.json      what run N has written; the only truth
    progress/           how far the tasks of a run are; gone after it
    ==================  ========================================================

A plan without a commit is I{pending}: its run died somewhere between, and the next run
carries it out again, to the same files with the same rows. A commit is put there once
and never changed. No file here ends in C{.parquet}. C{docs/facts/spark.md 8}.
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
    check_version,
    ends_json,
    plan_bytes,
    read_ends,
    read_plan,
)
from rocketbroker.export.storage import Lease, Storage
from rocketbroker.ranges.ranges import Queue

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

    def pending(self) -> Plan | None:
        """The plan of a run that died, if there is one.

        @raise StoreError: it cannot be read.
        """
        number = max(self._numbers("plans"), default=0)
        if number <= self.last_commit():
            return None
        path = self._path("plans", number)
        try:
            return read_plan(self._storage.read(path))
        except ValueError as error:
            raise self._damaged(path, error) from None

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
        """Put a plan there; its number must be the next one."""
        assert self._lease is not None
        assert plan.number == self.last_commit() + 1
        self._lease.check()
        self._storage.put(self._path("plans", plan.number), plan_bytes(plan))

    def commit(
        self,
        plan: Plan,
        rows: list[dict[str, Any]],
        ends: Mapping[Queue, End],
        done_ms: int,
    ) -> None:
        """Say that a plan has been carried out.

        @param rows: the manifest rows of its files.
        @param ends: up to where each queue of each topic is exported now.
        @param done_ms: the time.
        @raise StoreError: there is such a commit already.
        """
        assert self._lease is not None
        tree = {
            "version": VERSION,
            "number": plan.number,
            "topic": plan.topic,
            "done": done_ms,
            "rows": sum(row["rows"] for row in rows),
            "files": rows,
            "ends": ends_json(ends),
        }
        path = self._path("commits", plan.number)
        self._lease.check()
        try:
            self._storage.put_new(path, json.dumps(tree, indent=1).encode("utf-8"))
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

    def set_origin(self, origin: str) -> None:
        """Remember where the messages here come from."""
        tree = {"version": VERSION, "origin": origin}
        self._storage.put(f"{FOLDER}/job.json", json.dumps(tree).encode("utf-8"))

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
