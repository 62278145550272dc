# -*- test-case-name: tests.app.test_systemd -*-
"""What a server tells systemd: that it is ready, and that it stops.

A unit with C{Type=notify} has a socket for that, named by C{NOTIFY_SOCKET}; see
sd_notify(3). Units that depend on it wait until it is ready.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any, Final, final

from twisted.internet.defer import Deferred
from twisted.logger import Logger

READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"

#: The socket is another process's; the reactor does not wait longer for it (in s).
MAX_SECONDS: Final = 1.0


@final
class Notifier:
    """Tells systemd the state of this process; nothing where there is no socket."""

    _log = Logger()

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._path = environment.get("NOTIFY_SOCKET", "")

    def follow(self, reactor: Any, ready: Deferred[None]) -> None:
        """Tell when the server is ready, and when it stops.

        @param ready: fires when clients find the server.
        """
        if self._path:
            ready.addCallback(lambda _: self.notify(READY))
            reactor.addSystemEventTrigger("before", "shutdown", self.notify, STOPPING)

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
