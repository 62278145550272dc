# -*- test-case-name: tests.store.commitlog.test_writer -*-
"""A pause of appends after a write error: its reason, and when the disk is tried again.

A disk that has refused is tried again after a while, by the next append or by the
thread that makes room ahead, whichever comes first. Appends that another part of the
store forbids, through its running flags, are not tried at all: that part lifts its own
flag.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from rocketbroker.store.disk_usage import NO_ROOM
from rocketbroker.store.running_flags import (
    DISK_FULL,
    NOT_APPENDABLE,
    NOT_WRITEABLE,
    RunningFlags,
)

#: How often, in ms, an append tries again on a disk that was full.
RETRY_MS: Final = 500

_BY: Final = "log"


@final
class WriteBackoff:
    """The state of appends after the disk of the log has refused a write.

    @ivar reason: a sentence; empty while appends are taken.
    """

    __slots__ = ("_flags", "_make_room", "_retry_at_ms", "_wall_ms", "reason")

    def __init__(
        self,
        flags: RunningFlags,
        wall_ms: Callable[[], int],
        make_room: Callable[[], object],
    ) -> None:
        """
        @param make_room: tries again; raises C{OSError} if there is still none.
        """
        self.reason = ""
        self._flags = flags
        self._wall_ms = wall_ms
        self._make_room = make_room
        self._retry_at_ms = 0

    def begin(self, reason: str, error: OSError) -> None:
        """Refuse appends from now on."""
        self.reason = reason
        full = error.errno in NO_ROOM
        self._flags.set(DISK_FULL, full, reason, _BY)
        self._flags.set(NOT_WRITEABLE, not full, reason, _BY)
        self._retry_at_ms = self._wall_ms() + RETRY_MS

    def end(self) -> None:
        """Take appends again."""
        if self.reason:
            self.reason = ""
            self._flags.set(DISK_FULL, False, by=_BY)
            self._flags.set(NOT_WRITEABLE, False, by=_BY)

    def allows(self, now_ms: int) -> bool:
        """Whether something may be appended now; this may try the disk again."""
        if self._flags.held_by_others(_BY) & NOT_APPENDABLE:
            return False
        return not self.reason or self._may_retry(now_ms)

    def _may_retry(self, now_ms: int) -> bool:
        """Whether to try again; a clock that was set back does not put it off."""
        if self._retry_at_ms - RETRY_MS <= now_ms < self._retry_at_ms:
            return False
        self._retry_at_ms = now_ms + RETRY_MS
        try:
            self._make_room()
        except OSError:
            return False
        return True
