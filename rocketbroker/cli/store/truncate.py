# -*- test-case-name: tests.cli.store.test_truncate -*-
"""C{rocketbroker store truncate}: an old master's store gives up what the new one was
never sent."""

from __future__ import annotations

import os
import sys
import time

import click

from rocketbroker.cli.cluster.options import YES, confirm
from rocketbroker.cli.formats import count_of
from rocketbroker.cli.rows import Rows, flush
from rocketbroker.cli.store.options import (
    COMMIT_LOG,
    CONFIG,
    DIRECTORY,
    OUTPUT,
    changing,
)
from rocketbroker.files.disk import Disk
from rocketbroker.files.open_by import Processes
from rocketbroker.storetools.truncation import StoreTruncation


@click.command("truncate")
@DIRECTORY
@click.option(
    "--to",
    "position",
    required=True,
    type=click.IntRange(0),
    metavar="POSITION",
    help="Where the log is to end.",
)
@YES
@click.option("--dry-run", is_flag=True, help="Only show what would go.")
@CONFIG
@OUTPUT
@COMMIT_LOG
def store_truncate(
    directory: str,
    position: int,
    yes: bool,
    dry_run: bool,
    config: str | None,
    output: str,
    commit_log: str | None,
) -> None:
    """Discard all messages of the store in DIR from POSITION on.

    \b
    For an old master that is to follow the new one, and has messages that this one
    was never sent. POSITION is where the log of the new master ended when it became
    the master, or where the two logs part; a message has to begin there.
    No broker may use DIR; -c and --commit-log are as for repair. The store is
    opened, as by a broker: after a crash it is recovered first. It is shown how many
    messages of which topics go, and asked. What is cut away is kept in DIR, in the
    file truncated-POSITION-TIME, if there is room.
    If it is interrupted the next start of the store, or the same command, finishes
    it.
    """
    files = Disk()
    root = os.path.realpath(directory)
    options = changing(files, root, config, commit_log)
    truncation = StoreTruncation(
        files,
        Processes(os.getpid()),
        options,
        lambda: int(time.time() * 1000),
        position,
    )
    rows = Rows(sys.stdout, output)
    try:
        for sentence in truncation.open():
            print(f"rocketbroker: {sentence}", file=sys.stderr)
        for topic, count in sorted(truncation.topics.items()):
            rows.line("topic", {"messages": count, "topic": topic})
        size = truncation.end - position
        if not dry_run and size:
            if truncation.not_kept:
                print(f"rocketbroker: {truncation.not_kept}", file=sys.stderr)
            lost = sum(truncation.topics.values())
            flush(sys.stdout)
            what = count_of(lost, "message")
            confirm(f"Discard {what} ({size} bytes) of {directory}", yes)
            truncation.run()
        rows.add(
            "summary",
            {
                "ended": truncation.end,
                "ends": truncation.end if dry_run else position,
                "messages": sum(truncation.topics.values()),
                "bytes": size,
                "kept": truncation.kept or None,
                "dry_run": dry_run,
            },
        )
    finally:
        truncation.close()
    rows.close()
