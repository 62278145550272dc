"""A plug-in that keeps what it sees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from zope.interface import implementer

from rocketbroker.store.dispatched_record import DispatchedRecord
from rocketbroker.store.plugins import IFollowerPlugin, IRecordFollower


@implementer(IRecordFollower)
class Recorder:
    """A follower that keeps what it sees, and fails when it is told to."""

    def __init__(self) -> None:
        self.calls: list[object] = []
        self.seen: list[int] = []
        self.failing = 0
        self.begin: int | None = None

    def start(self, remembered: int | None, end: int) -> int:
        """See L{IRecordFollower.start}."""
        self.calls.append(("start", remembered, end))
        self._perhaps_fail()
        if self.begin is not None:
            return self.begin
        return remembered or 0

    def follow(self, records: Sequence[DispatchedRecord]) -> None:
        """See L{IRecordFollower.follow}."""
        self.calls.append(len(records))
        self._perhaps_fail()
        self.seen += [record.queue_offset for record in records]

    def stop(self) -> None:
        """See L{IRecordFollower.stop}."""
        self.calls.append("stop")

    def _perhaps_fail(self) -> None:
        if self.failing:
            self.failing -= 1
            raise ValueError("no")


@implementer(IFollowerPlugin)
class Plugin:
    """Gives always the same follower."""

    name = "recorder"

    def __init__(self) -> None:
        self.recorder = Recorder()
        self.given: list[object] = []

    def follower(
        self,
        folder: str,
        settings: Mapping[str, str],
        record_at: Callable[[int], bytes | None],
    ) -> Recorder:
        """See L{IFollowerPlugin.follower}."""
        self.given = [folder, settings, record_at]
        return self.recorder
