# -*- test-case-name: tests.cli.store.test_verify -*-
"""C{rocketbroker store verify}: a check of everything in a store's directory."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator

import click

from rocketbroker.cli.progress import of_bytes
from rocketbroker.cli.rows import Rows
from rocketbroker.cli.store.options import (
    COMMIT_LOG,
    CONFIG,
    DIRECTORY,
    OUTPUT,
    place_of_log,
    settings,
    size_of_log,
)
from rocketbroker.cli.store.pops import order_remarks, popped
from rocketbroker.cli.store.repair import is_json
from rocketbroker.errors import StoreError
from rocketbroker.files.disk import Disk
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.store.reader.takeover import not_taken_over
from rocketbroker.storetools.pending_timers import PendingTimers
from rocketbroker.storetools.verify.check import Check
from rocketbroker.storetools.verify.report import Fault, Remark


def wrong_settings(reader: StoreReader) -> Iterator[Fault]:
    """Faults of the broker's JSON files; after a crash the next start takes
    their C{.bak}."""
    folder = os.path.join(reader.root, "config")
    for name in reader.files.list(folder) if reader.is_clean else ():
        path = os.path.join(folder, name)
        if not name.endswith(".json") or reader.files.is_dir(path):
            continue
        try:
            content = reader.files.read(path)
        except OSError as error:
            text = f"{path} cannot be read: {error.strerror}."
            yield Fault("unreadable", path, 0, text)
        else:
            if not is_json(content):
                yield Fault("file", path, 0, "it is no JSON object")


def row_of(fault: Fault) -> dict[str, object]:
    """A fault as a row."""
    return {
        "fault": fault.kind,
        "position": fault.position,
        "where": fault.where,
        "text": fault.text,
    }


def remark_row(remark: Remark) -> dict[str, object]:
    """A remark as a row."""
    return {"position": remark.position, "where": remark.where, "text": remark.text}


def summary(check: Check, faults: int, seconds: float) -> dict[str, object]:
    """The last row: the amount that was checked, and the rate."""
    walked = max(0, check.log.done)
    return {
        "records": check.log.records,
        "bytes": walked,
        "faults": faults,
        "not_in_queues_yet": check.log.queues.unlisted,
        "without_queue": check.log.queues.orphans,
        "tail_bytes": check.log.tail,
        "index_entries": check.index.entries,
        "index_files_of_other_size": len(check.index.unknown),
        "seconds": round(seconds, 3),
        "mb_per_second": round(walked / 1e6 / seconds, 1) if seconds else 0,
    }


@click.command("verify")
@DIRECTORY
@CONFIG
@OUTPUT
@COMMIT_LOG
def store_verify(
    directory: str, config: str | None, output: str, commit_log: str | None
) -> None:
    """Check every record of DIR, every entry of its queues, its index, its timers, its
    check points of POP and its JSON files.

    Progress goes to standard error. Flipped bits are not found where there is no
    checksum, as in times and properties. The index is checked if the store was
    stopped cleanly and the index has the size of the settings. A remark is no fault:
    it may be right or wrong, or a broker does not take it over yet, such as ACL.
    It does not change the exit status.

    The rate in the summary is bytes of the log by the time of the whole check.
    """
    begun = time.monotonic()
    options = settings(config)
    root = os.path.abspath(directory)
    files = Disk()
    # Only for its error if the settings place the log elsewhere.
    place_of_log(files, root, commit_log, options)
    size = size_of_log(config, options)
    reader = StoreReader(files, root, commit_log, size, even_lost=True)
    rows = Rows(sys.stdout, output)

    def report(fault: Fault) -> None:
        rows.add("fault", row_of(fault))

    sizes = options.max_hash_slot_num, options.max_index_num
    check = Check(
        reader,
        sizes,
        report,
        lambda done: progress.reach(done),
        options.message_index_enable,
    )
    progress = of_bytes(check.expected_bytes())
    others, remarks = 0, list[Remark]()
    try:
        timers = PendingTimers(reader)
        waiting = *timers.findings(), *popped(reader, timers).findings()
        for found in (*wrong_settings(reader), *waiting, *order_remarks(reader)):
            if isinstance(found, Remark):
                remarks.append(found)
                continue
            others += 1
            report(found)
        check.run()
    except (OSError, StoreError):
        # The faults found so far are printed.
        rows.close()
        raise
    home, has_timers = os.environ.get("ROCKETMQ_HOME", ""), options.timer_wheel_enable
    for text in not_taken_over(files, root, home, has_timers):
        rows.add("remark", remark_row(Remark(root, 0, text)))
    for remark in remarks + check.remarks:
        rows.add("remark", remark_row(remark))
    seconds = time.monotonic() - begun
    rows.add("summary", summary(check, check.faults + others, seconds))
    rows.close()
    sys.exit(1 if check.faults + others else 0)
