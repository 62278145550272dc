# -*- test-case-name: tests.arrow.test_reading -*-
"""Opening the origin that a read's options name, once per process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rocketbroker.sources.network import NetworkOrigin
from rocketbroker.sources.offline import StoreOrigin
from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.source import Origin

#: So many origins stay open in a process; a session that reads with ever new options
#: would else collect connections.
MAX_OPEN: Final = 8


def open_origin(options: ReadOptions) -> Origin:
    """A new origin for these options."""
    return StoreOrigin(options) if options.store else NetworkOrigin(options)


class SharedOrigins:
    """Origins that outlive a task: workers are reused, and connecting costs time."""

    def __init__(self, make: Callable[[ReadOptions], Origin]) -> None:
        """
        @param make: opens an origin.
        """
        self._make = make
        self._open: dict[ReadOptions, Origin] = {}

    def get(self, options: ReadOptions) -> Origin:
        """The origin for these options; the one unused longest may be closed."""
        origin = self._open.pop(options, None)
        if origin is None:
            while len(self._open) >= MAX_OPEN:
                self._open.pop(next(iter(self._open))).close()
            origin = self._make(options)
        self._open[options] = origin
        return origin


_shared = SharedOrigins(open_origin)


def shared_origin(options: ReadOptions) -> Origin:
    """The origin for these options in this process."""
    return _shared.get(options)
