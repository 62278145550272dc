# -*- test-case-name: tests.cli.store.test_repair -*-
"""C{rocketbroker store repair}: the repair of a damaged store.

The store itself is L{rocketbroker.storetools.repair.run}'s; here are the broker's JSON
files, which are taken from their C{.bak} where they cannot be read.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import final

import click

from rocketbroker.cli.progress import Progress, of_bytes
from rocketbroker.cli.rows import Rows
from rocketbroker.cli.store.options import (
    COMMIT_LOG,
    CONFIG,
    DIRECTORY,
    OUTPUT,
    changing,
)
from rocketbroker.errors import RemoteProtocolError
from rocketbroker.files.disk import Disk
from rocketbroker.files.interfaces import IFiles
from rocketbroker.files.jsonfile import JsonFile
from rocketbroker.files.open_by import Processes
from rocketbroker.storetools.repair.backup import Done
from rocketbroker.storetools.repair.run import Keeping, Repair
from rocketbroker.wire import fastjson


def is_json(content: bytes) -> bool:
    """Whether that is an object as the broker writes it."""
    try:
        return isinstance(fastjson.loads(content.decode()), dict)
    except (RemoteProtocolError, ValueError):
        return False


def _is_readable(files: IFiles, path: str) -> bool:
    """Whether a file is there, can be read, and is such an object."""
    try:
        return is_json(files.read(path))
    except OSError:
        return False


def _size(files: IFiles, path: str) -> int:
    """The size of a file; 0 if it is none."""
    try:
        return 0 if files.is_dir(path) else files.size(path)
    except OSError:
        return 0


def repair_json(files: IFiles, root: str, keeping: Keeping | None) -> list[Done]:
    """Restore unreadable files from their C{.bak}; report those that cannot be.

    @param keeping: makes the directory for copies; None: only list what would be done.
    """
    folder = os.path.join(root, "config")
    steps = []
    for name in sorted(files.list(folder)):
        path = os.path.join(folder, name)
        if not name.endswith(".json") or _is_readable(files, path):
            continue
        size = _size(files, path)
        backup = path + ".bak"
        if not _is_readable(files, backup):
            text = "it cannot be read, and there is no copy that can"
            steps.append(Done("unrepaired", path, 0, size, text))
            continue
        text = f"it could not be read; {os.path.basename(backup)} takes its place"
        kind = "changed"
        if keeping is not None:
            try:
                content = files.read(backup)
                keeping().take(path)
                JsonFile(files, path).save(content)
            except OSError as error:
                kind = "unrepaired"
                text = f"it cannot be read, nor be replaced: {error.strerror}"
        steps.append(Done(kind, path, 0, size, text))
    return steps


def row_of(done: Done) -> dict[str, object]:
    """A finished step as a row."""
    return {
        "done": done.kind,
        "position": done.position,
        "length": done.length,
        "where": done.where,
        "text": done.text,
    }


def summary_of(repair: Repair, dry: bool) -> dict[str, object]:
    """The summary that is printed at the end."""
    return {
        "faults": repair.faults,
        "left": repair.left,
        "copies": repair.copies or None,
        "dry_run": dry,
    }


@final
class Walks:
    """Progress of one walk after the other, on standard error."""

    def __init__(self) -> None:
        self._progress: Progress | None = None

    def sized(self, total: int) -> None:
        """A walk of so many bytes begins."""
        self._progress = of_bytes(total)

    def walked(self, done: int) -> None:
        """So many bytes were walked."""
        if self._progress is not None:
            self._progress.reach(done)


@click.command("repair")
@DIRECTORY
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@CONFIG
@OUTPUT
@COMMIT_LOG
def store_repair(
    directory: str,
    dry_run: bool,
    config: str | None,
    output: str,
    commit_log: str | None,
) -> None:
    """Repair the store in DIR.

    \b
    No broker may use DIR or its log, and no other process may have a file of log,
    queues or index open to write, or mapped. This is checked for processes of the
    same user; for all processes only if you are root. Only DIR is changed, and the
    log that --commit-log names, whatever the settings say. Copies of all that is
    changed are in DIR/repair-<time>.
    Messages whose body is lost keep their place, without a body and with the
    property ROCKETBROKER_LOST_BYTES. Queues and index are made again from the log.
    If files of the log are missing nothing is changed: they may be on a disk that is
    not mounted. A broker goes on without them. If neither the files nor the settings
    (-c) give the size of the log's files, the repair refuses.
    Queues of a deleted topic come back while its messages are in the log, as after
    any crash. No client sees them, unless the topic is made again; it then goes on
    behind them. To remove them delete the topic once more (mqadmin deleteTopic)
    when the broker runs.
    Exit status: 0 nothing to do, or done; 1 something could not be repaired.
    """
    files = Disk()
    rows = Rows(sys.stdout, output)
    root = os.path.realpath(directory)
    options = changing(files, root, config, commit_log)

    def report(done: Done) -> None:
        # A closed pipe is no reason to stop in the middle.
        with contextlib.suppress(BrokenPipeError):
            rows.add(done.kind, row_of(done))

    walks = Walks()
    repair = Repair(
        files,
        Processes(os.getpid()),
        options,
        lambda: int(time.time() * 1000),
        report,
        walks.walked,
        walks.sized,
        lambda keeping: repair_json(files, root, keeping),
    )
    repair.run(dry_run)
    rows.add("summary", summary_of(repair, dry_run))
    rows.close()
    sys.exit(1 if repair.left and not dry_run else 0)
