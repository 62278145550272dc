# -*- test-case-name: tests.cli.cluster.test_outages -*-
"""Outages: which servers do not answer while a verb goes on, and since when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, final

import click

from rocketbroker.blocking.answers import may_pass
from rocketbroker.cli.exit_status import is_absence
from rocketbroker.cli.formats import Moment, Span
from rocketbroker.errors import RocketbrokerError

#: What an outage is of that is not known to be one broker's.
ALL: Final = ""


def passes(error: RocketbrokerError) -> bool:
    """Whether an error may be over when a server is back.

    A broker that restarts leaves the name servers for a while, and its topics with it.
    """
    return may_pass(error) or is_absence(error)


@final
class Outages:
    """Tells people, on standard error, when an outage begins and when it is over.

    One outage is told once; where a screen is cleared, again on each.

    @ivar reasons: words for each outage there is, by the broker's name.
    """

    def __init__(self, wall_ms: Callable[[], int]) -> None:
        self.reasons: dict[str, str] = {}
        self._wall_ms = wall_ms
        self._since: dict[str, int] = {}

    def tell(self, reasons: Mapping[str, str], again: bool = False) -> None:
        """Compare with the outages until now, and tell what is new.

        @param reasons: words for each outage there is now, by the broker's name.
        @param again: also those that were told already.
        """
        now = self._wall_ms()
        for name in self.reasons.keys() - reasons.keys():
            what = f"{name} answers" if name != ALL else "it works"
            echo(f"{what} again, after {Span(now - self._since.pop(name))}.")
        for name, text in reasons.items():
            is_new = name not in self._since
            since = self._since.setdefault(name, now)
            if is_new or again:
                echo(f"since {Moment(since)}: {text}")
        self.reasons = {**reasons}


def echo(text: str) -> None:
    """A sentence on standard error."""
    click.echo(f"rocketbroker: {text}", err=True)
