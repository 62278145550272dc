# -*- test-case-name: tests.workers.test_lock_watch -*-
"""The watch over the append lock: a worker that hangs while it has it is killed.

Once a second the owner takes the lock itself. While that is in vain the kernel says who
has it. One that is a worker, and has said nothing for L{HANGS_SECONDS}, is killed: its
append is undone by whoever takes the lock next. Another worker that merely waits says
how it does, and lives. A holder that waits for the disk ends when that answers, killed
or not, and then may as well go on; one that is no worker is not ours to kill.
C{/healthz} names whoever it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from rocketbroker.store.sharing.sharing import Sharing

#: How often the lock is looked at.
LOCK_LOOK_SECONDS: Final = 1.0

#: A holder hangs that has had the lock, and has said nothing, for so long.
HANGS_SECONDS: Final = 10.0

#: The owner itself was stopped if the last look is longer ago.
LATE_SECONDS: Final = 3.0


@final
class LockWatch:
    """The watch of one owner.

    @ivar killed: how many workers were killed.
    """

    _log = Logger()

    def __init__(self, clock: IReactorTime, sharing: Sharing) -> None:
        self.killed = 0
        self._clock = clock
        self._sharing = sharing
        self._looked_at = 0.0
        self._since: float | None = None

    def started(self, process: int) -> None:
        """There is one more worker."""
        self._sharing.joined.add(process)

    def ended(self, process: int) -> None:
        """A worker has ended."""
        self._sharing.joined.remove(process)

    def look(self, heard: Mapping[int, float]) -> None:
        """Look once.

        @param heard: when each worker was heard of last, by the id of its process.
        """
        sharing, now = self._sharing, self._clock.seconds()
        was_late = now - self._looked_at > LATE_SECONDS
        self._looked_at = now
        if sharing.mend() or not sharing.is_held:
            # It was had, or another thread of the owner has it.
            self._since, sharing.problem = None, ""
            return
        if self._since is None or was_late:
            # What the workers have said meanwhile is not read yet.
            self._since = now
        holder, since = sharing.holder(), self._since
        who = sharing.joined.describe(holder)
        sentence = f"{who} has held the append lock for {int(now - since)} s."
        sharing.problem = f"Nothing can be stored: {sentence}"
        if since == now:
            self._log.error(
                "Nothing can be stored: {who} has the append lock.", who=who
            )
        latest = now - HANGS_SECONDS
        silent = holder in heard and heard[holder] <= latest
        if silent and since <= latest and sharing.joined.end(holder):
            self.killed += 1
            self._since = now
            self._log.error(
                "A worker hangs with the append lock, and is killed: {who} said "
                "nothing for {seconds} s.",
                who=who,
                seconds=int(HANGS_SECONDS),
            )
