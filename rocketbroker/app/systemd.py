# -*- test-case-name: tests.app.test_systemd -*-
"""Notices to systemd, as the server is ready, stops, or lives; and its socket.

A unit with C{Type=notify} has a socket for that, named by C{NOTIFY_SOCKET}; see
sd_notify(3). Units that depend on it wait until it is ready. With C{WatchdogSec=} the
server has to say that it lives from then on, at least once in C{WATCHDOG_USEC}, see
sd_watchdog_enabled(3): a timer of the reactor says it, so a reactor that hangs does
not, and systemd starts the server again.

A socket unit has systemd listen in the server's place. It hands the socket on at each
start, and connections of the time between wait in its queue; see sd_listen_fds(3).
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any, Final, final

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from rocketbroker.errors import ConfigurationError

READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"
WATCHDOG: Final = "WATCHDOG=1"

#: The first descriptor that is handed on: SD_LISTEN_FDS_START.
FIRST_DESCRIPTOR: Final = 3

#: How often in the time of the watchdog the server says that it lives: one that could
#: not be told is no reason to end it.
TIMES: Final = 3

#: The socket is another process's; the reactor does not wait longer for it (in s).
MAX_SECONDS: Final = 1.0


def handed_on(environment: Mapping[str, str], process: int) -> int | None:
    """The descriptor of the socket that systemd listens with for this process.

    @param environment: its variables.
    @param process: its id: variables of its parent are none of its own.
    @return: C{None}: there is none.
    @raise ConfigurationError: there are several.
    """
    count = environment.get("LISTEN_FDS", "0")
    if count == "0" or environment.get("LISTEN_PID") != str(process):
        return None
    if count != "1":
        raise ConfigurationError(
            f"systemd hands on {count} sockets, where one is wanted: leave one "
            "ListenStream= in the socket unit. A port alone is for IPv4 and IPv6."
        )
    return FIRST_DESCRIPTOR


@final
class Notifier:
    """Tells systemd the state of this process; nothing where there is no socket."""

    _log = Logger()

    def __init__(self, environment: Mapping[str, str], process: int) -> None:
        """
        @param environment: its variables.
        @param process: the id of this process: the watchdog may be another one's.
        """
        self._path = environment.get("NOTIFY_SOCKET", "")
        time_us = environment.get("WATCHDOG_USEC", "")
        is_ours = environment.get("WATCHDOG_PID", str(process)) == str(process)
        self._seconds = int(time_us) / 1e6 if is_ours and time_us.isdigit() else 0.0

    def follow(self, reactor: Any, ready: Deferred[None]) -> None:
        """Tell when the server is ready, and when it stops.

        @param ready: fires when clients find the server.
        """
        if self._path:
            ready.addCallback(lambda _: self.notify(READY))
            if self._seconds:
                ready.addCallback(lambda _: self._live(reactor))
            reactor.addSystemEventTrigger("before", "shutdown", self.notify, STOPPING)

    def _live(self, reactor: Any) -> None:
        """Tell that the reactor goes round, again and again."""
        self.notify(WATCHDOG)
        reactor.callLater(self._seconds / TIMES, self._live, reactor)

    def notify(self, state: str) -> None:
        """Tell a state; what goes wrong is logged."""
        path = self._path
        name = "\0" + path[1:] if path.startswith("@") else path
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as peer:
                peer.settimeout(MAX_SECONDS)
                peer.sendto(state.encode(), name)
        except OSError as error:
            self._log.warn(
                "systemd was not told {state}: {path}: {reason}.",
                state=state,
                path=path,
                reason=error.strerror or "no answer",
            )
