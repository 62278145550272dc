# -*- test-case-name: tests.cli.test_command -*-
"""The command C{rocketbroker}: its verbs, each found when it is called.

Everything a verb needs is imported when the verb runs, so that C{rocketbroker --help}
is quick and works without the extras.
"""

from __future__ import annotations

import io
import os
import sys

import click

from rocketbroker.cli.lazycommands import CUT_OFF, LazyCommands, VerbPath, drop_output
from rocketbroker.cli.rows import OutputError, flush
from rocketbroker.errors import RocketbrokerError

#: The exit status of a program that was interrupted (128 + SIGINT).
INTERRUPTED = 130

#: What the extra C{spark} brings, and verbs of exports may miss.
OF_SPARK = ("google_crc32c", "isal", "jinja2", "numpy", "pyarrow", "pyspark")


def print_version(ctx: click.Context, _: click.Parameter, is_wanted: bool) -> None:
    """Say the version, and end."""
    if is_wanted and not ctx.resilient_parsing:
        from rocketbroker.files.own_version import own_version

        click.echo(f"rocketbroker, version {own_version()}")
        ctx.exit()


@click.group(
    cls=LazyCommands,
    places={
        "acl": VerbPath(
            "rocketbroker.cli.cluster.verbs.acl:acl",
            "Policies of users (ACL 2.0): list, show, create, update, copy, delete.",
        ),
        "group": VerbPath(
            "rocketbroker.cli.cluster.verbs.group:group",
            "Consumer groups: list, show lags, create, update, reset, delete.",
        ),
        "bench": VerbPath(
            "rocketbroker.cli.cluster.verbs.bench:bench",
            "Loads of sends and of receives, with percentiles.",
        ),
        "broker": VerbPath(
            "rocketbroker.cli.cluster.verbs.broker:broker",
            "Brokers: run, status, replicas, services, settings, set, clean.",
        ),
        "can-i": VerbPath(
            "rocketbroker.cli.cluster.verbs.whoami:can_i",
            "Ask whether we may do something: can-i pub topic Orders.",
        ),
        "cluster": VerbPath(
            "rocketbroker.cli.cluster.verbs.broker:cluster",
            "Clusters: list brokers with versions, rates and disks.",
        ),
        "consumer": VerbPath(
            "rocketbroker.cli.cluster.verbs.clients:consumer",
            "Connected consumers: list, and what each says about itself.",
        ),
        "context": VerbPath(
            "rocketbroker.cli.cluster.verbs.context:context",
            "Names for clusters: list, show, set, use, delete.",
        ),
        "doctor": VerbPath(
            "rocketbroker.cli.cluster.doctor.doctor:doctor",
            "Look for what is wrong, and say what to do.",
        ),
        "export": VerbPath(
            "rocketbroker.cli.export.commands:export",
            "Topics as Parquet files, written by Spark.",
        ),
        "kv": VerbPath(
            "rocketbroker.cli.cluster.verbs.kv:kv",
            "Key-value settings of name servers: list, get, set, delete.",
        ),
        "mqadmin": VerbPath(
            "rocketbroker.cli.cluster.verbs.mqadmin:mqadmin",
            "Do what mqadmin's command NAME does, with its options.",
        ),
        "namesrv": VerbPath(
            "rocketbroker.cli.cluster.verbs.namesrv:namesrv",
            "Name servers: run, settings, set; wipe and permit writing to a broker.",
        ),
        "offset": VerbPath(
            "rocketbroker.cli.cluster.verbs.offset:offset",
            "Offsets: of queues, by time, and of groups: show, set, clone.",
        ),
        "producer": VerbPath(
            "rocketbroker.cli.cluster.verbs.clients:producer",
            "Connected producers: list.",
        ),
        "proxy": VerbPath(
            "rocketbroker.cli.server.proxy:proxy",
            "Proxies, by which clients of RocketMQ 5 (gRPC) reach brokers: run.",
        ),
        "message": VerbPath(
            "rocketbroker.cli.cluster.verbs.message:message",
            "Messages: send, receive, view one, find by key, time or text.",
        ),
        "standalone": VerbPath(
            "rocketbroker.cli.server.standalone:standalone",
            "Run a name server and a broker in this process.",
        ),
        "store": VerbPath(
            "rocketbroker.cli.store.commands:store",
            "Look at a store's directory, without a broker.",
        ),
        "testing": VerbPath(
            "rocketbroker.cli.cluster.verbs.testing:testing",
            "Brokers of standalone --testing: move their time, let them fail.",
        ),
        "top": VerbPath(
            "rocketbroker.cli.cluster.verbs.top:top",
            "Show rates and lags, live.",
        ),
        "topic": VerbPath(
            "rocketbroker.cli.cluster.verbs.topic:topic",
            "Topics: list, show, create, update, move, delete.",
        ),
        "user": VerbPath(
            "rocketbroker.cli.cluster.verbs.user:user",
            "Users of ACL 2.0: list, show, create, update, copy, delete.",
        ),
        "whoami": VerbPath(
            "rocketbroker.cli.cluster.verbs.whoami:whoami",
            "Show for whom each broker takes us, and which rule says so.",
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
