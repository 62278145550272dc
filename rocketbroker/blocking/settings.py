# -*- test-case-name: tests.blocking.test_routes -*-
"""The settings of a client."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs

from rocketbroker.auth.signatures import Credentials
from rocketbroker.blocking.machine import Machine, ThisMachine
from rocketbroker.config.addresses import name_server_list
from rocketbroker.config.certificates import ClientTls
from rocketbroker.errors import ConfigurationError
from rocketbroker.wire.frames import MAX_BYTES

__all__ = ["ROUTE_SECONDS", "Settings", "name_server_list"]

#: After this long a route is asked for again.
ROUTE_SECONDS: Final = 30.0


def _joined(given: str | Iterable[str]) -> str:
    return given if isinstance(given, str) else ";".join(name_server_list(given))


@attrs.frozen
class Settings:
    """The settings of a client; they travel to executors.

    @ivar name_servers: C{host:port}, separated by semicolons; a list of them is taken,
        too.
    @ivar seconds: how long a request may take.
    @ivar attempts: how often a request is tried that another try may cure.
    @ivar pause: seconds between two tries.
    @ivar route_seconds: how old a route may become.
    @ivar max_frame_bytes: the longest frame that we send or take.
    @ivar machine: where we run.
    @ivar patience: for how many seconds a send rides over servers that are away.
    @ivar tls: how servers are spoken to by TLS; C{None}: they are not.
    @ivar credentials: requests are signed with them; C{None}: they are not.
    """

    name_servers: str = attrs.field(converter=_joined)
    seconds: float = 3.0
    attempts: int = 3
    pause: float = 0.2
    route_seconds: float = ROUTE_SECONDS
    max_frame_bytes: int = MAX_BYTES
    machine: Machine = attrs.field(factory=ThisMachine)
    patience: float = 120.0
    tls: ClientTls | None = None
    credentials: Credentials | None = None

    def __attrs_post_init__(self) -> None:
        """Refuse what cannot work.

        @raise ConfigurationError: a number is too small.
        """
        for name in ("seconds", "attempts", "max_frame_bytes"):
            if getattr(self, name) <= 0:
                raise ConfigurationError(f"{name} of a client has to be more than 0")
