# -*- test-case-name: tests.cli.cluster.verbs.test_context -*-
"""C{rocketbroker context}: names for name servers.

The file: L{rocketbroker.cli.cluster.contexts}.
"""

from __future__ import annotations

import os
import sys

import attrs
import click

from rocketbroker.blocking.settings import name_server_list
from rocketbroker.cli.cluster import contexts
from rocketbroker.cli.exit_status import explained
from rocketbroker.cli.lazycommands import LazyCommands
from rocketbroker.cli.rows import Rows
from rocketbroker.errors import RocketbrokerError


@click.group(cls=LazyCommands)
def context() -> None:
    """Names for name servers: list, set, use, delete."""


def _load() -> contexts.Contexts:
    try:
        return contexts.load(_path())
    except RocketbrokerError as error:
        raise explained(error) from error


def _path() -> str:
    return contexts.path_of(os.environ)


def _of(known: contexts.Contexts, name: str) -> str:
    try:
        return known.of(name)
    except RocketbrokerError as error:
        raise explained(error) from error


@context.command("ls")
def context_ls() -> None:
    """List the contexts; the current one has a star."""
    known = _load()
    rows = Rows(sys.stdout, "table")
    for name, servers in sorted(known.name_servers.items()):
        star = "*" if name == known.current else ""
        rows.add("context", {"current": star, "name": name, "namesrv": servers})
    rows.close()


@context.command("set")
@click.argument("name")
@click.argument("namesrv", metavar="HOST:PORT[;...]")
@click.option("--use", is_flag=True, help="And make it the current one.")
def context_set(name: str, namesrv: str, use: bool) -> None:
    """Give name servers a NAME."""
    try:
        name_server_list(namesrv)
    except RocketbrokerError as error:
        raise explained(error) from error
    known = _load()
    contexts.save(
        _path(),
        contexts.Contexts(
            {**known.name_servers, name: namesrv}, name if use else known.current
        ),
    )


@context.command("use")
@click.argument("name")
def context_use(name: str) -> None:
    """Make a context the current one."""
    known = _load()
    _of(known, name)
    contexts.save(_path(), attrs.evolve(known, current=name))


@context.command("delete")
@click.argument("name")
def context_delete(name: str) -> None:
    """Forget a context."""
    known = _load()
    _of(known, name)
    left = {n: s for n, s in known.name_servers.items() if n != name}
    current = None if known.current == name else known.current
    contexts.save(_path(), contexts.Contexts(left, current))
