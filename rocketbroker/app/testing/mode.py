# -*- test-case-name: tests.app.testing.test_mode -*-
"""Testing mode: puts moved time and faults into a broker, and answers for them.

Requests of ours, which a broker without testing mode does not know:

  - 31010 L{RequestCode.TESTING_FAULTS
    <rocketbroker.wire.codes.RequestCode.TESTING_FAULTS>}: L{Faults.respond};
  - 31011 L{RequestCode.TESTING_TIME
    <rocketbroker.wire.codes.RequestCode.TESTING_TIME>}: moves time by
    C{advanceMillis}, 0 unless given, and says C{timeMillis}, the broker's time of day,
    and C{aheadMillis}, how far that is ahead of the machine's. With C{keepClients=true}
    clients have not been silent meanwhile.

A move is done when its answer comes: what has expired is removed. Each service of the
broker runs once, whatever its period: transactions are checked, silent clients are
forgotten. So a move of a minute does what a minute in which the broker slept would do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, final

from twisted.internet.defer import Deferred, DeferredLock
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from rocketbroker.app.testing.faults import Faults
from rocketbroker.app.testing.moved_time import TICK_SECONDS, MovedTime, moved_files
from rocketbroker.broker.broker import Broker
from rocketbroker.errors import InvalidParameter
from rocketbroker.files.interfaces import IFiles
from rocketbroker.remoting.interfaces import IConnection
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command

#: How far time can be moved at once: ten years. Timers go through all seconds of it,
#: which takes half a second for a year.
MAX_MOVE_MS: Final = 10 * 365 * 86_400_000

#: How long the index is waited for, in ticks: what is not in it stays.
MAX_TICKS: Final = 100

#: How many rounds of removal follow a move: each removes some files.
MAX_ROUNDS: Final = 100


@final
class TestingMode:
    """The time and the faults of one broker.

    @ivar time: its clocks.
    @ivar faults: what fails.
    """

    _log = Logger()

    def __init__(self, reactor: IReactorTime, wall_ms: Callable[[], int]) -> None:
        """
        @param reactor: its time is the machine's.
        @param wall_ms: the machine's time of day.
        """
        self.time = MovedTime(reactor, wall_ms)
        self.faults = Faults(reactor, self.time.wall_ms)
        self._reactor = reactor
        self._moves = DeferredLock()
        self._broker: Broker | None = None

    def files(self, files: IFiles) -> IFiles:
        """The disk of the broker."""
        return moved_files(files, self.time)

    def front(self, table: ResponderTable) -> ResponderTable:
        """The table of a port.

        @param table: the broker's.
        """
        front = self.faults.front(table, self.time.restamp)
        front.register(RequestCode.TESTING_FAULTS, self.faults.respond)
        front.register(RequestCode.TESTING_TIME, self.respond)
        return front

    def serve(self, broker: Broker) -> None:
        """The broker is made, whose time is this one."""
        self._broker = broker

    def standing(self) -> list[str]:
        """Sentences for C{/healthz}."""
        days, seconds = divmod(self.time.ahead_ms / 1000, 86_400)
        rules = sum(not rule.is_over for rule in self.faults.rules.values())
        return [
            "testing: any program on this machine can move the time of this broker "
            f"and let it fail; it is {days:.0f} d {seconds:.0f} s ahead, with {rules} "
            "rules of faults."
        ]

    def respond(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        """Request 31011: see the head of this module."""
        ext = request.ext or {}
        text = ext.get("advanceMillis", "0")
        if not (text.isascii() and text.isdigit()) or int(text) > MAX_MOVE_MS:
            raise InvalidParameter(
                f"advanceMillis cannot be {text}: time goes forward only, by whole "
                f"milliseconds, {MAX_MOVE_MS} at most."
            )
        keeps = ext.get("keepClients", "").lower() == "true"
        moved: Deferred[Any] = self._moves.run(
            lambda: Deferred.fromCoroutine(self._move(int(text), keeps))
        )
        return moved.addCallback(lambda _: self._told())

    def _told(self) -> Command:
        now, ahead = self.time.wall_ms(), self.time.ahead_ms
        ext = {"timeMillis": str(now), "aheadMillis": str(ahead)}
        return Command(ResponseCode.SUCCESS, ext)

    async def _move(self, milliseconds: int, keeps_clients: bool) -> None:
        """Move time, and let the broker do what is due."""
        broker = self._broker
        assert broker is not None
        if not milliseconds:
            return
        # What is not flushed stays, however old.
        await broker.context.in_thread(broker.store.flush)
        self.time.move(milliseconds)
        self._log.info(
            "Time was moved by {seconds} s; it is {ahead} s ahead.",
            seconds=milliseconds / 1000,
            ahead=self.time.ahead_ms / 1000,
        )
        if keeps_clients:
            broker.clients.keep(milliseconds / 1000)
        store = broker.store
        for _ in range(MAX_TICKS):
            # What is due on the reactor comes first; and later files have later times.
            await self._tick()
            if not store.index_behind:
                break
        cleaner, cleanup = store.cleaner, broker.storage.cleanup
        cleaner.expire_now()
        broker.services.run_now()
        for _ in range(MAX_ROUNDS):
            before = cleaner.removed_segments
            await cleanup.round()
            if cleaner.removed_segments == before:
                break

    def _tick(self) -> Deferred[None]:
        tick: Deferred[None] = Deferred()
        self._reactor.callLater(TICK_SECONDS, tick.callback, None)
        return tick
