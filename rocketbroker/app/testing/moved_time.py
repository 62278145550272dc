# -*- test-case-name: tests.app.testing.test_moved_time -*-
"""The time of a broker whose time tests move: its clocks, and the age of its files.

A broker is given each of its clocks, so one that is ahead of the machine's is all that
there is to it: what is due, expired or too old follows. Only what was put on the
reactor before must be told, as C{twisted.internet.task.Clock} does it: each call that
waits is moved to an earlier time of the reactor.

One thing is not given by a clock: the system writes the time of a file's last change,
by which retention goes. So it is remembered when time was moved, and by how much. The
system's time has ticks of at most 10 ms: whoever moves time lets L{TICK_SECONDS}
pass before others write.

Connections, name servers and slaves keep the time of the machine. So do clients, and
what they say about now is moved with the broker (L{MovedTime.restamp}): a
transaction's half message would be older than its retention otherwise, and a pop would
have waited for days.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast, final

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from zope.interface import implementer

from rocketbroker.files.interfaces import IFiles
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command

#: Files that are written so long after a move have a later time than it.
TICK_SECONDS: Final = 0.02

#: Fields in which clients say what time it is, by request code.
NOW_FIELDS: Final = {
    RequestCode.SEND_MESSAGE: "bornTimestamp",
    RequestCode.SEND_MESSAGE_V2: "g",
    RequestCode.SEND_BATCH_MESSAGE: "g",
    RequestCode.SEND_REPLY_MESSAGE: "bornTimestamp",
    RequestCode.SEND_REPLY_MESSAGE_V2: "g",
    RequestCode.POP_MESSAGE: "bornTime",
    RequestCode.NOTIFICATION: "bornTime",
}


@final
@implementer(IDelayedCall)
class MovedCall:
    """A call that waits on the reactor, and has its time by the broker's clock."""

    def __init__(
        self,
        time: MovedTime,
        delay: float,
        work: Callable[[], object],
    ) -> None:
        self._time = time
        self._work = work
        self._call: Any = time.reactor.callLater(delay, self._fire)

    def _fire(self) -> None:
        self._time.waiting.pop(self, None)
        self._work()

    def getTime(self) -> float:
        """When it is called, by the broker's clock."""
        return float(self._call.getTime()) + self._time.ahead_ms / 1000

    def cancel(self) -> None:
        """Do not call it."""
        self._call.cancel()
        self._time.waiting.pop(self, None)

    def delay(self, secondsLater: float) -> None:
        """Call it later than it would be."""
        self._call.delay(secondsLater)

    def reset(self, secondsFromNow: float) -> None:
        """Call it so many seconds from now."""
        self._call.reset(secondsFromNow)

    def active(self) -> bool:
        """Whether it has been neither called nor cancelled."""
        return bool(self._call.active())

    def hasten(self, seconds: float) -> None:
        """Call it so much earlier on the reactor, at once if that is over."""
        left = self._call.getTime() - self._time.reactor.seconds()
        self._call.reset(max(0.0, left - seconds))


@final
@implementer(IReactorTime)
class MovedTime:
    """The clocks of a broker, ahead of the machine's.

    @ivar reactor: the reactor, whose time nobody moves.
    @ivar ahead_ms: how far they are ahead, in milliseconds.
    @ivar waiting: the calls that wait, in the order in which they were asked for.
    """

    def __init__(self, reactor: Any, wall_ms: Callable[[], int]) -> None:
        """
        @param wall_ms: the machine's time of day.
        """
        self.reactor = reactor
        self.ahead_ms = 0
        self.waiting: dict[MovedCall, None] = {}
        self._machine_ms = wall_ms
        #: When it was moved, by the machine, and how far it was ahead from then on.
        self._moves: list[tuple[int, int]] = []

    def seconds(self) -> float:
        """The monotonic time."""
        return float(self.reactor.seconds()) + self.ahead_ms / 1000

    def wall_ms(self) -> int:
        """The time of day."""
        return self._machine_ms() + self.ahead_ms

    def callLater(
        self, delay: float, callable: Callable[..., object], *args: Any, **kw: Any
    ) -> MovedCall:
        """Call after so many seconds, or when time is moved beyond them."""
        call = MovedCall(self, delay, lambda: callable(*args, **kw))
        self.waiting[call] = None
        return call

    def getDelayedCalls(self) -> list[MovedCall]:
        """The calls that wait."""
        return list(self.waiting)

    def move(self, milliseconds: int) -> None:
        """Move time forward. What becomes due is called by the reactor's next round, in
        the order of its times."""
        self._moves.append((self._machine_ms(), self.ahead_ms + milliseconds))
        waiting = sorted(self.waiting, key=MovedCall.getTime)
        self.ahead_ms += milliseconds
        for call in waiting:
            call.hasten(milliseconds / 1000)

    def was_at(self, machine_ms: int) -> int:
        """The broker's time of day when it was C{machine_ms} by the machine."""
        for moved_at, ahead_ms in reversed(self._moves):
            if machine_ms > moved_at:
                return machine_ms + ahead_ms
        return machine_ms

    def restamp(self, request: Command) -> None:
        """Move what a client says about now, which it reads off the machine's clock."""
        field = NOW_FIELDS.get(cast(RequestCode, request.code))
        text = request.ext.get(field, "") if field and request.ext else ""
        if self.ahead_ms and text.isascii() and text.isdigit() and int(text):
            assert field is not None and request.ext is not None
            request.ext[field] = str(int(text) + self.ahead_ms)


@final
class MovedFiles:
    """A disk whose files have changed when it was by the broker's clock."""

    def __init__(self, files: IFiles, time: MovedTime) -> None:
        self._files = files
        self._time = time

    def __getattr__(self, name: str) -> object:
        return getattr(self._files, name)

    def modified_ms(self, path: str) -> int:
        """See L{IFiles.modified_ms}."""
        return self._time.was_at(self._files.modified_ms(path))


def moved_files(files: IFiles, time: MovedTime) -> IFiles:
    """The same disk, with the times of a broker whose time is moved."""
    return cast(IFiles, MovedFiles(files, time))
