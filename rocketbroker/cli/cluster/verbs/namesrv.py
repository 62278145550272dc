# -*- test-case-name: tests.cli.cluster.verbs.test_namesrv -*-
"""C{rocketbroker namesrv}: settings (318, 319) and write permissions (205, 327)."""

from __future__ import annotations

from typing import Final

import click

from rocketbroker.cli.cluster.cluster import Cluster
from rocketbroker.cli.cluster.options import YES, changing, confirm, showing
from rocketbroker.cli.cluster.requests.brokers import parse_changes, parse_properties
from rocketbroker.cli.exit_status import NotThere
from rocketbroker.cli.formats import matches
from rocketbroker.cli.lazycommands import LazyCommands, VerbPath
from rocketbroker.cli.rows import Rows
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.headers.namesrv import (
    AddWritePermOfBrokerRequestHeader,
    AddWritePermOfBrokerResponseHeader,
    WipeWritePermOfBrokerRequestHeader,
    WipeWritePermOfBrokerResponseHeader,
)

BROKER: Final = click.argument("broker")


@click.group(
    cls=LazyCommands,
    places={
        "run": VerbPath(
            "rocketbroker.cli.server.run:namesrv_run",
            "Start a name server in the foreground: --help shows its flags.",
        )
    },
)
def namesrv() -> None:
    """Name servers: run, settings, set; wipe and permit writing to a broker.

    A name server is started by "rocketbroker namesrv run", by "twistd namesrv" with
    the same flags as a daemon, and with a broker by "rocketbroker standalone".
    """


@namesrv.command("settings")
@click.argument("pattern", default="*")
@showing
def namesrv_settings(cluster: Cluster, rows: Rows, pattern: str) -> None:
    """Show the settings of all name servers whose names match PATTERN, or hold it."""
    is_found = False
    for server in cluster.name_servers:
        answer = cluster.ask(server, RequestCode.GET_NAMESRV_CONFIG)
        found = parse_properties(answer.body.decode("utf-8", "replace"))
        for name, value in sorted(found.items()):
            if matches(name.lower(), pattern.lower()):
                is_found = True
                rows.add("setting", {"server": server, "name": name, "value": value})
    if not is_found:
        raise NotThere(f"No name server has a setting {pattern}.")


@namesrv.command("set")
@click.argument("changes", nargs=-1, required=True, metavar="NAME=VALUE...")
@YES
@changing
def namesrv_set(
    cluster: Cluster, rows: Rows, changes: tuple[str, ...], yes: bool
) -> None:
    """Change settings of all name servers that run."""
    wanted = parse_changes(changes)
    servers = ", ".join(cluster.name_servers)
    confirm(f"Change {', '.join(wanted)} of {servers}", yes)
    text = "".join(f"{name}={value}\n" for name, value in wanted.items())
    for server in cluster.name_servers:
        cluster.ask(server, RequestCode.UPDATE_NAMESRV_CONFIG, body=text.encode())
        rows.add("change", {"server": server, "outcome": "changed"})


@namesrv.command("wipe")
@BROKER
@YES
@changing
def namesrv_wipe(cluster: Cluster, rows: Rows, broker: str, yes: bool) -> None:
    """Take the write permission of all topics of a broker, at all name servers.

    Producers leave it within half a minute; consumers go on. Until it starts again or
    'rocketbroker namesrv permit' gives it back.
    """
    name = cluster.one_broker(broker).name
    confirm(f"Let no producer send to {name}", yes)
    asked = WipeWritePermOfBrokerRequestHeader(broker_name=name)
    for server in cluster.name_servers:
        answer = cluster.ask(server, RequestCode.WIPE_WRITE_PERM_OF_BROKER, asked)
        told = WipeWritePermOfBrokerResponseHeader.from_ext(answer.ext)
        rows.add("change", {"server": server, "topics": told.wipe_topic_count})


@namesrv.command("permit")
@BROKER
@changing
def namesrv_permit(cluster: Cluster, rows: Rows, broker: str) -> None:
    """Give the write permission of all topics of a broker back."""
    name = cluster.one_broker(broker).name
    asked = AddWritePermOfBrokerRequestHeader(broker_name=name)
    for server in cluster.name_servers:
        answer = cluster.ask(server, RequestCode.ADD_WRITE_PERM_OF_BROKER, asked)
        told = AddWritePermOfBrokerResponseHeader.from_ext(answer.ext)
        rows.add("change", {"server": server, "topics": told.add_topic_count})
