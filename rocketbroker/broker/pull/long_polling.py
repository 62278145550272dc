# -*- test-case-name: tests.broker.pull.test_long_polling -*-
"""Held pulls: pulls that found nothing and wait for a message.

A held pull is woken when a message arrives in its queue that its filter takes, when its
time is over, when the check every few seconds finds that the queue has grown (so that a
filter that matches nothing still gets a later offset to start from), or when its
group's offset is reset. It is dropped when its connection closes: woken later it would
answer nobody, and take messages from the client's next connection
(C{docs/facts/broker.md} trap 17).

Waking first removes it and then runs its C{resume}, which answers with whatever it
finds and does not hold again.

C{docs/facts/broker.md} 12.5.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from heapq import heapify, heappop, heappush
from typing import Final, Protocol, final

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.remoting.interfaces import IConnection, ITurns
from rocketbroker.store.interfaces import Arrival, IQueue
from rocketbroker.store.reads import Matches, MessageFilter

#: How often each queue with held pulls is looked at (with longPollingEnable).
CHECK_SECONDS: Final = 5.0

#: Subscriptions up to this length are kept, in routes and with held pulls: 100 tags of
#: 40 characters, and at the most 32 MB of them. Longer ones are looked at each time.
MAX_KEPT_CHARACTERS: Final = 4096

#: Held pulls of one connection. A client holds one pull for each queue of each group
#: that it consumes; the largest topic that is made by itself has 1024 queues. Beyond
#: it the answer is PULL_NOT_FOUND at once, and the client asks again.
MAX_HELD_PER_CONNECTION: Final = 16_384

#: How long new messages are looked at, about, for all held pulls with filters on
#: properties in one queue, in ns. The others are found by the next check, as if nothing
#: had come.
MAX_SCANNED: Final = 10_000_000

#: What all held pulls with filters on properties may cost together
#: (L{MessageFilter.cost}), as compiled expressions take memory: some ten thousand
#: ordinary ones. Beyond it too the answer is PULL_NOT_FOUND at once.
MAX_COST: Final = 32_000_000

#: How many expired entries the timer's heap may have beside the live ones.
_SPARE: Final = 1024


@final
class HeldPull:
    """A pull that waits for a message.

    @ivar connection: of the client.
    @ivar queue: where it waits.
    @ivar offset: it is woken when the queue has a message at it.
    @ivar matches: its filter, None for all.
    @ivar suspend_seconds: how long it waits at most.
    @ivar resume: called with it when it is woken.
    @ivar request: what C{resume} needs; not looked at here.
    @ivar waits: whether it is still held.
    """

    __slots__ = (
        "connection",
        "matches",
        "offset",
        "queue",
        "request",
        "resume",
        "suspend_seconds",
        "waits",
    )

    def __init__(
        self,
        connection: IConnection,
        queue: IQueue,
        offset: int,
        matches: Matches,
        suspend_seconds: float,
        resume: Callable[[HeldPull], None],
        request: object,
    ) -> None:
        self.connection = connection
        self.queue = queue
        self.offset = offset
        self.matches = matches
        self.suspend_seconds = suspend_seconds
        self.resume = resume
        self.request = request
        self.waits = False


class HasWanted(Protocol):
    """A store, as far as it is needed here."""

    def has_wanted(
        self, queue: IQueue, offset: int, max_messages: int, wanted: MessageFilter
    ) -> tuple[bool, int]:
        """See L{IStore.has_wanted<rocketbroker.store.interfaces.IStore.has_wanted>}."""


class OtherWaiters(Protocol):
    """Pulls that wait in other processes."""

    @property
    def held(self) -> int:
        """How many there are."""

    def arrived(self, queue: IQueue) -> None:
        """A queue has grown."""

    def wake_all(self) -> None:
        """What they wait for will not be given to them."""


@final
class LongPolling:
    """The held pulls of a broker, by queue.

    @ivar held: how many there are.
    @ivar woken: how many were woken by a message or a check.
    @ivar expired: how many were woken because their time was over.
    @ivar dropped: how many went with their connection.
    @ivar refused: how many were not held because there were too many.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        store: HasWanted,
        options: BrokerOptions,
        turns: ITurns,
    ) -> None:
        """
        @param turns: whose time is over is answered in one.
        """
        self.held = 0
        self.woken = 0
        self.expired = 0
        self.dropped = 0
        self.refused = 0
        self._others: OtherWaiters | None = None
        self._clock = clock
        self._store = store
        self._turns = turns
        self.obey(options)
        self._queues: dict[IQueue, dict[HeldPull, None]] = {}
        self._connections: dict[IConnection, dict[HeldPull, None]] = {}
        self._deadlines: list[tuple[float, int, HeldPull]] = []
        self._number = 0
        self._cost = 0
        self._stopped = False
        self._timer: IDelayedCall | None = None

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self.obey(settings.broker)

    def obey(self, options: BrokerOptions) -> None:
        """Obey these of the broker's."""
        self._most = options.pull_thread_pool_queue_capacity
        self._short_seconds = (
            None
            if options.long_polling_enable
            else options.short_polling_time_mills / 1000.0
        )

    def watch(self, others: OtherWaiters) -> None:
        """Count and wake those, too, that wait elsewhere."""
        self._others = others

    def stop(self) -> None:
        """Forget all held pulls, end all timers, and hold nothing any more."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for waiting in list(self._queues.values()):
            for held in list(waiting):
                self._remove(held)
        self._deadlines.clear()

    def hold(self, held: HeldPull) -> bool:
        """Hold a pull.

        @return: whether there was room; if not, it is to be answered now.
        """
        connection = held.connection
        mine = self._connections.get(connection)
        if (
            self.held >= self._most
            or self._cost + cost_of(held) > MAX_COST
            or (mine is not None and len(mine) >= MAX_HELD_PER_CONNECTION)
            or self._stopped
        ):
            self.refused += 1
            return False
        if mine is None:
            mine = self._connections[connection] = {}
            connection.watch_close(self._closed)
            if connection.closed:
                return True
        mine[held] = None
        self._queues.setdefault(held.queue, {})[held] = None
        self.held += 1
        self._cost += cost_of(held)
        held.waits = True
        self._set_deadline(held)
        return True

    @property
    def held_everywhere(self) -> int:
        """How many there are, with those that wait elsewhere."""
        return self.held + (self._others.held if self._others is not None else 0)

    def waits_in(self, queue: IQueue) -> bool:
        """Whether any pull waits for messages of a queue."""
        return queue in self._queues

    def wants_codes(self, queue: IQueue) -> bool:
        """Whether one of them looks at the tags of messages."""
        return any(held.matches is not None for held in self._queues.get(queue, ()))

    def wake(self, arrival: Arrival) -> None:
        """Wake the pulls that wait for one of the messages of an arrival."""
        if self._others is not None:
            self._others.arrived(arrival.queue)
        waiting = self._queues.get(arrival.queue)
        if not waiting:
            return
        end = arrival.queue.max_offset
        codes = arrival.tag_codes
        ready = []
        looked = 0
        for held in waiting:
            matches = held.matches
            if held.offset >= end:
                continue
            if isinstance(matches, MessageFilter):
                if looked >= MAX_SCANNED:
                    continue
                start = max(held.offset, end - len(codes))
                wakes, size = self._look(arrival.queue, start, end, matches)
                looked += size
            else:
                wakes = matches is None or any(map(matches, codes))
            if wakes:
                ready.append(held)
        self._wake(ready)

    def _look(
        self, queue: IQueue, start: int, end: int, wanted: MessageFilter
    ) -> tuple[bool, int]:
        """Whether a filter takes a new message, or may take one that cannot be read."""
        try:
            return self._store.has_wanted(queue, start, end - start, wanted)
        except OSError:
            return True, 0

    def release(self, queue: IQueue, wanted: Callable[[HeldPull], bool]) -> None:
        """Wake those in a queue that wait for what will not be given to them."""
        self._wake([held for held in self._queues.get(queue, ()) if wanted(held)])
        if self._others is not None:
            self._others.wake_all()

    def wake_all(self) -> None:
        """Wake all pulls: they may get elsewhere what they wait for."""
        for waiting in list(self._queues.values()):
            self._wake(list(waiting))
        if self._others is not None:
            self._others.wake_all()

    def check(self) -> None:
        """Wake the pulls of queues that have grown, whatever their filters."""
        for queue, waiting in list(self._queues.items()):
            end = queue.max_offset
            self._wake([held for held in waiting if held.offset < end])

    def _wake(self, ready: list[HeldPull]) -> None:
        for held in ready:
            if held.waits:
                self.woken += 1
                self._resume(held)

    def _resume(self, held: HeldPull) -> None:
        self._remove(held)
        try:
            held.resume(held)
        except Exception:
            self._log.failure("A held pull could not be answered.")

    def _remove(self, held: HeldPull) -> None:
        held.waits = False
        self.held -= 1
        self._cost -= cost_of(held)
        self._connections[held.connection].pop(held)
        waiting = self._queues[held.queue]
        del waiting[held]
        if not waiting:
            del self._queues[held.queue]

    def _closed(self, connection: IConnection) -> None:
        for held in list(self._connections.get(connection, ())):
            self.dropped += 1
            self._remove(held)
        self._connections.pop(connection, None)

    def _set_deadline(self, held: HeldPull) -> None:
        seconds = max(0.0, self._short_seconds or held.suspend_seconds)
        deadline = self._clock.seconds() + seconds
        self._number += 1
        deadlines = self._deadlines
        if len(deadlines) > 2 * self.held + _SPARE:
            deadlines[:] = [entry for entry in deadlines if entry[2].waits]
            heapify(deadlines)
        heappush(deadlines, (deadline, self._number, held))
        if self._timer is None:
            self._timer = self._clock.callLater(seconds, self._expire)
        elif deadlines[0][2] is held:
            self._timer.reset(seconds)

    def _expire(self) -> None:
        self._timer = None
        now = self._clock.seconds()
        deadlines = self._deadlines
        over = []
        while deadlines and (deadlines[0][0] <= now or not deadlines[0][2].waits):
            held = heappop(deadlines)[2]
            if held.waits:
                over.append(held)
        if deadlines:
            self._timer = self._clock.callLater(deadlines[0][0] - now, self._expire)
        self._turns.within(partial(self._end, over))

    def _end(self, over: list[HeldPull]) -> None:
        """The time of these is over."""
        for held in over:
            if held.waits:
                self.expired += 1
                self._resume(held)


def cost_of(held: HeldPull) -> int:
    """What it takes of L{MAX_COST}."""
    return held.matches.cost if isinstance(held.matches, MessageFilter) else 0
