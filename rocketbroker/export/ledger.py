# -*- test-case-name: tests.export.test_ledger -*-
"""The records of an export in its directory: C{ROOT/_rocketbroker/}.

    ==================  ========================================================
    lease.json          locked by the run that writes here; says which that is
    job.json            where the messages come from
    plans/N.json        what run N writes, put there before any data
    commits/N.json      what run N has written; the only truth
    progress/           how far the tasks of a run are; gone after it
    ==================  ========================================================

A plan without a commit is I{pending}: its run died somewhere between, and the next run
carries it out again, to the same files with the same rows. A commit is put there once
and never changed. The lease is a lock that the kernel releases, so a run that died
hinders no other. No file here ends in C{.parquet}. C{docs/facts/spark.md 8}.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, final

from rocketbroker.errors import ConfigurationError, StoreError
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
from rocketbroker.files.interfaces import IFile, IFiles
from rocketbroker.spark.ranges import Queue

FOLDER: Final = "_rocketbroker"


@final
class Ledger:
    """The ledger of one export directory."""

    def __init__(self, files: IFiles, root: str) -> None:
        """
        @param root: the export directory; made when the lease is taken.
        """
        self._files = files
        self._folder = os.path.join(root, FOLDER)
        self._lease: IFile | None = None

    def take_lease(self, holder: Mapping[str, Any]) -> None:
        """Become the only writer here.

        @param holder: the name of the writer, for people.
        @raise ConfigurationError: somebody else does, or the directory cannot be
            written; one sentence.
        """
        path = os.path.join(self._folder, "lease.json")
        try:
            for name in ("plans", "commits"):
                self._make_folder(os.path.join(self._folder, name))
            lease = self._files.open(path, create=True)
        except OSError as error:
            raise ConfigurationError(f"cannot write {path}: {error}") from None
        if not lease.lock():
            lease.close()
            raise ConfigurationError(f"another export is writing here: {path}")
        lease.truncate(0)
        lease.pwrite(json.dumps(dict(holder)).encode("utf-8"), 0)
        self._lease = lease

    def release(self) -> None:
        """Give the lease back; idempotent."""
        if self._lease is not None:
            # The lock counts; its text is only for people.
            with suppress(OSError):
                self._lease.truncate(0)
            self._lease.close()
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
            return read_plan(self._files.read(path))
        except ValueError as error:
            raise StoreError(f"{path}: {error}") from None

    def ends(self) -> dict[Queue, End]:
        """Up to where each queue is exported.

        @raise StoreError: the last commit cannot be read.
        """
        number = self.last_commit()
        if number == 0:
            return {}
        path = self._path("commits", number)
        try:
            tree = json.loads(self._files.read(path))
            check_version(tree)
            return read_ends(tree["ends"])
        except (ValueError, KeyError) as error:
            raise StoreError(f"{path}: {error}") from None

    def write_plan(self, plan: Plan) -> None:
        """Put a plan there; its number must be the next one."""
        assert self._lease is not None
        assert plan.number == self.last_commit() + 1
        self._put(self._path("plans", plan.number), plan_bytes(plan))

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
        if self._files.exists(path):
            raise StoreError(f"{path} exists already")
        self._put(path, json.dumps(tree, indent=1).encode("utf-8"))

    def origin(self) -> str | None:
        """Where the messages here come from, None if nothing was exported yet."""
        path = os.path.join(self._folder, "job.json")
        if not self._files.exists(path):
            return None
        try:
            return str(json.loads(self._files.read(path))["origin"])
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{path}: {error}") from None

    def set_origin(self, origin: str) -> None:
        """Remember where the messages here come from."""
        tree = {"version": VERSION, "origin": origin}
        self._put(
            os.path.join(self._folder, "job.json"), json.dumps(tree).encode("utf-8")
        )

    def _make_folder(self, folder: str) -> None:
        """Make a directory and those above it, so that they outlive a crash."""
        if self._files.is_dir(folder):
            return
        above = os.path.dirname(folder)
        self._make_folder(above)
        self._files.make_dirs(folder)
        self._files.sync_dir(above)

    def _path(self, kind: str, number: int) -> str:
        return os.path.join(self._folder, kind, f"{number:08d}.json")

    def _numbers(self, kind: str) -> list[int]:
        return [
            int(name.removesuffix(".json"))
            for name in self._files.list(os.path.join(self._folder, kind))
            if name.endswith(".json") and name.removesuffix(".json").isdecimal()
        ]

    def _put(self, path: str, content: bytes) -> None:
        """Make a file whole, or not at all."""
        draft = path + ".tmp"
        file = self._files.open(draft, create=True)
        try:
            file.truncate(0)
            file.pwrite(content, 0)
            file.datasync()
        finally:
            file.close()
        self._files.rename(draft, path)
        self._files.sync_dir(os.path.dirname(path))
