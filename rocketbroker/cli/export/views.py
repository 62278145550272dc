# -*- test-case-name: tests.cli.export.test_views -*-
"""C{rocketbroker export status}, C{lag}, C{verify} and C{report}: looking at exports.

None of them needs Spark or a lease.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from rocketbroker.cli.export.brokers import source_words
from rocketbroker.cli.formats import Moment, Size, Span
from rocketbroker.cli.progress import of_bytes
from rocketbroker.cli.rows import Rows
from rocketbroker.cli.store.options import OUTPUT
from rocketbroker.errors import ConfigurationError

if TYPE_CHECKING:
    from rocketbroker.export.history import Gap, History, PendingPlan, QueueState
    from rocketbroker.export.lags import Lag
    from rocketbroker.export.storage import Storage
    from rocketbroker.sources.options import ReadOptions
    from rocketbroker.sources.ranges import Queue

ROOT = click.argument("root", metavar="ROOT")
TOPICS = click.argument("topics", nargs=-1, metavar="[TOPIC]...")
NAMESRV = click.option(
    "--namesrv", metavar="HOST:PORT[;HOST:PORT]", help="Compare with brokers."
)
CONTEXT = click.option(
    "--context", metavar="NAME", help="The same, by the name of a cluster."
)
STORE = click.option(
    "--store", metavar="DIR", help="Compare with a store's files, without a broker."
)
BROKER_NAME = click.option(
    "--broker-name",
    default="local",
    show_default=True,
    metavar="NAME",
    help="With --store: what its broker is called.",
)

#: Exit status: files or source are not what the ledger says.
VERIFY_FAILED: Final = 5

#: Less than this is checked by one thread: processes take a second to start.
SMALL_BYTES: Final = 256 * 1024 * 1024


def opened(root: str) -> Storage:
    """The place of an export.

    @raise ConfigurationError: pyarrow is missing, or there is no such place.
    """
    try:
        from rocketbroker.export.open_storage import open_storage
    except ImportError as error:
        raise ConfigurationError(
            f"{error.name} is not installed: pip install 'rocketbroker[spark]'"
        ) from error
    return open_storage(root)


def history_of(storage: Storage, topics: tuple[str, ...]) -> History:
    """What the ledger says of some topics, or of all.

    @raise ConfigurationError: nothing was exported there, or nothing of a topic.
    """
    from rocketbroker.export.history import read_history

    history = read_history(storage)
    if not (history.commits or history.pending or history.problems):
        raise ConfigurationError(f"{storage.address} holds no export")
    known = {*history.topics, *(plan.topic for plan in history.pending)}
    for topic in topics:
        if topic not in known:
            raise ConfigurationError(f"{storage.address} holds nothing of {topic}")
    return history.of(topics)


def source(
    namesrv: str | None,
    context: str | None,
    store: str | None,
    broker_name: str,
    topics: list[str],
) -> ReadOptions | None:
    """Where the source is; None if none is named.

    @raise RocketbrokerError: the names make no sense.
    """
    given = source_words(namesrv, context)
    if given and store:
        raise click.UsageError("--store goes with neither --namesrv nor --context")
    if not (given or store):
        return None
    from rocketbroker.sources.options import parse_options

    given = given or {"store": store or ""}
    subscribe = ",".join(topics)
    return parse_options({**given, "subscribe": subscribe, "brokerName": broker_name})


def queue_row(queue: Queue) -> dict[str, object]:
    """The first columns of what is said of a queue."""
    return {"topic": queue.topic, "broker": queue.broker, "queue": queue.queue_id}


def state_row(state: QueueState) -> dict[str, object]:
    """What is exported of a queue."""
    return {
        **queue_row(state.queue),
        "from": state.start,
        "until": state.end,
        "rows": state.rows,
        "filtered": state.filtered,
        "holes": state.holes,
        "lost": state.lost,
        "last_stored": Moment(max(0, state.last_ms)),
    }


def pending_row(plan: PendingPlan) -> dict[str, object]:
    """A plan that waits."""
    return {
        "plan": plan.number,
        "topic": plan.topic,
        "made": Moment(plan.made_ms),
        "rows": plan.rows,
        "files": plan.files,
    }


def gap_row(gap: Gap) -> dict[str, object]:
    """Messages that are missing."""
    return {
        **queue_row(gap.wanted.queue),
        "from": gap.wanted.start,
        "until": gap.wanted.until,
        "messages": gap.wanted.size,
        "what": "lost" if gap.is_retention else "hole",
        "commit": gap.commit,
        "reason": gap.reason,
    }


@click.command("status")
@ROOT
@TOPICS
@OUTPUT
def export_status(root: str, topics: tuple[str, ...], output: str) -> None:
    """Show what is exported below ROOT, a directory or an address as s3://bucket/path.

    Of each queue the offsets, rows and what is missing; plans that wait to be carried
    out; each gap with its reason. Exit status: 1 if the ledger cannot be read wholly.
    """
    from rocketbroker.export.history import queue_states
    from rocketbroker.export.ledger import FOLDER, Ledger

    storage = opened(root)
    history = history_of(storage, topics)
    rows = Rows(sys.stdout, output)
    last = history.commits[-1] if history.commits else None
    states = queue_states(history)
    rows.details(
        "export",
        {
            "address": storage.address,
            "origin": Ledger(storage).origin(),
            "topics": len(history.topics),
            "queues": len(states),
            "rows": sum(state.rows for state in states),
            "files": sum(len(commit.files) for commit in history.commits),
            "bytes": Size(sum(commit.bytes for commit in history.commits)),
            "commits": len(history.commits),
            "last_commit": last.number if last else None,
            "committed": Moment(last.done_ms) if last else None,
            "pending": len(history.pending),
            "missing": sum(state.holes + state.lost for state in states),
            "writer": storage.lease_holder(f"{FOLDER}/lease.json"),
        },
    )
    for state in states:
        rows.add("queue", state_row(state))
    for plan in history.pending:
        rows.add("pending", pending_row(plan))
    for commit in history.commits:
        for gap in commit.gaps:
            rows.add("gap", gap_row(gap))
    rows.close()
    for problem in history.problems:
        print(f"rocketbroker: {problem.where}: {problem.text}", file=sys.stderr)
    sys.exit(1 if history.problems else 0)


def lag_row(lag: Lag) -> dict[str, object]:
    """How far a queue is behind."""
    return {
        **queue_row(lag.queue),
        "earliest": lag.earliest,
        "exported": lag.exported,
        "latest": lag.latest,
        "behind": lag.behind,
        "behind_ms": None if lag.behind_ms is None else Span(lag.behind_ms),
        "removed": lag.removed,
    }


@click.command("lag")
@ROOT
@TOPICS
@NAMESRV
@CONTEXT
@STORE
@BROKER_NAME
@OUTPUT
def export_lag(
    root: str,
    topics: tuple[str, ...],
    namesrv: str | None,
    context: str | None,
    store: str | None,
    broker_name: str,
    output: str,
) -> None:
    """Show how far the export below ROOT is behind its source, queue by queue.

    \b
    earliest   the first offset that the source still has
    exported   up to where it is exported
    latest     the end of the source's queue
    behind     messages that the next run would export
    behind_ms  how long ago the first of them was stored
    removed    messages that the source removed before they were exported
    """
    from rocketbroker.export.lags import lags
    from rocketbroker.sources.open_source import open_origin

    history = history_of(opened(root), topics)
    wanted = list(topics) or history.topics
    options = source(namesrv, context, store, broker_name, wanted)
    if options is None:
        raise click.UsageError("one of --namesrv, --context and --store is needed")
    origin = open_origin(options)
    rows = Rows(sys.stdout, output)
    try:
        for lag in lags(origin, wanted, history.ends, int(time.time() * 1000)):
            rows.add("lag", lag_row(lag))
    finally:
        origin.close()
    rows.close()


def pool_for(size: int, cores: int) -> Executor:
    """Who checks files of so many bytes."""
    if cores == 1 or size < SMALL_BYTES:
        return ThreadPoolExecutor(1)
    # What is forked has pyarrow's threads no longer, but their locks.
    return ProcessPoolExecutor(cores, multiprocessing.get_context("spawn"))


@click.command("verify")
@ROOT
@TOPICS
@click.option(
    "--level",
    type=click.Choice(["manifest", "files", "digests"]),
    default="digests",
    show_default=True,
    help="manifest: only the ledger. files: also sizes, rows and offsets of files.",
)
@NAMESRV
@CONTEXT
@STORE
@BROKER_NAME
@click.option("--cores", default=0, metavar="N", help="Processes. [default: all cores]")
@OUTPUT
def export_verify(
    root: str,
    topics: tuple[str, ...],
    level: str,
    namesrv: str | None,
    context: str | None,
    store: str | None,
    broker_name: str,
    cores: int,
    output: str,
) -> None:
    """Check the export below ROOT: ledger, files, checksums, and the source if named.

    The ledger: the ranges of each queue follow on one another, none twice. The files:
    there, with the size, rows and offsets that they must have. The checksums: the CRC
    of each file, and the digests of offsets and bodies, computed again from the
    columns. With --namesrv or --store all is read from there again and compared; what
    was removed there meanwhile is counted, and no fault.

    A gap whose reason is in the ledger is listed, and no fault. Exit status: 0 all is
    well, 5 there are faults, 1 anything else.
    """
    from rocketbroker.export.verify import Verification

    begun = time.monotonic()
    storage = opened(root)
    history = history_of(storage, topics)
    options = source(namesrv, context, store, broker_name, history.topics)
    size = sum(commit.bytes for commit in history.commits)
    progress = of_bytes(size * (2 if options else 1))
    rows = Rows(sys.stdout, output)
    with pool_for(size, cores or os.cpu_count() or 1) as pool:
        check = Verification(
            storage, history, pool, lambda file: progress.add(file.bytes)
        )
        for fault in check.faults(level, options):
            row: dict[str, object] = {
                "fault": fault.level,
                "where": fault.where,
                "text": fault.text,
            }
            rows.add("fault", row)
    for commit in history.commits:
        for gap in commit.gaps:
            rows.add("gap", gap_row(gap))
    if not topics:
        check.remember(int(time.time() * 1000))
    rows.add(
        "summary", {**check.summary(), "seconds": round(time.monotonic() - begun, 3)}
    )
    rows.close()
    sys.exit(VERIFY_FAILED if check.count else 0)


def verified_before(storage: Storage) -> dict[str, object] | None:
    """What the last check has left; None if there was none, or it cannot be read."""
    from rocketbroker.export.verify import VERIFIED

    try:
        found = json.loads(storage.read(VERIFIED))
        for name in ("verified", "lastCommit", "files", "rows", "faults"):
            found[name] = int(found[name])
        found["level"] = str(found["level"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return dict(found)


@click.command("report")
@ROOT
@click.option(
    "--out", metavar="FILE", help="Where the page goes. [default: beside the ledger]"
)
@NAMESRV
@CONTEXT
@STORE
@BROKER_NAME
def export_report(
    root: str,
    out: str | None,
    namesrv: str | None,
    context: str | None,
    store: str | None,
    broker_name: str,
) -> None:
    """Make one page of HTML about the export below ROOT, for people.

    Whether it is whole and when that was verified, topics and queues, messages by hour,
    speed, sizes of files, what is missing and why, changes of the schema, and programs
    that read it. It is made from the ledger alone; with --namesrv or --store it says
    also how far each queue is behind. The page needs nothing from elsewhere, and prints
    where it is.
    """
    from rocketbroker.export.lags import lags
    from rocketbroker.export.planning import TARGET_BYTES
    from rocketbroker.export.report.page import PAGE, Subject, page
    from rocketbroker.export.verify import check_manifest
    from rocketbroker.sources.open_source import open_origin

    storage = opened(root)
    history = history_of(storage, ())
    options = source(namesrv, context, store, broker_name, history.topics)
    now_ms = int(time.time() * 1000)
    found = None
    if options is not None:
        origin = open_origin(options)
        try:
            found = tuple(lags(origin, history.topics, history.ends, now_ms))
        finally:
            origin.close()
    subject = Subject(
        storage.address,
        history,
        tuple(check_manifest(history)),
        verified_before(storage),
        found,
        namesrv or context or store or "",
        TARGET_BYTES,
        now_ms,
    )
    text = page(subject).encode("utf-8")
    if out is None:
        storage.put(PAGE, text)
        print(storage.where(PAGE))
        return
    Path(out).write_bytes(text)
    print(os.path.abspath(out))
