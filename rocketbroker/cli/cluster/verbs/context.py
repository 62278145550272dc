# -*- test-case-name: tests.cli.cluster.verbs.test_context -*-
"""C{rocketbroker context}: names for clusters, with their TLS and keys.

The file: L{rocketbroker.cli.cluster.contexts}.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, Final, TextIO

import attrs
import click

from rocketbroker.blocking.settings import name_server_list
from rocketbroker.cli.cluster import contexts
from rocketbroker.cli.cluster.access import PATHS, SECRETS, access_of
from rocketbroker.cli.cluster.secrets import given_secret
from rocketbroker.cli.exit_status import USAGE, Failure, explained
from rocketbroker.cli.lazycommands import LazyCommands
from rocketbroker.cli.rows import Rows
from rocketbroker.errors import RocketbrokerError

#: What is shown for a secret.
MASK: Final = "***"


@click.group(cls=LazyCommands)
def context() -> None:
    """Names for clusters: list, show, set, use, delete."""


def _load() -> contexts.Contexts:
    try:
        return contexts.load(_path())
    except RocketbrokerError as error:
        raise explained(error) from error


def _path() -> str:
    return contexts.path_of(os.environ)


def _of(known: contexts.Contexts, name: str) -> contexts.Context:
    try:
        return known.of(name)
    except RocketbrokerError as error:
        raise explained(error) from error


@context.command("ls")
def context_ls() -> None:
    """List the contexts; the current one has a star."""
    known = _load()
    rows = Rows(sys.stdout, "table")
    for name, each in sorted(known.known.items()):
        star = "*" if name == known.current else ""
        rows.add(
            "context",
            {
                "current": star,
                "name": name,
                "namesrv": each.name_servers,
                "tls": bool(each.options.get("tls")),
                "access_key": each.options.get("access_key"),
            },
        )
    rows.close()


@context.command("show")
@click.argument("name", required=False)
def context_show(name: str | None) -> None:
    """Show a context, or the current one; secrets are masked."""
    known = _load()
    name = name or known.current
    if name is None:
        raise Failure("No context is the current one: give its NAME.", USAGE)
    found = _of(known, name)
    shown = {
        option: MASK if option in SECRETS else value
        for option, value in found.options.items()
    }
    rows = Rows(sys.stdout, "table")
    rows.details("context", {"name": name, "namesrv": found.name_servers, **shown})
    rows.close()


def _access(function: Callable[..., None]) -> Callable[..., None]:
    """The options that say how a cluster is spoken to."""
    for option in reversed(
        (
            click.option("--tls", is_flag=True, help="Speak TLS; so do those below."),
            click.option(
                "--tls-ca",
                metavar="FILE",
                help="Who has signed the servers' certificates, in PEM. [default: whom "
                "the system trusts]",
            ),
            click.option("--no-tls-verify", is_flag=True, help="Take any certificate."),
            click.option("--tls-certificate", metavar="FILE", help="What we show."),
            click.option("--tls-key", metavar="FILE", help="Its key."),
            click.option(
                "--access-key", metavar="KEY", help="The account that requests are for."
            ),
            click.option(
                "--secret-key-file",
                type=click.File(),
                metavar="FILE",
                help="With its secret; - is standard input. [default: you are asked]",
            ),
        )
    ):
        function = option(function)
    return function


@context.command("set")
@click.argument("name")
@click.argument("namesrv", metavar="HOST:PORT[;...]")
@_access
@click.option("--use", is_flag=True, help="And make it the current one.")
def context_set(name: str, namesrv: str, use: bool, **access: Any) -> None:
    """Give a cluster a NAME; one that is there is replaced as a whole."""
    options = _options(**access)
    try:
        name_server_list(namesrv)
        access_of(options, f"context {name}")
    except RocketbrokerError as error:
        raise explained(error) from error
    known = _load()
    given = {**known.known, name: contexts.Context(namesrv, options)}
    current = name if use else known.current
    contexts.save(_path(), contexts.Contexts(given, current))


def _options(
    tls: bool,
    no_tls_verify: bool,
    access_key: str | None,
    secret_key_file: TextIO | None,
    **files: str | None,
) -> dict[str, Any]:
    """The options of an access that the command line gives.

    @raise Failure: there is a secret without the account's name, or none is given.
    """
    found: dict[str, Any] = {
        option: os.path.abspath(os.path.expanduser(path))
        for option, path in files.items()
        if path and option in PATHS
    }
    if no_tls_verify:
        found["tls_verify"] = False
    if tls or found:
        found = {"tls": True, **found}
    if access_key:
        secret = given_secret(secret_key_file, f"Secret of {access_key}")
        return {**found, "access_key": access_key, "secret_key": secret}
    if secret_key_file is not None:
        raise Failure("--secret-key-file goes with --access-key.", USAGE)
    return found


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
    left = {n: each for n, each in known.known.items() if n != name}
    current = None if known.current == name else known.current
    contexts.save(_path(), contexts.Contexts(left, current))
