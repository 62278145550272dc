# -*- test-case-name: tests.app.test_lazycommands -*-
"""Commands of which some are imported when they are wanted."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, final

import click

#: The exit status of a program whose output is not read any more (128 + SIGPIPE).
CUT_OFF: Final = 141


def drop_output() -> None:
    """Drop buffered output, without an error at the end of the process."""
    for stream in (sys.stdout, sys.stderr):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@final
class LazyCommands(click.Group):
    """A group with verbs that only stand in it by name."""

    def __init__(self, *args: Any, places: Mapping[str, str], **kwargs: Any) -> None:
        """
        @param places: for each such verb its module, a colon, and what it is called
            there.
        """
        super().__init__(*args, **kwargs)
        self._places = places

    def list_commands(self, ctx: click.Context) -> list[str]:
        """See L{click.Group.list_commands}."""
        return sorted([*super().list_commands(ctx), *self._places])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """See L{click.Group.get_command}."""
        place = self._places.get(cmd_name)
        if place is None:
            return super().get_command(ctx, cmd_name)
        module, name = place.split(":")
        found = getattr(import_module(module), name)
        assert isinstance(found, click.Command)
        return found

    def invoke(self, ctx: click.Context) -> object:
        """See L{click.Group.invoke}, which would end with status 1 if nobody reads any
        more what is printed: that has another meaning here."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            drop_output()
            sys.exit(CUT_OFF)
