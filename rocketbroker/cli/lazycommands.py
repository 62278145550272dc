# -*- test-case-name: tests.cli.test_lazycommands -*-
"""Commands of which some are imported when they are wanted.

A group's help, and the completion of a verb's name, show them by the sentences that
stand beside their names: nothing is imported for it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

#: The exit status of a program whose output is not read any more (128 + SIGPIPE).
CUT_OFF: Final = 141


def drop_output() -> None:
    """Drop buffered output, without an error at the end of the process."""
    for stream in (sys.stdout, sys.stderr):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class VerbPath(NamedTuple):
    """Where a verb is.

    @ivar path: its module, a colon, and what it is called there.
    @ivar help: the first sentence of its help.
    """

    path: str
    help: str


@final
class LazyCommands(click.Group):
    """A group with verbs that only stand in it by name.

    C{list} is C{ls} in each of them that has no such verb of its own.

    @ivar places: where they are.
    """

    def __init__(
        self,
        *args: Any,
        places: Mapping[str, VerbPath] = {},
        elsewhere: Mapping[str, str] = {},
        **kwargs: Any,
    ) -> None:
        """
        @param places: for each such verb where it is.
        @param elsewhere: names of verbs that people look for here, with a sentence
            that says what to use.
        """
        super().__init__(*args, **kwargs)
        self.places = places
        self._elsewhere = elsewhere

    def list_commands(self, ctx: click.Context) -> list[str]:
        """See C{click.Group.list_commands}."""
        return sorted([*super().list_commands(ctx), *self.places])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """See C{click.Group.get_command}."""
        if cmd_name in self._elsewhere:
            sentence = self._elsewhere[cmd_name]
            raise click.UsageError(f"No such command '{cmd_name}'. {sentence}", ctx)
        place = self.places.get(cmd_name)
        if place is None:
            found = super().get_command(ctx, cmd_name)
            if found is None and cmd_name == "list":
                found = super().get_command(ctx, "ls")
            return found
        module, name = place.path.split(":")
        found = getattr(import_module(module), name)
        assert isinstance(found, click.Command)
        return found

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """See C{click.Group.format_commands}."""
        room = formatter.width - 6 - max(map(len, self.list_commands(ctx)))
        rows = [
            (name, self._sentence(ctx, name, room)) for name in self.list_commands(ctx)
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def _sentence(self, ctx: click.Context, name: str, room: int = 80) -> str:
        place = self.places.get(name)
        if place is not None:
            return place.help
        command = self.get_command(ctx, name)
        assert command is not None
        return command.get_short_help_str(room)

    def shell_complete(
        self, ctx: click.Context, incomplete: str
    ) -> list[CompletionItem]:
        """See C{click.Group.shell_complete}."""
        from click.shell_completion import CompletionItem

        names = [n for n in self.list_commands(ctx) if n.startswith(incomplete)]
        verbs = [CompletionItem(n, help=self._sentence(ctx, n)) for n in names]
        return [*verbs, *click.Command.shell_complete(self, ctx, incomplete)]

    def invoke(self, ctx: click.Context) -> object:
        """See C{click.Group.invoke}, which would end with status 1 if nobody reads any
        more what is printed: that has another meaning here."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            drop_output()
            sys.exit(CUT_OFF)
