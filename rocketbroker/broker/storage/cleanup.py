# -*- test-case-name: tests.broker.storage.test_cleanup -*-
"""When the store looks at its disks, and when it is cleaned.

A look comes once a second: it costs microseconds, a disk can fill within the ten
seconds after which the reference looks, and who waits for space does not want to wait
ten more. A round of cleaning comes every cleanResourceInterval, the first one a minute
after the start; its steps have pauses between them, so that a disk that removes large
files slowly has time for others.

Both run in a thread, as a disk that hangs would let it hang; each once at a time.
Operators may ask for what has expired to go with the next rounds, whatever the hour is.

The store sheet, section 17; the admin sheet, section 2.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, final

from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from rocketbroker.broker.background_work import InThread
from rocketbroker.config.store import StoreOptions
from rocketbroker.remoting.interfaces import IConnection, IResponderTable
from rocketbroker.store.interfaces import IStore
from rocketbroker.store.running_flags import NOT_APPENDABLE
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command, response_to

#: How often to look at the disks.
LOOK_SECONDS: Final = 1.0

#: When the first round of cleaning comes.
FIRST_ROUND_SECONDS: Final = 60.0


@final
class Cleanup:
    """Keeps an eye on the disks, and removes what is not needed any more.

    @ivar rounds: how many rounds of cleaning have ended.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        store: IStore,
        options: StoreOptions,
        in_thread: InThread,
    ) -> None:
        self.rounds = 0
        self._clock = clock
        self._store = store
        self._seconds = options.clean_resource_interval / 1000.0
        self._in_thread = in_thread
        self._refused = False
        self._stopped = False
        self._removed = (0, 0)
        self._hanging = ""
        self._working: dict[str, Deferred[None]] = {}
        self._looks = LoopingCall(self._look)
        self._looks.clock = clock
        self._next: IDelayedCall | None = None

    def start(self) -> None:
        """Begin."""
        self._looks.start(LOOK_SECONDS, now=False)
        self._next = self._clock.callLater(FIRST_ROUND_SECONDS, self._round)

    def stop(self) -> Deferred[None]:
        """End; fires when no thread works for it any more."""
        self._stopped = True
        if self._looks.running:
            self._looks.stop()
        if self._next is not None:
            self._next.cancel()
            self._next = None
        waiting: list[Deferred[None]] = []
        for working in self._working.values():
            done: Deferred[None] = Deferred()
            working.chainDeferred(done)
            waiting.append(done)
        return DeferredList(waiting).addCallback(lambda _: None)

    def _run(
        self, name: str, step: Callable[[], object], ended: Callable[[object], None]
    ) -> None:
        """Run a step in a thread; what it failed with is logged.

        @param ended: given its result, or the failure.
        """
        over: Deferred[None] = Deferred()
        self._working[name] = over

        def done(result: object) -> None:
            del self._working[name]
            if isinstance(result, Failure):
                self._log.failure("The store's {name} failed.", result, name=name)
            if not self._stopped:
                ended(result)
            over.callback(None)

        self._in_thread(step).addBoth(done)

    # Being asked.

    def register(self, table: IResponderTable) -> None:
        """Answer on a port."""
        table.register(RequestCode.DELETE_EXPIRED_COMMITLOG, self.expire)

    def expire(self, connection: IConnection, request: Command) -> Command:
        """Request 329: what has expired goes with the next rounds."""
        self._store.cleaner.expire_now()
        return response_to(request)

    # Looking.

    def _look(self) -> None:
        if "look at its disks" not in self._working:
            self._run("look at its disks", self._store.look_at_disk, self._looked)

    def _looked(self, _: object) -> None:
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

    # Cleaning.

    def _round(self) -> None:
        self._step(self._store.clean())

    def _step(self, steps: Iterator[int]) -> None:
        self._next = None

        def ended(pause_ms: object) -> None:
            if isinstance(pause_ms, int):
                self._next = self._clock.callLater(pause_ms / 1000, self._step, steps)
                return
            self._next = self._clock.callLater(self._seconds, self._round)
            self.rounds += 1
            self._tell()

        self._run("cleaning", lambda: next(steps, None), ended)

    def _tell(self) -> None:
        """Say what has gone, and what could not."""
        cleaner = self._store.cleaner
        removed = cleaner.removed_segments, cleaner.removed_files
        if removed != self._removed:
            self._log.info(
                "Removed {segments} commit log files and {files} files of queues and "
                "index; the log begins at {position}.",
                segments=removed[0] - self._removed[0],
                files=removed[1] - self._removed[1],
                position=self._store.min_position,
            )
            self._removed = removed
        if cleaner.hanging and cleaner.hanging != self._hanging:
            self._log.error("{sentence}", sentence=cleaner.hanging)
        self._hanging = cleaner.hanging
