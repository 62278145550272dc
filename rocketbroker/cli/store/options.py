# -*- test-case-name: tests.cli.store.test_options -*-
"""Options of the commands for a store's directory."""

from __future__ import annotations

import os

import attrs
import click

from rocketbroker.cli.rows import FORMATS
from rocketbroker.config.properties import read
from rocketbroker.config.store import StoreOptions
from rocketbroker.errors import ConfigurationError, StoreError
from rocketbroker.files.interfaces import IFiles
from rocketbroker.storetools.repair.exclusive_lock import log_files, log_folders

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


def _known() -> set[str]:
    """The settings of a broker's file."""
    # Imported only if a file is given.
    from rocketbroker.config.broker import BrokerOptions
    from rocketbroker.config.remoting import (
        RemotingClientOptions,
        RemotingServerOptions,
    )

    remoting = {*RemotingServerOptions.keys(), *RemotingClientOptions.keys()}
    return {*StoreOptions.keys(), *BrokerOptions.keys(), *remoting}


def settings(config: str | None) -> StoreOptions:
    """The store's settings in a broker's file; the usual ones without a file.

    @raise ConfigurationError: it cannot be read, says nothing that a broker knows, or
        a value that cannot be; one sentence.
    """
    if config is None:
        return StoreOptions()
    found = read(config)
    if found and _known().isdisjoint(found):
        raise ConfigurationError(
            f"{config} is no file of a broker's settings: no line of it sets one."
        )
    return StoreOptions.from_properties(found, config)


def size_of_log(config: str | None, options: StoreOptions) -> int:
    """The size of the log's files by a broker's file; 0 if it is not set there.

    @param options: the settings in it.
    """
    if config is None or "mappedFileSizeCommitLog" not in read(config):
        return 0
    return options.mapped_file_size_commit_log


def place_of_log(
    files: IFiles, root: str, commit_log: str | None, options: StoreOptions
) -> str:
    """The directories of the log, without symbolic links, separated by commas.

    The settings' directory is not used: they are often those of the broker from whose
    directory this one was copied.

    @param commit_log: the value of its flag.
    @raise StoreError: it is not in the root, and the settings name another place.
    """
    folders = log_folders(root, commit_log)
    real = [os.path.realpath(each) for each in folders]
    place = options.store_path_commit_log
    places = [os.path.realpath(each) for each in log_folders(root, place)]
    if not commit_log and places != real and not log_files(files, folders):
        raise StoreError(
            f"There is no log in {folders[0]}; the settings say {place}. If the log of "
            f"{root} is there, give --commit-log {place}."
        )
    return ",".join(real)


def changing(
    files: IFiles, root: str, config: str | None, commit_log: str | None
) -> StoreOptions:
    """The options for a command that changes a store.

    @param root: its directory, without symbolic links.
    @param config: the settings file, if one is given.
    @param commit_log: the value of its flag.
    @raise StoreError: the log is in another place.
    """
    options = settings(config)
    return attrs.evolve(
        options,
        store_path_root_dir=root,
        store_path_commit_log=place_of_log(files, root, commit_log, options),
        read_only_commit_log_store_paths=None,
        mapped_file_size_commit_log=size_of_log(config, options),
    )
