# -*- test-case-name: tests.broker.test_retention -*-
"""When the store looks at its disks.

Once a second: a look costs microseconds, a disk can fill within the ten seconds after
which the reference looks, and who waits for space does not want to wait ten more.
Looks run in a thread, as a disk that hangs would let it hang; one at a time.

The store sheet, section 17.
"""

from __future__ import annotations

from typing import Final, final

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from rocketbroker.broker.durability import InThread
from rocketbroker.store.flags import NOT_APPENDABLE
from rocketbroker.store.interfaces import IStore

#: How often to look at the disks.
LOOK_SECONDS: Final = 1.0


@final
class Retention:
    """Keeps an eye on the disks, and tells when they are full and when no more."""

    _log = Logger()

    def __init__(self, clock: IReactorTime, store: IStore, in_thread: InThread) -> None:
        self._store = store
        self._in_thread = in_thread
        self._refused = False
        self._looking: Deferred[None] | None = None
        self._looks = LoopingCall(self._look)
        self._looks.clock = clock

    def start(self) -> None:
        """Begin."""
        self._looks.start(LOOK_SECONDS, now=False)

    def stop(self) -> Deferred[None]:
        """End; fires when no thread works for it any more."""
        if self._looks.running:
            self._looks.stop()
        return self._looking if self._looking is not None else succeed(None)

    def _look(self) -> None:
        if self._looking is not None:
            return
        done: Deferred[None] = Deferred()
        self._looking = done

        def ended(_: object) -> None:
            self._looking = None
            self._tell()
            done.callback(None)

        self._in_thread(self._store.look_at_disk).addBoth(ended)

    def _tell(self) -> None:
        """Say it once that nothing can be stored, and once that it can again."""
        flags = self._store.flags
        refused = bool(flags.bits & NOT_APPENDABLE)
        if refused == self._refused:
            return
        self._refused = refused
        if refused:
            self._log.error(
                "Nothing is stored: {reason}", reason=flags.reasons(NOT_APPENDABLE)
            )
        else:
            self._log.info("Messages are stored again.")
