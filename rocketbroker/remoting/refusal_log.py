# -*- test-case-name: tests.remoting.test_refusal_log -*-
"""Lines of the log about what was refused, at most one in a second.

Whoever can reach a port can be refused as often as it likes, and must not fill the disk
with lines by that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final, final

from twisted.logger import Logger

#: How long nothing else is logged after a line.
PAUSE_SECONDS: Final = 1.0


@final
class RefusalLog:
    """Logs refusals, and how many were not logged."""

    _log: ClassVar[Logger] = Logger()

    def __init__(self, seconds: Callable[[], float]) -> None:
        """
        @param seconds: tells monotonic time.
        """
        self._seconds = seconds
        self._silent_until = float("-inf")
        self._left_out = 0

    def say(self, sentence: str) -> None:
        """Log a sentence, if none was logged in the last second."""
        now = self._seconds()
        if now < self._silent_until:
            self._left_out += 1
            return
        self._silent_until = now + PAUSE_SECONDS
        more = f" ({self._left_out} more before it)" if self._left_out else ""
        self._left_out = 0
        self._log.warn("{sentence}{more}", sentence=sentence, more=more)


#: Of so many addresses it is known that they have had their line; of more, the first
#: is forgotten, and may have another.
MAX_ADDRESSES: Final = 1024

#: How long an address has no other line.
ADDRESS_SECONDS: Final = 3600.0


@final
class AddressRefusals:
    """Logs the refusals of each address once in an hour, for what a scraper or a broker
    does again and again until somebody changes its settings."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        """
        @param seconds: tells monotonic time.
        """
        self._seconds = seconds
        self._lines = RefusalLog(seconds)
        self._told: dict[str, float] = {}

    def say(self, host: str, sentence: str) -> None:
        """Log a sentence about a host, if it is the first in this hour."""
        now = self._seconds()
        if now - self._told.get(host, -ADDRESS_SECONDS) < ADDRESS_SECONDS:
            return
        self._told.pop(host, None)
        if len(self._told) >= MAX_ADDRESSES:
            del self._told[next(iter(self._told))]
        self._told[host] = now
        self._lines.say(sentence)
