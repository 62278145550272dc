# -*- test-case-name: tests.app.test_storeoptions -*-
"""What the verbs for a store's directory are told."""

from __future__ import annotations

import click

from rocketbroker.app.rows import FORMATS
from rocketbroker.config.properties import parse
from rocketbroker.config.store import StoreOptions

DIRECTORY = click.argument(
    "directory", metavar="DIR", type=click.Path(exists=True, file_okay=False)
)
OUTPUT = click.option(
    "--output", type=click.Choice(FORMATS), default="table", show_default=True
)
COMMIT_LOG = click.option(
    "--commit-log", metavar="DIR", help="Where the log is, if not in DIR/commitlog."
)
CONFIG = click.option(
    "-c",
    "--config",
    type=click.Path(exists=True, dir_okay=False),
    help="The broker's settings: delay levels and the sizes of the index.",
)


def settings(config: str | None) -> StoreOptions:
    """The store's settings in a broker's file; the usual ones without a file."""
    if config is None:
        return StoreOptions()
    with open(config, encoding="utf-8") as file:
        return StoreOptions.from_properties(parse(file.read()), config)
