# -*- test-case-name: tests.broker.test_running_settings -*-
"""The settings of a broker as they are now, and who is told when they change.

Options stay frozen objects. A part that obeys a change has C{configure}: it takes the
new options in the place of those that it was made with, and what it had made of them,
an answer's fields for instance. So the data path reads plain attributes, as before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, final

from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.wire.bodies.topics import DataVersion


class Configurable(Protocol):
    """A part that obeys the broker's settings as they are."""

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""


@final
class RunningSettings:
    """The settings in force.

    @ivar current: another object after each change.
    @ivar version: moves with each change; request 26 tells it.
    """

    def __init__(self, settings: BrokerSettings, wall_ms: Callable[[], int]) -> None:
        self.current = settings
        self.version = DataVersion(timestamp=wall_ms())
        self._wall_ms = wall_ms
        self._told: list[Callable[[BrokerSettings], None]] = []

    def watch(self, told: Callable[[BrokerSettings], None]) -> None:
        """Call C{told} with the settings after each change."""
        self._told.append(told)

    def change(self, texts: Mapping[str, str]) -> None:
        """Take other values, all of them or none.

        @param texts: the values that a request wants, by key.
        @raise NoPermission: a key that a request may not change.
        @raise SystemFailure: a value that does not fit.
        """
        self.current = self.current.changed(texts)
        self.version = self.version.next(self._wall_ms())
        for told in self._told:
            told(self.current)
