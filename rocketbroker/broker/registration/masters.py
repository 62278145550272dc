# -*- test-case-name: tests.broker.registration.test_masters -*-
"""The address of a slave's master, from the name servers' answers to registrations.

The first of them that knows one is believed, so that a name server that has just
started, and has not heard of the master yet, takes it from nobody. Where a slave may
act as master, masters say so themselves, too, before name servers know them. Each
answer of a name server is told, so that a slave that was led elsewhere goes back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, final

from rocketbroker.broker.registration.name_servers import NameServers


class Master(NamedTuple):
    """A master; None for what is not known.

    @ivar ha_address: where it sends its log.
    @ivar address: its main port.
    """

    ha_address: str | None = None
    address: str | None = None


@final
class Masters:
    """The masters that the name servers know.

    @ivar current: the one that is believed.
    @ivar last: the one that was believed last, if there is none now.
    """

    def __init__(self, name_servers: NameServers) -> None:
        self.current = self.last = Master()
        self._name_servers = name_servers
        self._known: dict[str, Master] = {}
        self._said = Master()
        self._found: list[Callable[[Master], object]] = []
        self._named: list[Callable[[Master], object]] = []

    def watch(self, found: Callable[[Master], object]) -> None:
        """Call C{found} with each master that is another than before."""
        self._found.append(found)

    def watch_answers(self, named: Callable[[Master], object]) -> None:
        """Call C{named} after each answer, with the one that is believed."""
        self._named.append(named)

    def note(self, server: str, master: Master) -> None:
        """A name server has said what it knows."""
        self._known[server] = master
        self._settle()
        for named in self._named:
            named(self.current)

    def say(self, master: Master) -> None:
        """It is this one, as long as no name server says another from now on."""
        self._known.clear()
        self._said = master
        self._settle()

    def _settle(self) -> None:
        known = [self._known.get(each) for each in self._name_servers.current]
        current = next((each for each in known if each and each.ha_address), self._said)
        before, self.current = self.current, current
        if current.ha_address:
            self.last = current
        if current != before:
            for found in self._found:
                found(current)
