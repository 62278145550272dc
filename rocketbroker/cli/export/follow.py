# -*- test-case-name: tests.integration.test_follow -*-
"""C{rocketbroker export follow}: exporting as messages come."""

from __future__ import annotations

import os
import signal
import sys
import time
from types import FrameType
from typing import final

import click

from rocketbroker.cli.export.brokers import CONTEXT, NAMESRV, source_words
from rocketbroker.cli.export.commands import display, say_zone
from rocketbroker.cli.formats import parse_span
from rocketbroker.errors import ConfigurationError


@final
class SystemClock:
    """Provides L{Clock<rocketbroker.export.follow.Clock>}."""

    def monotonic(self) -> float:
        """See C{Clock.monotonic}."""
        return time.monotonic()

    def wall_ms(self) -> int:
        """See C{Clock.wall_ms}."""
        return int(time.time() * 1000)

    def sleep(self, seconds: float) -> None:
        """See C{Clock.sleep}."""
        time.sleep(seconds)


def stop_on_signals() -> None:
    """Let the first SIGINT or SIGTERM end the work where it is, another one at once."""

    def stop(number: int, frame: FrameType | None) -> None:
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_DFL)
        raise KeyboardInterrupt

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, stop)


@click.command("follow")
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...")
@NAMESRV
@CONTEXT
@click.option(
    "--to", "root", required=True, metavar="ROOT", help="A directory, or an address."
)
@click.option(
    "--every",
    default="15m",
    show_default=True,
    metavar="SPAN",
    help="No message waits longer for a file to become full.",
)
@click.option(
    "--file-size",
    default="128m",
    show_default=True,
    metavar="BYTES",
    help="How full that is, before compression.",
)
@click.option("--cores", default=0, metavar="N", help="Processes. [default: all cores]")
@click.option(
    "--since",
    metavar="TIME",
    help="Of queues that are not exported yet: only messages stored at this time or "
    "later; ms since 1970, ISO 8601 (UTC), or -10m before now.",
)
@click.option("--columns", metavar="NAMES", help="As of export run.")
@click.option(
    "--allow-data-loss",
    is_flag=True,
    help="Go on where messages were deleted before they were exported.",
)
@click.option(
    "--output", type=click.Choice(["text", "jsonl"]), default="text", show_default=True
)
def export_follow(
    topics: tuple[str, ...],
    namesrv: str | None,
    context: str | None,
    root: str,
    every: str,
    file_size: str,
    cores: int,
    since: str | None,
    columns: str | None,
    allow_data_loss: bool,
    output: str,
) -> None:
    """Export the messages of TOPICs as they come, until told to stop.

    What export run does again and again, without Spark: a commit is made when so much
    waits that a file is full, or when a message has waited for 15 minutes. Brokers are
    asked about once a second; one that restarts is waited for. SIGTERM and SIGINT stop
    it within seconds; a plan that is not done then is carried out by whoever exports
    there next. A topic whose messages were lost is given up, and the others go on.

    \b
    Exit status: 0 stopped, 4 messages of a topic were lost, 5 verification failed,
    1 anything else, with one sentence.
    """
    try:
        from rocketbroker.export.copying import file_columns
        from rocketbroker.export.follow import Follow, Pace
        from rocketbroker.export.open_storage import open_storage
        from rocketbroker.export.process_jobs import ProcessCopyJobs
        from rocketbroker.sources.network import NetworkOrigin
        from rocketbroker.sources.option_values import size
        from rocketbroker.sources.options import parse_options
    except ImportError as error:
        raise ConfigurationError(
            f"{error.name} is not installed: pip install 'rocketbroker[spark]'"
        ) from error
    given = {**source_words(namesrv, context), "subscribe": ",".join(topics)}
    if "nameServer" not in given:
        raise click.UsageError("one of --namesrv and --context is needed")
    more = {"startingTimestamp": since, "columns": columns}
    given |= {name: text for name, text in more.items() if text is not None}
    given["failOnDataLoss"] = "false" if allow_data_loss else "true"
    options = parse_options(given)
    say_zone("--since", since)
    file_columns(options)
    try:
        target = size(file_size)
    except ValueError as error:
        raise ConfigurationError(f"--file-size {file_size!r} {error}") from None
    cores = cores or os.cpu_count() or 1
    pace = Pace(target, parse_span(every) / 1000, cores)
    stop_on_signals()
    follow = Follow(
        SystemClock(),
        open_storage(root),
        ProcessCopyJobs(cores),
        display(output),
        options,
        pace,
        NetworkOrigin,
    )
    sys.exit(follow.run())
