# -*- test-case-name: tests.app.test_command -*-
"""The command C{rocketbroker}.

Everything a verb needs is imported when the verb runs, so that C{rocketbroker --help}
is quick and works without the extras.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable

import click

from rocketbroker.admin.lazycommands import CUT_OFF, LazyCommands, Place, drop_output
from rocketbroker.admin.rows import OutputError, flush
from rocketbroker.errors import RocketbrokerError

#: The exit status of a program that was interrupted (128 + SIGINT).
INTERRUPTED = 130

#: What the extra C{spark} brings, and verbs of exports may miss.
OF_SPARK = ("google_crc32c", "isal", "numpy", "pyarrow", "pyspark")


def print_version(ctx: click.Context, _: click.Parameter, is_wanted: bool) -> None:
    """Say the version, and end."""
    if is_wanted and not ctx.resilient_parsing:
        from rocketbroker.files.own_version import own_version

        click.echo(f"rocketbroker, version {own_version()}")
        ctx.exit()


@click.group(
    cls=LazyCommands,
    places={
        "group": Place(
            "rocketbroker.admin.verbs.group:group",
            "Consumer groups: list, show lags, create, update, reset, delete.",
        ),
        "bench": Place(
            "rocketbroker.admin.verbs.bench:bench",
            "Loads of sends and of receives, with percentiles.",
        ),
        "broker": Place(
            "rocketbroker.admin.verbs.broker:broker",
            "Brokers: run, status, replicas, services, settings, set, clean.",
        ),
        "cluster": Place(
            "rocketbroker.admin.verbs.broker:cluster",
            "Clusters: list brokers with versions, rates and disks.",
        ),
        "consumer": Place(
            "rocketbroker.admin.verbs.clients:consumer",
            "Connected consumers: list, and what each says about itself.",
        ),
        "context": Place(
            "rocketbroker.admin.verbs.context:context",
            "Names for name servers: list, set, use, delete.",
        ),
        "doctor": Place(
            "rocketbroker.admin.verbs.doctor:doctor",
            "Look for what is wrong, and say what to do.",
        ),
        "export": Place(
            "rocketbroker.app.exportcommands:export",
            "Topics as Parquet files, written by Spark.",
        ),
        "kv": Place(
            "rocketbroker.admin.verbs.kv:kv",
            "Key-value settings of name servers: list, get, set, delete.",
        ),
        "mqadmin": Place(
            "rocketbroker.admin.verbs.mqadmin:mqadmin",
            "Do what mqadmin's command NAME does, with its options.",
        ),
        "namesrv": Place(
            "rocketbroker.admin.verbs.namesrv:namesrv",
            "Name servers: run, settings, set; wipe and permit writing to a broker.",
        ),
        "offset": Place(
            "rocketbroker.admin.verbs.offset:offset",
            "Offsets: of queues, by time, and of groups: show, set, clone.",
        ),
        "producer": Place(
            "rocketbroker.admin.verbs.clients:producer",
            "Connected producers: list.",
        ),
        "message": Place(
            "rocketbroker.admin.verbs.message:message",
            "Messages: send, receive, view one, find by key, time or text.",
        ),
        "store": Place(
            "rocketbroker.app.storecommands:store",
            "Look at a store's directory, without a broker.",
        ),
        "top": Place(
            "rocketbroker.admin.verbs.top:top",
            "Show rates and lags, live.",
        ),
        "topic": Place(
            "rocketbroker.admin.verbs.topic:topic",
            "Topics: list, show, create, update, move, delete.",
        ),
    },
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=print_version,
    help="Show the version and exit.",
)
def command() -> None:
    """A message broker that speaks Apache RocketMQ's protocol, and its tools."""


def start_flags(function: Callable[..., None]) -> Callable[..., None]:
    """Add the flags that all programs have that are servers."""
    for option in (
        click.option("--output", default="text", metavar="text|json"),
        click.option(
            "--exit-with-parent",
            is_flag=True,
            help="Stop when the process that started this one is gone.",
        ),
        click.option(
            "--topic",
            "topics",
            multiple=True,
            metavar="NAME:QUEUES",
            help="A topic, made unless it is there; may be given again.",
        ),
        click.option(
            "--metrics-port",
            metavar="PORT|off",
            help="0: any free port; off: none. "
            "[default: metricsPromExporterPort, or 5557]",
        ),
        click.option(
            "--set",
            "settings",
            multiple=True,
            metavar="KEY=VALUE",
            help="A setting; may be given again. Wins over the file, other flags over "
            "it.",
        ),
    ):
        function = option(function)
    return function


@command.command()
@click.option(
    "--dir",
    "directory",
    metavar="DIR",
    help="Where the store lies. [default: storePathRootDir, or ~/store]",
)
@click.option("--temporary", is_flag=True, help="A store that is removed at the end.")
@click.option("--namesrv-port", type=int, metavar="PORT", help="[default: 9876]")
@click.option(
    "--join",
    is_flag=True,
    help="Join the name servers of namesrvAddr, and start none.",
)
@click.option(
    "--port", type=int, metavar="PORT", help="[default: listenPort, or 10911]"
)
@click.option("-c", "--config", metavar="FILE", help="Settings of a RocketMQ broker.")
@click.option(
    "--advertise",
    metavar="HOST[:PORT]",
    help="The address that clients are told. [default: brokerIP1, or the one by which "
    "each reached the name server]",
)
@click.option(
    "--replicas",
    type=click.IntRange(1, 5),
    default=1,
    show_default=True,
    metavar="N",
    help="2: with a slave, which is a process of its own.",
)
@start_flags
@click.option("--log-file", metavar="FILE", help="[default: standard error]")
@click.option("--log-level", default="info", show_default=True, metavar="LEVEL")
@click.option("--log-format", default="text", show_default=True, metavar="text|json")
@click.option("--log-rotate-bytes", default=128 << 20, show_default=True, metavar="N")
@click.option("--log-keep", default=10, show_default=True, metavar="N")
def standalone(
    directory: str | None,
    temporary: bool,
    namesrv_port: int | None,
    join: bool,
    port: int | None,
    config: str | None,
    advertise: str | None,
    replicas: int,
    settings: tuple[str, ...],
    metrics_port: str | None,
    topics: tuple[str, ...],
    exit_with_parent: bool,
    output: str,
    log_file: str | None,
    log_level: str,
    log_format: str,
    log_rotate_bytes: int,
    log_keep: int,
) -> None:
    """Run a name server and a broker in this process.

    Flags win over the settings file, whose namesrvAddr counts only with --join. Port 0
    is any free one. Slaves have free ports,
    and their stores and logs in replica-1 and so on of the store's directory; if one of
    them ends, all stop, with exit status 1. Stops on SIGINT and SIGTERM; SIGHUP opens
    the log file again, or stops if there is none.
    """
    if directory is not None and temporary:
        raise click.UsageError("--dir and --temporary exclude each other")
    if join and namesrv_port is not None:
        raise click.UsageError("--join and --namesrv-port exclude each other")
    from rocketbroker.app.logs import LogOptions
    from rocketbroker.app.standalone import Flags, run_standalone
    from rocketbroker.app.startflags import StartFlags

    flags = Flags(
        directory=directory,
        is_temporary=temporary,
        namesrv_port=namesrv_port,
        port=port,
        config=config,
        advertise=advertise,
        replicas=replicas,
        is_joining=join,
        start=StartFlags.from_texts(
            settings, topics, metrics_port, exit_with_parent, output
        ),
    )
    log = LogOptions.from_texts(
        log_file, log_level, log_format, log_rotate_bytes, log_keep
    )
    sys.exit(run_standalone(flags, log))


def open_streams() -> None:
    """Give the standard streams that the caller has closed a place where all is lost.

    Otherwise the next file that is opened would be taken for one. What a terminal has
    no characters for is escaped.
    """
    for number, mode in ((0, "r"), (1, "w"), (2, "w")):
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free, which is this one.
            opened = os.fdopen(os.open(os.devnull, os.O_RDWR), mode)
            setattr(sys, ("stdin", "stdout", "stderr")[number], opened)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def main() -> None:
    """Run the command; an error is one sentence and exit status 1."""
    open_streams()
    try:
        try:
            command.main(standalone_mode=False)
        finally:
            flush(sys.stdout)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        drop_output()
        sys.exit(CUT_OFF)
    except OutputError as error:
        print(f"rocketbroker: {error}", file=sys.stderr)
        drop_output()
        sys.exit(1)
    except RocketbrokerError as error:
        print(f"rocketbroker: {error}", file=sys.stderr)
        sys.exit(1)
    except ModuleNotFoundError as error:
        from rocketbroker.app.windows import POSIX_MODULES, SENTENCE

        missing = (error.name or "").partition(".")[0]
        if missing in POSIX_MODULES:
            sentence = SENTENCE
        elif missing in OF_SPARK:
            remedy = "pip install 'rocketbroker[spark]'"
            sentence = f"{missing} is not installed: {remedy}"
        else:
            raise
        print(f"rocketbroker: {sentence}", file=sys.stderr)
        sys.exit(1)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"rocketbroker: {where}{error.strerror}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
