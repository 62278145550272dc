# -*- test-case-name: tests.cli.test_command -*-
"""C{rocketbroker proxy}: proxies, by which gRPC clients reach brokers."""

from __future__ import annotations

import click

from rocketbroker.cli.lazycommands import LazyCommands, VerbPath


@click.group(
    cls=LazyCommands,
    places={
        "run": VerbPath(
            "rocketbroker.cli.server.run:proxy_run",
            "Start a proxy in the foreground: --help shows its flags.",
        )
    },
)
def proxy() -> None:
    """Proxies, by which clients of RocketMQ 5 (gRPC) reach brokers: run.

    A proxy is started by "rocketbroker proxy run", and by "twistd rocketmq-proxy" with
    the same flags as a daemon.
    """
