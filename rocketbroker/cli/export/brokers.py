# -*- test-case-name: tests.cli.export.test_brokers -*-
"""The brokers of an export: by their name servers, or by a context."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

import click

NAMESRV: Final = click.option(
    "--namesrv", metavar="HOST:PORT[;HOST:PORT]", help="Read from brokers."
)
CONTEXT: Final = click.option(
    "--context",
    metavar="NAME",
    help="The same, by the name of a cluster: context set.",
)


def source_words(
    namesrv: str | None, context: str | None, environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The options of a read from a cluster, with TLS and keys as for other verbs.

    @param namesrv: of the option.
    @param context: of the option.
    @return: none if neither is given.
    @raise RocketbrokerError: there is no such context, or it is not in order.
    """
    if namesrv and context:
        raise click.UsageError("--namesrv and --context exclude each other")
    if not (namesrv or context):
        return {}
    from rocketbroker.cli.cluster.contexts import choose
    from rocketbroker.sources.access import access_words

    target = choose(namesrv, context, environ)
    access = access_words(target.access.tls, target.access.credentials)
    return {"nameServer": target.name_servers, **access}
