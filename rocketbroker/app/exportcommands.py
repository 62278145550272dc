# -*- test-case-name: tests.app.test_command -*-
"""C{rocketbroker export}: topics as Parquet files."""

from __future__ import annotations

import logging
import os
import socket
import sys
import tempfile
import time
from typing import TYPE_CHECKING

import click

from rocketbroker.admin.lazycommands import LazyCommands, Place
from rocketbroker.errors import ConfigurationError

if TYPE_CHECKING:
    from rocketbroker.export.progress import Display
    from rocketbroker.export.storage import Storage


@click.group(
    cls=LazyCommands,
    places={
        "lag": Place(
            "rocketbroker.app.exportviews:export_lag",
            "Show how far the export below ROOT is behind.",
        ),
        "report": Place(
            "rocketbroker.app.exportviews:export_report",
            "Make a page with charts about the export below ROOT.",
        ),
        "status": Place(
            "rocketbroker.app.exportviews:export_status",
            "Show what is exported below ROOT.",
        ),
        "verify": Place(
            "rocketbroker.app.exportviews:export_verify",
            "Check the ledger and the files below ROOT, and the source if named.",
        ),
    },
)
def export() -> None:
    """Topics as Parquet files, written by Spark."""


@export.command("run")
@click.argument("topic")
@click.option("--namesrv", metavar="HOST:PORT[;HOST:PORT]", help="Read from brokers.")
@click.option("--store", metavar="DIR", help="Read a store's files, without a broker.")
@click.option(
    "--to", "root", required=True, metavar="DIR", help="The export's directory."
)
@click.option(
    "--cores", default=0, metavar="N", help="Tasks at once. [default: all cores]"
)
@click.option(
    "--broker-name",
    default="local",
    show_default=True,
    metavar="NAME",
    help="With --store: what its broker is called.",
)
@click.option(
    "--since",
    metavar="TIME",
    help="Of queues that are not exported yet: only messages stored at this time or "
    "later; ms since 1970, ISO 8601 (UTC), or -10m before now.",
)
@click.option("--until", metavar="TIME", help="Only messages stored before this time.")
@click.option(
    "--columns",
    metavar="NAMES",
    help="Only these columns, separated by commas; brokerName, queueId, queueOffset "
    "and bodyCRC, which checks need, are always there.",
)
@click.option(
    "--retry-timeout",
    default="2m",
    show_default=True,
    metavar="SPAN",
    help="How long to wait for brokers that restart.",
)
@click.option(
    "--allow-data-loss",
    is_flag=True,
    help="Go on where messages were deleted before they were exported.",
)
def export_run(
    topic: str,
    namesrv: str | None,
    store: str | None,
    root: str,
    cores: int,
    broker_name: str,
    since: str | None,
    until: str | None,
    columns: str | None,
    retry_timeout: str,
    allow_data_loss: bool,
) -> None:
    """Export the new messages of TOPIC.

    Each message is exported exactly once: a run goes on where the last one ended, and
    carries out again what a run that died left unfinished.

    \b
    Exit status: 0 done, 3 nothing new, 4 data loss, 5 verification failed,
    1 anything else, with one sentence.
    """
    if bool(namesrv) == bool(store):
        raise click.UsageError("one of --namesrv and --store is needed")
    given = {"subscribe": topic, "brokerName": broker_name}
    given |= {"nameServer": namesrv} if namesrv else {"store": store or ""}
    more = {"startingTimestamp": since, "endingTimestamp": until, "columns": columns}
    given |= {name: text for name, text in more.items() if text is not None}
    given["retryTimeout"] = retry_timeout
    given["failOnDataLoss"] = "false" if allow_data_loss else "true"
    sys.exit(run_export(given, root, cores or os.cpu_count() or 1))


@export.command("abandon")
@click.argument("root", metavar="ROOT")
@click.argument("topic")
def export_abandon(root: str, topic: str) -> None:
    """Drop the plan of TOPIC that waits below ROOT, and files that it has finished.

    A run that died leaves its plan, and the next one carries it out again; so nothing
    is lost or doubled. Where that cannot be, because the messages are gone, say, or the
    topic was made again, this drops the plan. What it covers is then planned anew, from
    where the last commit ended. The ledger says that it was dropped.
    """
    sys.exit(abandon(root, topic))


def abandon(root: str, topic: str) -> int:
    """Drop a plan; the exit status."""
    from rocketbroker.app.exportviews import opened
    from rocketbroker.export.ledger import Ledger

    storage = opened(root)
    ledger = Ledger(storage)
    if topic not in ledger.pending():
        raise ConfigurationError(f"{storage.address} has no plan of {topic} that waits")
    ledger.take_lease({"host": socket.gethostname(), "pid": os.getpid()})
    try:
        plan = ledger.pending()[topic]
        ledger.abandon(plan, int(time.time() * 1000))
    finally:
        ledger.release()
    print(f"plan {plan.number} of {topic}, {plan.rows} messages, is dropped")
    return 0


def run_export(given: dict[str, str], root: str, cores: int) -> int:
    """Run an export; its exit status."""
    try:
        from rocketbroker.export.copying import file_columns
        from rocketbroker.export.open_storage import open_storage
        from rocketbroker.export.runs import Job, Run
        from rocketbroker.export.spark_jobs import SparkCopying
        from rocketbroker.ranges.options import parse_options
    except ImportError as error:
        raise ConfigurationError(
            f"{error.name} is not installed: pip install 'rocketbroker[spark]'"
        ) from error
    options = parse_options(given)
    file_columns(options)
    storage = open_storage(root)
    copying = SparkCopying(cores, log_path(storage))
    # PySpark logs an interrupt in the middle of a call to the JVM, with two traces.
    logging.getLogger().addHandler(logging.NullHandler())
    wall_ms = lambda: int(time.time() * 1000)  # noqa: E731  # the one clock
    job = Job(options, tasks=cores)
    try:
        return Run(storage, copying, display(), wall_ms, job).run()
    finally:
        copying.close()


def log_path(storage: Storage) -> str:
    """The file for what Spark has to say: beside the ledger, if that is a directory."""
    from rocketbroker.export.ledger import FOLDER
    from rocketbroker.export.storage import DirectoryStorage

    if isinstance(storage, DirectoryStorage):
        return storage.where(f"{FOLDER}/spark.log")
    return os.path.join(tempfile.gettempdir(), f"rocketbroker-spark-{os.getpid()}.log")


def display() -> Display:
    """The display of progress: a bar on a terminal, else lines."""
    from rocketbroker.export.progress import BarDisplay, LineDisplay

    if sys.stdout.isatty():
        from rich.console import Console

        return BarDisplay(Console())
    return LineDisplay(sys.stdout, time.monotonic)
