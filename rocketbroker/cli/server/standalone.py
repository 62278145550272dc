# -*- test-case-name: tests.app.test_standalone -*-
"""C{rocketbroker standalone}: the verb, and its flags."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable

import click


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


@click.command()
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
@click.option(
    "--grpc-port",
    metavar="PORT|off",
    help="For clients of RocketMQ 5; 0: any free port. [default: 8081, or off with "
    "--temporary]",
)
@click.option(
    "--testing",
    is_flag=True,
    help="Let tests move the broker's time and make it fail; on this machine only.",
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
    grpc_port: str | None,
    testing: bool,
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
    gc.disable()  # Imports make what stays: see rocketbroker.app.garbage.
    from rocketbroker.app.grpc_port import grpc_port_of
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
        is_testing=testing,
        grpc_port=grpc_port_of(grpc_port),
        start=StartFlags.from_texts(
            settings, topics, metrics_port, exit_with_parent, output
        ),
    )
    log = LogOptions.from_texts(
        log_file, log_level, log_format, log_rotate_bytes, log_keep
    )
    sys.exit(run_standalone(flags, log))
