# -*- test-case-name: tests.broker.schedule.test_delay_offsets -*-
"""C{delayOffset.json}: the offset of each delay level; request 45 asks for it.

The file is RocketMQ's, read and written: level to queue offset
(C{docs/facts/store.md} 18, 21).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, final

import attrs
from twisted.internet.defer import Deferred

from rocketbroker.broker.json_bodies import with_body
from rocketbroker.broker.json_table import JsonTable
from rocketbroker.broker.metadata.topics import loaded_version
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.config.levels import MAX_LEVELS
from rocketbroker.remoting.interfaces import IConnection, IResponderTable
from rocketbroker.wire.bodies.topics import DataVersion
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.fields import integer_of

#: So many versions ahead of what it was told last a slave's table is that acts for its
#: master: more than a master can make in the minute between two looks of the slave.
LEAD: Final = 1000


@final
class DelayOffsets:
    """The table and its file.

    @ivar version: moves every delayOffsetUpdateVersionStep changes.
    """

    def __init__(self, file: JsonTable, step: int, wall_ms: Callable[[], int]) -> None:
        """
        @param step: delayOffsetUpdateVersionStep.
        """
        self.version = DataVersion(timestamp=wall_ms())
        self._file = file
        self._step = max(1, step)
        self._wall_ms = wall_ms
        self._offsets: dict[int, int] = {}
        self._changes = 0
        self._changed = False

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._step = max(1, settings.broker.delay_offset_update_version_step)

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        table.register(RequestCode.GET_ALL_DELAY_OFFSET, self.all_offsets)

    def all_offsets(self, connection: IConnection, request: Command) -> Command:
        """Request 45: the table in the form of its file."""
        return with_body(request, self.to_json())

    def load(self) -> None:
        """I{Blocking.} Read the file; what makes no sense in it is left out."""
        value = self._file.load()
        if value is None:
            return
        self._offsets.update(loaded_levels(value))
        self.version = loaded_version(value, self.version)

    def lead(self) -> None:
        """This slave acts for the master: its table is newer than any that the master
        can have left. RocketMQ's masters do not take it back otherwise."""
        version = self.version
        self.version = attrs.evolve(version, counter=version.counter + LEAD)

    def take_back(self, value: Mapping[str, object]) -> None:
        """Take over what a slave has delivered while this broker was away.

        @param value: the slave's table, as its file has it. No level goes back: what
            either of both has delivered is not delivered again.
        """
        for level, offset in loaded_levels(value).items():
            self.put(level, max(offset, self._offsets.get(level, 0)))
        version = loaded_version(value, self.version)
        if version.is_newer_than(self.version):
            self.version = version

    def become(self, value: Mapping[str, object]) -> None:
        """Be a copy of a master's table."""
        before, self._offsets = self._offsets, loaded_levels(value)
        self.version = loaded_version(value, self.version)
        self._changed = self._changed or self._offsets != before

    def get(self, level: int) -> int | None:
        """The offset of a level; None if nothing is known of it."""
        return self._offsets.get(level)

    def put(self, level: int, offset: int) -> None:
        """Remember that everything of a level before C{offset} is delivered."""
        if self._offsets.get(level) == offset:
            return
        self._offsets[level] = offset
        self._changed = True
        self._changes += 1
        if self._changes % self._step == 0:
            self.version = self.version.next(self._wall_ms())

    def to_json(self) -> dict[str, object]:
        """The content of the file."""
        return {
            "dataVersion": self.version.to_json(),
            "offsetTable": dict(self._offsets),
        }

    def save(self) -> None:
        """Write the file in a thread if it is behind the table."""
        if self._changed or self._file.failed:
            self._changed = False
            self._file.save_soon(self.to_json)

    def saved(self) -> Deferred[None]:
        """Fires when no write of the file is under way."""
        return self._file.idle()


def loaded_levels(value: Mapping[Any, object]) -> dict[int, int]:
    """The offsets by level in a file; what makes no sense is left out."""
    table = value.get("offsetTable")
    found: dict[int, int] = {}
    for name, offset in table.items() if isinstance(table, dict) else ():
        level = integer_of(name)
        if (
            level is not None
            and 0 < level <= MAX_LEVELS
            and isinstance(offset, int)
            and 0 <= offset < 1 << 63
        ):
            found[level] = offset
    return found
