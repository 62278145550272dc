# -*- test-case-name: tests.broker.pop.test_pop -*-
"""Pops and notifications that found nothing, and wait for a message.

A message can be given to any of those that wait for the queues of its topic, so one of
them is woken for an arrival, the one whose time is over first; if there is more than it
takes, it wakes the next. Those that expire are woken, too: they look once more, and
answer with whatever they find.

A message in a retry topic, and a queue that is free again for consumers in order, wake
as messages of the topic do. (In RocketMQ a retry topic of version 1 wakes nobody, and
its messages wait until a pop's time is over.)

C{docs/facts/transaction-timer-pop.md} C9; C{docs/facts/broker.md} 20.3.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Final, TypeAlias, final

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.records.names import pop_retry_topic
from rocketbroker.remoting.interfaces import IConnection, ITurns
from rocketbroker.store.interfaces import Arrival, IQueue, IStore
from rocketbroker.store.reads import Matches, MessageFilter

#: What stands for all queues of a topic.
ANY_QUEUE: Final = -1

#: One that has so little time left is answered at once: its answer has to travel.
LEAST_SECONDS: Final = 0.05

#: No request waits for longer, whatever it says: clients say 15 to 30 seconds.
MAX_SECONDS: Final = 3600.0

#: How many of one connection wait: a client has one or two for each topic that it
#: consumes; a proxy has as many as its clients.
MAX_PER_CONNECTION: Final = 16_384

#: Topic and group.
Party: TypeAlias = tuple[str, str]


class HoldResult(Enum):
    """What became of a request that wants to wait."""

    HELD = "held"
    FULL = "full"
    EXPIRED = "expired"


@final
class HeldPop:
    """A pop or a notification that waits for a message.

    @ivar party: topic and group.
    @ivar queue_id: the queue; L{ANY_QUEUE} for all.
    @ivar deadline: when it is woken at the latest, in seconds of the clock.
    @ivar matches: its filter, None for all.
    @ivar resume: called when it is woken.
    @ivar number: of two with the same deadline the one that came first has the less.
    @ivar waits: whether it is still held.
    """

    __slots__ = (
        "connection",
        "deadline",
        "matches",
        "number",
        "party",
        "queue_id",
        "resume",
        "waits",
    )

    def __init__(
        self,
        connection: IConnection,
        party: Party,
        queue_id: int,
        deadline: float,
        matches: Matches,
        resume: Callable[[], object],
    ) -> None:
        self.connection = connection
        self.party = party
        self.queue_id = queue_id
        self.deadline = deadline
        self.matches = matches
        self.resume = resume
        self.number = 0
        self.waits = False

    def __lt__(self, other: HeldPop) -> bool:
        return (self.deadline, self.number) < (other.deadline, other.number)


@final
class PopLongPolling:
    """The pops and notifications that wait, by queue.

    @ivar held: how many there are.
    @ivar woken: how many were woken by messages.
    @ivar expired: how many were woken because their time was over.
    @ivar dropped: how many went with their connection.
    @ivar refused: how many were not held because there were too many.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        store: IStore,
        options: BrokerOptions,
        turns: ITurns,
        latest_first: bool = False,
    ) -> None:
        """
        @param latest_first: wake the one that can wait longest: notifications.
        """
        self.held = 0
        self.woken = 0
        self.expired = 0
        self.dropped = 0
        self.refused = 0
        self._clock = clock
        self._store = store
        self._options = options
        self._turns = turns
        self._latest_first = latest_first
        self._waiting: dict[Party, dict[int, list[HeldPop]]] = {}
        #: Who waits for messages of a topic: its own parties, or that of a retry topic.
        self._topics: dict[str, dict[Party, None]] = {}
        self._connections: dict[IConnection, dict[HeldPop, None]] = {}
        self._all: list[HeldPop] = []
        self._timer: IDelayedCall | None = None
        self._number = 0
        self._ready: deque[HeldPop] = deque()
        self._waking = False
        self._stopped = False

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._options = settings.broker

    def stop(self) -> None:
        """Forget all, and hold nothing any more."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for held in list(self._all):
            self._remove(held)

    def count(self, party: Party, queue_id: int) -> int:
        """How many wait for a queue."""
        return len(self._waiting.get(party, {}).get(queue_id, ()))

    def hold(self, held: HeldPop) -> HoldResult:
        """Hold a request, if there is time and room."""
        options, connection = self._options, held.connection
        now = self._clock.seconds()
        if held.deadline - LEAST_SECONDS <= now or self._stopped:
            return HoldResult.EXPIRED
        mine = self._connections.get(connection, {})
        if (
            self.held >= options.max_pop_polling_size
            or self.count(held.party, held.queue_id) > options.pop_polling_size
            or len(mine) >= MAX_PER_CONNECTION
        ):
            self.refused += 1
            return HoldResult.FULL
        held.deadline = min(held.deadline - LEAST_SECONDS, now + MAX_SECONDS)
        self._number += 1
        held.number = self._number
        held.waits = True
        self.held += 1
        if connection not in self._connections:
            self._connections[connection] = mine
            connection.watch_close(self._closed)
            if connection.closed:
                self.held -= 1
                held.waits = False
                return HoldResult.HELD
        mine[held] = None
        queues = self._waiting.get(held.party)
        if queues is None:
            queues = self._waiting[held.party] = {}
            for topic in self._topics_of(held.party):
                self._topics.setdefault(topic, {})[held.party] = None
        insort(queues.setdefault(held.queue_id, []), held)
        insort(self._all, held)
        self._set_timer()
        return HoldResult.HELD

    def _topics_of(self, party: Party) -> tuple[str, str, str]:
        topic, group = party
        return (
            topic,
            pop_retry_topic(group, topic, False),
            pop_retry_topic(group, topic, True),
        )

    def arrived(self, arrival: Arrival) -> None:
        """Wake those that may have the messages of an arrival."""
        queue = arrival.queue
        parties = self._topics.get(queue.topic)
        if not parties:
            return
        count, end = len(arrival.tag_codes), queue.max_offset
        each = max(1, self._options.pop_long_polling_force_notify_interval)
        forced = end // each != (end - count) // each
        for party in list(parties):
            queues = self._waiting[party]
            wanted = (
                list(queues) if queue.topic != party[0] else [ANY_QUEUE, queue.queue_id]
            )
            for queue_id in wanted:
                found = self._first(queues.get(queue_id, ()), arrival, forced)
                if found is not None:
                    self._ready.append(found)
        self._wake()

    def _first(
        self, waiting: list[HeldPop] | tuple[()], arrival: Arrival, forced: bool
    ) -> HeldPop | None:
        """The first that wants a message of an arrival."""
        looked: dict[int, bool] = {}
        for held in reversed(waiting) if self._latest_first else waiting:
            matches = held.matches
            if matches is None or forced:
                return held
            wants = looked.get(id(matches))
            if wants is None:
                wants = looked[id(matches)] = self._wants(matches, arrival)
            if wants:
                return held
        return None

    def _wants(self, matches: Matches, arrival: Arrival) -> bool:
        if isinstance(matches, MessageFilter):
            queue: IQueue = arrival.queue
            count = len(arrival.tag_codes)
            start = queue.max_offset - count
            try:
                return self._store.has_wanted(queue, start, count, matches)[0]
            except OSError:
                return True
        return matches is None or any(map(matches, arrival.tag_codes))

    def wake(self, topic: str, group: str, queue_id: int) -> None:
        """Wake one that may have messages of a queue, whatever its filter."""
        queues = self._waiting.get((topic, group))
        if queues is None:
            return
        for wanted in (ANY_QUEUE, queue_id):
            waiting = queues.get(wanted)
            if waiting:
                self._ready.append(waiting[-1 if self._latest_first else 0])
                break
        self._wake()

    def _wake(self) -> None:
        """Resume those that are ready; one that is resumed may make others so."""
        if self._waking:
            return
        self._waking = True
        try:
            while self._ready:
                held = self._ready.popleft()
                if held.waits:
                    self.woken += 1
                    self._resume(held)
        finally:
            self._waking = False

    def _resume(self, held: HeldPop) -> None:
        self._remove(held)
        try:
            held.resume()
        except Exception:
            self._log.failure("A pop that waited could not be answered.")

    def _remove(self, held: HeldPop) -> None:
        held.waits = False
        self.held -= 1
        self._connections[held.connection].pop(held)
        del self._all[bisect_left(self._all, held)]
        queues = self._waiting[held.party]
        waiting = queues[held.queue_id]
        del waiting[bisect_left(waiting, held)]
        if waiting:
            return
        del queues[held.queue_id]
        if queues:
            return
        del self._waiting[held.party]
        for topic in self._topics_of(held.party):
            parties = self._topics[topic]
            del parties[held.party]
            if not parties:
                del self._topics[topic]

    def _closed(self, connection: IConnection) -> None:
        for held in list(self._connections.get(connection, ())):
            self.dropped += 1
            self._remove(held)
        self._connections.pop(connection, None)

    def _set_timer(self) -> None:
        if not self._all:
            return
        seconds = max(0.0, self._all[0].deadline - self._clock.seconds())
        if self._timer is None:
            self._timer = self._clock.callLater(seconds, self._expire)
        elif self._timer.getTime() > self._all[0].deadline:
            self._timer.reset(seconds)

    def _expire(self) -> None:
        self._timer = None
        now = self._clock.seconds()

        def end() -> None:
            while self._all and self._all[0].deadline <= now:
                self.expired += 1
                self._resume(self._all[0])

        self._turns.within(end)
        self._set_timer()
