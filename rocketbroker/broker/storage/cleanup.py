# -*- test-case-name: tests.broker.storage.test_cleanup -*-
"""Checks of the disks, and rounds of cleaning.

The disks are looked at once a second: that costs microseconds, a disk can fill within
the ten seconds of RocketMQ's interval, and producers that wait for space do not want to
wait ten more. A round of cleaning comes every cleanResourceInterval, the first one a
minute after the start; its steps have pauses between them, so that a disk that removes
large files slowly has time for others.

Both run in a thread, as a disk that hangs would let it hang; each once at a time.
Operators may ask for expired files to be removed by the next rounds, whatever the hour.

C{docs/facts/store.md} 17; C{docs/facts/admin.md} 2.4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar, final

from twisted.internet.defer import Deferred, DeferredList, DeferredLock
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.services import Service, Services, always
from rocketbroker.remoting.interfaces import IConnection, IResponderTable
from rocketbroker.store.interfaces import IStore
from rocketbroker.store.running_flags import NOT_APPENDABLE
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command, response_to

#: How often the disks are looked at: a disk can fill within RocketMQ's ten seconds.
DISK_SECONDS: Final = 1.0

LOOK_AT_DISKS: Final = Service(
    "look at the disks",
    "sends are refused before a disk is full",
    always(DISK_SECONDS),
)
CLEANING: Final = Service(
    "cleaning of the store",
    "expired files are removed",
    lambda s: s.store.clean_resource_interval / 1000,
    always(60),
)

T = TypeVar("T")


@final
class Cleanup:
    """Watches the disks, and removes expired files.

    @ivar rounds: how many rounds of cleaning have ended.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        store: IStore,
        in_thread: InThread,
        services: Services,
    ) -> None:
        self.rounds = 0
        self._clock = clock
        self._store = store
        self._services = services
        self._in_thread = in_thread
        self._refused = False
        self._stopped = False
        self._removed = (0, 0)
        self._hanging = ""
        self._working: set[Deferred[None]] = set()
        self._pause: IDelayedCall | None = None
        self._rounds = DeferredLock()

    def start(self) -> None:
        """Begin."""
        self._services.begin(LOOK_AT_DISKS, self._look)
        self._services.begin(CLEANING, self.round)

    def stop(self) -> Deferred[None]:
        """End; fires when no thread works for it any more."""
        self._stopped = True
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        return DeferredList(list(self._working)).addCallback(lambda _: None)

    def _run(self, step: Callable[[], T]) -> Deferred[T]:
        """Run a step in a thread, for which a stop waits."""
        over: Deferred[None] = Deferred()
        self._working.add(over)

        def ended(result: T) -> T:
            self._working.discard(over)
            over.callback(None)
            return result

        return self._in_thread(step).addBoth(ended)

    # On request.

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        table.register(RequestCode.DELETE_EXPIRED_COMMITLOG, self.expire)
        table.register(RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE, self.expire_queues)

    def expire(self, connection: IConnection, request: Command) -> Command:
        """Request 329: the next rounds remove expired files, whatever the hour."""
        self._store.cleaner.expire_now()
        return response_to(request)

    def expire_queues(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        """Request 306: remove now what no queue needs whose messages are gone.

        The numbers of a queue go on, so one file of it stays. RocketMQ destroys a queue
        that is empty, and numbers from 0 again, below the offsets of its groups.
        """
        done: Deferred[None] = Deferred.fromCoroutine(self._clean_queues())
        return done.addCallback(lambda _: response_to(request))

    async def _clean_queues(self) -> None:
        steps = self._store.clean_queues()
        while not self._stopped:
            if await self._run(lambda: next(steps, None)) is None:
                break
        self._log_removed()

    # Looking.

    def _look(self) -> Deferred[None]:
        return self._run(self._store.measure_disk).addCallback(self._looked)

    def _looked(self, _: object) -> None:
        """Log once that nothing can be stored, and once that it can again."""
        flags = self._store.flags
        refused = bool(flags.bits & NOT_APPENDABLE)
        if self._stopped or refused == self._refused:
            return
        self._refused = refused
        if refused:
            self._log.error(
                "Nothing is stored: {reason}", reason=flags.reasons(NOT_APPENDABLE)
            )
        else:
            self._log.info("Messages are stored again.")

    # Cleaning.

    def round(self) -> Deferred[None]:
        """One round, after one that is under way; fires when it has ended."""
        ended: Deferred[None] = self._rounds.run(
            lambda: Deferred.fromCoroutine(self._clean())
        )
        return ended

    async def _clean(self) -> None:
        """One round: steps in threads, with pauses."""
        steps = self._store.clean()
        while True:
            pause_ms = await self._run(lambda: next(steps, None))
            if self._stopped:
                return
            if pause_ms is None:
                break
            pause: Deferred[None] = Deferred()
            self._pause = self._clock.callLater(pause_ms / 1000, pause.callback, None)
            await pause
            self._pause = None
        self.rounds += 1
        self._log_removed()

    def _log_removed(self) -> None:
        """Log the removed files, and those that cannot be removed."""
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
