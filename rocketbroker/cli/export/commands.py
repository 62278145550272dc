# -*- test-case-name: tests.cli.test_command -*-
"""C{rocketbroker export}: topics as Parquet files."""

from __future__ import annotations

import logging
import os
import socket
import sys
import tempfile
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from rocketbroker.cli.export.brokers import CONTEXT, NAMESRV, source_words
from rocketbroker.cli.formats import count_of, without_zone
from rocketbroker.cli.lazycommands import LazyCommands, VerbPath
from rocketbroker.errors import ConfigurationError

if TYPE_CHECKING:
    from rocketbroker.export.progress import Display
    from rocketbroker.export.storage import Storage

#: Options of the read by the names of their words here.
READ_OPTIONS: Final = {
    "store": "store",
    "brokerName": "broker_name",
    "subscribePattern": "pattern",
    "assign": "assign",
    "startingOffsets": "start",
    "startingTimestamp": "since",
    "endingTimestamp": "until",
    "tags": "tags",
    "sqlFilter": "sql",
    "columns": "columns",
    "retryTimeout": "retry_timeout",
}


class Spark(NamedTuple):
    """The Spark that runs tasks.

    @ivar cores: how many at once, without a master.
    @ivar master: its address; empty for this process.
    @ivar settings: its settings.
    """

    cores: int
    master: str = ""
    settings: Mapping[str, str] = MappingProxyType({})


@click.group(
    cls=LazyCommands,
    places={
        "follow": VerbPath(
            "rocketbroker.cli.export.follow:export_follow",
            "Export the messages of TOPICs as they come, until told to stop.",
        ),
        "lag": VerbPath(
            "rocketbroker.cli.export.views:export_lag",
            "Show how far the export below ROOT is behind.",
        ),
        "report": VerbPath(
            "rocketbroker.cli.export.views:export_report",
            "Make a page with charts about the export below ROOT.",
        ),
        "status": VerbPath(
            "rocketbroker.cli.export.views:export_status",
            "Show what is exported below ROOT.",
        ),
        "verify": VerbPath(
            "rocketbroker.cli.export.views:export_verify",
            "Check the ledger and the files below ROOT, and the source if named.",
        ),
    },
)
def export() -> None:
    """Topics as Parquet files, written by Spark."""


@export.command("run")
@click.argument("topics", nargs=-1, metavar="[TOPIC]...")
@click.option(
    "--pattern",
    metavar="REGEX",
    help="All topics whose whole names match, in place of TOPICs.",
)
@click.option(
    "--assign",
    metavar="JSON",
    help='Single queues, in place of TOPICs: {"orders": {"broker-a": [0, 1]}}.',
)
@NAMESRV
@CONTEXT
@click.option("--store", metavar="DIR", help="Read a store's files, without a broker.")
@click.option(
    "--to",
    "root",
    required=True,
    metavar="ROOT",
    help="A directory, or an address as s3://bucket/path.",
)
@click.option(
    "--cores", default=0, metavar="N", help="Tasks at once. [default: all cores]"
)
@click.option(
    "--master", metavar="URL", help="Spark's, as spark://host:7077. [default: none]"
)
@click.option(
    "--conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark; repeatable."
)
@click.option(
    "--broker-name",
    default="local",
    show_default=True,
    metavar="NAME",
    help="With --store: what its broker is called.",
)
@click.option(
    "--from",
    "start",
    metavar="START",
    help="Where queues begin that are not exported yet: earliest, latest, latest-N, "
    "group:G, export:ROOT, or JSON of offsets. [default: earliest]",
)
@click.option(
    "--since",
    metavar="TIME",
    help="Of queues that are not exported yet: only messages stored at this time or "
    "later; ms since 1970, ISO 8601 (UTC), or -10m before now.",
)
@click.option("--until", metavar="TIME", help="Only messages stored before this time.")
@click.option(
    "--tags", metavar="TAGS", help="Only messages with one of these tags: 'a || b'."
)
@click.option(
    "--sql",
    metavar="CONDITION",
    help="Only messages of which this is true, in RocketMQ's SQL92.",
)
@click.option(
    "--columns",
    metavar="NAMES",
    help="Only these columns, separated by commas; brokerName, queueId, queueOffset "
    "and bodyCRC, which checks need, are always there.",
)
@click.option(
    "--file-size",
    default="128m",
    show_default=True,
    metavar="BYTES",
    help="How large a file becomes, about, in bytes of the log. Small queues share "
    "files.",
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
    help="Go on where messages are gone or damaged; the ledger says which, and why.",
)
@click.option(
    "--output",
    type=click.Choice(["text", "jsonl"]),
    default="text",
    show_default=True,
    help="jsonl: what happens, as lines of JSON for programs.",
)
def export_run(
    topics: tuple[str, ...],
    root: str,
    cores: int,
    master: str | None,
    conf: tuple[str, ...],
    file_size: str,
    allow_data_loss: bool,
    output: str,
    **words: str | None,
) -> None:
    """Export the new messages of TOPICs.

    Each message is exported exactly once: a run goes on where the last one ended, and
    carries out first what a run that died left unfinished. A topic that cannot be
    exported stops none of the others. With --tags or --sql all messages are read and
    checked nevertheless, and those left out are counted.

    \b
    Exit status: 0 done, 3 nothing new, 4 data loss, 5 verification failed,
    1 anything else, with one sentence; of several topics, that of the worst.
    """
    given = {
        option: word
        for option, name in READ_OPTIONS.items()
        if (word := words[name]) is not None
    }
    if topics:
        given["subscribe"] = ",".join(topics)
    given |= source_words(words["namesrv"], words["context"])
    if ("nameServer" in given) == ("store" in given):
        raise click.UsageError("one of --namesrv, --context and --store is needed")
    if len({"subscribe", "subscribePattern", "assign"} & given.keys()) != 1:
        raise click.UsageError("one of TOPIC, --pattern and --assign is needed")
    given["failOnDataLoss"] = "false" if allow_data_loss else "true"
    settings = dict(pair_of(each) for each in conf)
    say_zone("--since", words["since"])
    say_zone("--until", words["until"])
    spark = Spark(cores or os.cpu_count() or 1, master or "", settings)
    sys.exit(run_export(given, root, spark, file_size, output))


def say_zone(option: str, text: str | None) -> None:
    """Say how a time without a zone is read: exports run on many machines, so it is
    UTC, and not local time as of the verbs that people use on a terminal."""
    if text is not None and without_zone(text):
        click.echo(f"rocketbroker: {option} {text} is read as UTC.", err=True)


def pair_of(text: str) -> tuple[str, str]:
    """A setting of Spark as its key and value."""
    key, sign, value = text.partition("=")
    if not (key and sign):
        raise click.UsageError(f"--conf needs KEY=VALUE, not {text!r}")
    return key, value


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
    from rocketbroker.cli.export.views import opened
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
    what = count_of(plan.rows, "message")
    print(f"plan {plan.number} of {topic}, {what}, is dropped")
    return 0


def run_export(
    given: dict[str, str],
    root: str,
    spark: Spark,
    file_size: str = "128m",
    output: str = "text",
) -> int:
    """Run an export; its exit status.

    @param given: the options of the read.
    @param file_size: how large a file becomes.
    @param output: see L{display}.
    """
    try:
        from rocketbroker.export.copying import file_columns
        from rocketbroker.export.open_storage import open_storage
        from rocketbroker.export.runs import ExportRuns, Job
        from rocketbroker.export.spark_jobs import SparkCopyJobs
        from rocketbroker.sources.option_values import size
        from rocketbroker.sources.options import parse_options
    except ImportError as error:
        raise ConfigurationError(
            f"{error.name} is not installed: pip install 'rocketbroker[spark]'"
        ) from error
    options = parse_options(given)
    file_columns(options)
    try:
        target = size(file_size)
    except ValueError as error:
        raise ConfigurationError(f"--file-size {file_size!r} {error}") from None
    storage = open_storage(root)
    copying = SparkCopyJobs(
        spark.cores, log_path(storage), spark.master, spark.settings
    )
    # PySpark logs an interrupt in the middle of a call to the JVM, with two traces.
    logging.getLogger().addHandler(logging.NullHandler())
    wall_ms = lambda: int(time.time() * 1000)  # noqa: E731  # the one clock
    job = Job(options, target, spark.cores)
    try:
        return ExportRuns(storage, copying, display(output), wall_ms, job).run()
    finally:
        copying.close()


def log_path(storage: Storage) -> str:
    """The file for what Spark has to say: beside the ledger, if that is a directory."""
    from rocketbroker.export.ledger import FOLDER
    from rocketbroker.export.storage import DirectoryStorage

    if isinstance(storage, DirectoryStorage):
        return storage.where(f"{FOLDER}/spark.log")
    return os.path.join(tempfile.gettempdir(), f"rocketbroker-spark-{os.getpid()}.log")


def display(output: str = "text") -> Display:
    """The display of progress: a bar on a terminal, else lines.

    @param output: C{text}, or C{jsonl} for lines of JSON in any case.
    """
    from rocketbroker.export.jsonlines import JsonDisplay
    from rocketbroker.export.progress import BarDisplay, LineDisplay

    if output == "jsonl":
        return JsonDisplay(sys.stdout, lambda: int(time.time() * 1000))
    if sys.stdout.isatty():
        from rich.console import Console

        return BarDisplay(Console())
    return LineDisplay(sys.stdout, time.monotonic)
