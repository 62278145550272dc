# -*- test-case-name: tests.app.test_descriptors -*-
"""The limit of open files of this process: how many files and connections it allows.

Systems start a process with a soft limit of often 1,024, for the sake of old programs,
and let it raise that up to the hard limit. A server wants the hard one.
"""

from __future__ import annotations

import resource
from typing import Protocol

from twisted.logger import Logger

from rocketbroker.remoting.listener import connections_of

_log = Logger()


class ResourceLimits(Protocol):
    """The part of the module C{resource} that is used here."""

    def getrlimit(self, resource: int, /) -> tuple[int, int]:
        """The soft and the hard limit."""

    def setrlimit(self, resource: int, limits: tuple[int, int], /) -> None:
        """Change both.

        @raise OSError: the system refuses.
        @raise ValueError: the soft limit would be above the hard one, or the system's.
        """


def raise_descriptor_limit(limits: ResourceLimits) -> None:
    """Raise the soft limit of descriptors to the hard one, and log both.

    Where the system refuses, the soft limit stays.
    """
    soft, hard = limits.getrlimit(resource.RLIMIT_NOFILE)
    now = soft
    if soft != hard:
        try:
            limits.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            now = hard
        except (OSError, ValueError) as error:
            _log.warn(
                "The limit of open files stays at {soft}: {error}.",
                soft=soft,
                error=error,
            )
    _log.info(
        "Open files are limited to {now} (soft limit {soft}, hard limit {hard}); "
        "{connections} connections fit.",
        now=now,
        soft=soft,
        hard=hard,
        connections=connections_of(now),
    )


def proxied_connections(limits: ResourceLimits) -> int:
    """How many connections of clients a proxy may have, of three descriptors each."""
    soft, _ = limits.getrlimit(resource.RLIMIT_NOFILE)
    return connections_of(soft) // 3
