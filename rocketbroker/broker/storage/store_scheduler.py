# -*- test-case-name: tests.broker.storage.test_store_scheduler -*-
"""The store scheduler: it runs the steps of the store.

  - I{Dispatch}: a millisecond after an append, as in RocketMQ, so that the entries of
    all turns of that time go into the queues together; and at once when a pull comes to
    the end of a queue. Arrivals wake held pulls.
  - I{Flush}: at the times of L{rocketbroker.broker.storage.flush_policy}.
  - I{Preallocation}: twice a second, and when a load fills what is reserved faster than
    that; making a segment takes a disk seconds, filling one longer.
  - I{The index}: a step some milliseconds after a dispatch, for all that was dispatched
    meanwhile; the rest is done in a thread.

Steps that block run in a thread, each at most once at a time.

C{docs/facts/store.md} 2.6, 6, 13.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from rocketbroker.broker.appends.group_commit import GroupCommit
from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.services import Service, Services, always
from rocketbroker.broker.storage.flush_policy import FlushPolicy
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.remoting.interfaces import ITurns
from rocketbroker.store.interfaces import Arrival, IStore

#: How often a broker looks whether the next segment has to be made.
ALLOCATE_SECONDS: Final = 0.5

#: How often what was found wrong on the disk is logged.
FINDINGS_SECONDS: Final = 1.0

FLUSH_LOG: Final = Service(
    "flush of the commit log",
    "bounds what a power loss takes with ASYNC_FLUSH",
    lambda s: s.store.flush_interval_commit_log / 1000,
)
FLUSH_QUEUES: Final = Service(
    "flush of consume queues",
    "shortens the start after a crash",
    lambda s: s.store.flush_interval_consume_queue / 1000,
)
ALLOCATION: Final = Service(
    "allocation of segments",
    "no send waits for the making of a file",
    always(ALLOCATE_SECONDS),
)
FINDINGS: Final = Service(
    "report of findings",
    "damage that readers met is logged",
    always(FINDINGS_SECONDS),
)

#: How long entries wait for others before they are dispatched together.
DISPATCH_SECONDS: Final = 0.001

#: The same on a slave. Its consumers wait for a network already; most of what a small
#: step costs is no message's, and a slave gets a small one for each turn of its master.
RECEIVED_SECONDS: Final = 0.01

#: Records of one dispatch step: about 2 ms, after which connections get their turn.
MAX_DISPATCHED: Final = 4096

#: How long to wait after a dispatch that the disk refused.
RETRY_SECONDS: Final = 1.0

#: How often it is made in haste: else a full disk would be asked in a busy loop.
HASTE_SECONDS: Final = 0.02

#: How long dispatched messages wait for others before they enter the index together: of
#: a thousand one costs 1.1 us, of four hundred 1.3, of a hundred 2.2. Who queries does
#: not wait for it, but builds the index first.
INDEX_SECONDS: Final = 0.05

#: The same when a step could not take all of them.
REST_SECONDS: Final = 0.005

#: The same between steps in a thread. One that reads the log takes 5 ms, and an index
#: that is built from the whole log is not to slow everything else down for minutes.
CATCH_UP_SECONDS: Final = 0.02

#: Records of one step of the index: a few ms of a load that is faster than any but one
#: of batches.
MAX_INDEXED_NOW: Final = 8192

#: The same, of one in a thread, which has to catch up.
MAX_INDEXED: Final = 1 << 16


@final
class StoreScheduler:
    """The scheduler of the store's steps.

    @ivar dispatches: how many dispatch steps found something.
    @ivar failures: how many steps failed.
    """

    _log = Logger()

    def __init__(
        self,
        context: BrokerContext,
        group_commit: GroupCommit,
        replicate: Callable[[], None],
    ) -> None:
        """
        @param replicate: called when there is more of the log, for slaves.
        """
        self.dispatches = 0
        self.failures = 0
        clock, store = context.clock, context.store
        self._clock: IReactorTime = clock
        self._store: IStore = store
        self._wakes: list[Callable[[Arrival], None]] = []
        # Whom a dispatch wakes is answered at the end of a turn.
        self._turns: ITurns = context.turns
        self._in_thread: InThread = context.in_thread
        self._soon: IDelayedCall | None = None
        self._index_soon: IDelayedCall | None = None
        self._stopped = False
        self._dispatching = False
        self._refused = False
        self._room_at = 0.0
        self._dispatched_at = 0.0
        self._running: dict[str, Deferred[None]] = {}
        self._timing = FlushPolicy(clock, store, context.settings.store, group_commit)
        self._services: Services = context.services
        self._group_commit = group_commit
        self._replicate = replicate
        group_commit.watch_flush(self.appended)

    def watch(self, wake: Callable[[Arrival], None]) -> None:
        """Call C{wake} with each arrival in a queue."""
        self._wakes.append(wake)

    def start(self) -> None:
        """Begin all regular work; the next segment is made now."""
        begin = self._services.begin
        if not self._group_commit.synchronous:
            begin(FLUSH_LOG, self._timing.flush)
        begin(FLUSH_QUEUES, self._flush_queues)
        begin(ALLOCATION, self._allocate)
        begin(FINDINGS, self._log_findings)
        self._allocate()
        self.appended()
        self._index_later()

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._timing.configure(settings.store)
        if self._index_soon is None:
            # An index that is wanted again has to catch up.
            self._index_later()

    def stop(self) -> Deferred[None]:
        """End all regular work; fires when no thread works for it any more."""
        self._stopped = True
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        self.dispatch()
        if self._index_soon is not None:
            # What is left of it is done when the store is closed.
            self._index_soon.cancel()
            self._index_soon = None
        waiting: list[Deferred[None]] = []
        for step in list(self._running):
            done: Deferred[None] = Deferred()
            self._running[step].chainDeferred(done)
            waiting.append(done)
        return DeferredList(waiting).addCallback(lambda _: None)

    def appended(self) -> None:
        """Something was appended or flushed: dispatch it soon, and send it on."""
        self._replicate()
        self.dispatch_later()

    def received(self) -> None:
        """Records of a master were appended: the same, with more patience."""
        self._replicate()
        self.dispatch_later(RECEIVED_SECONDS)

    def appended_elsewhere(self) -> None:
        """Another process has appended, and has waited for others already before it has
        told of it: dispatch in this turn, unless several tell of it at a time."""
        self._replicate()
        is_quiet = self._clock.seconds() - self._dispatched_at >= DISPATCH_SECONDS
        if is_quiet and self._soon is None and not self._stopped:
            self._dispatch_soon()
        else:
            self.dispatch_later(0.0)

    def dispatch_later(self, seconds: float = DISPATCH_SECONDS) -> None:
        """Dispatch soon, together with what comes until then."""
        if self._soon is None and not self._stopped:
            self._soon = self._clock.callLater(seconds, self._dispatch_soon)

    def dispatch(self) -> None:
        """Dispatch now, one step.

        Does nothing when called from within, by a pull that a dispatch has woken, and
        while it waits to ask a disk again that has refused.
        """
        store = self._store
        if (
            self._dispatching
            or self._refused
            or store.dispatched_position >= store.published_position
        ):
            return
        self._dispatching = True
        try:
            arrivals = store.dispatch(MAX_DISPATCHED)
            if arrivals:
                self.dispatches += 1
                for wake in self._wakes:
                    for arrival in arrivals:
                        wake(arrival)
            if self._index_soon is None:
                self._index_later()
        except OSError as error:
            self._refused = True
            self._failed("dispatch", str(error))
            if not self._stopped:
                self._clock_dispatch(RETRY_SECONDS)
        finally:
            self._dispatching = False

    def _dispatch_soon(self) -> None:
        self._soon = None
        self._refused = False
        self._timing.appended()
        store = self._store
        if store.lacks_room() and self._clock.seconds() >= self._room_at:
            self._room_at = self._clock.seconds() + HASTE_SECONDS
            self._allocate()
        before = store.dispatched_position
        self._dispatched_at = self._clock.seconds()
        self._turns.within(self.dispatch)
        # A step may have met only records without a queue, so its arrivals tell
        # nothing.
        after = store.dispatched_position
        if before < after < store.published_position:
            self.dispatch_later(0.0)

    def _clock_dispatch(self, seconds: float) -> None:
        """Dispatch after C{seconds}, not before."""
        if self._soon is not None:
            self._soon.cancel()
        self._soon = self._clock.callLater(seconds, self._dispatch_soon)

    def _flush_queues(self) -> None:
        self._run("flush_queues", self._timing.flush_queues)

    def _allocate(self) -> None:
        self._run("allocate_ahead", self._store.allocate_ahead)

    def _log_findings(self) -> None:
        for sentence in self._store.findings():
            self._log.error("{sentence}", sentence=sentence)

    def _index_later(self, seconds: float = INDEX_SECONDS) -> None:
        """Build the index soon, unless it is complete."""
        if self._store.index_behind and not self._stopped:
            self._index_soon = self._clock.callLater(seconds, self._index)

    def _index(self) -> None:
        store = self._store
        self._index_soon = None
        pause = INDEX_SECONDS
        if store.index_behind:
            try:
                if not store.build_index_now(MAX_INDEXED_NOW):
                    self._run("build_index", lambda: store.build_index(MAX_INDEXED))
                    pause = CATCH_UP_SECONDS
                elif store.index_behind:
                    pause = REST_SECONDS
            except OSError as error:
                self._failed("build_index_now", str(error))
        self._index_later(pause)

    def _run(self, name: str, step: Callable[[], object]) -> None:
        """Run a step in a thread unless it still runs."""
        if name in self._running:
            return
        over: Deferred[None] = Deferred()
        self._running[name] = over

        def ended(result: object) -> None:
            del self._running[name]
            if isinstance(result, Failure):
                self._failed(name, result.getErrorMessage())
            over.callback(None)

        self._in_thread(step).addBoth(ended)

    def _failed(self, step: str, reason: str) -> None:
        self.failures += 1
        self._log.error(
            "The store's step {step} failed: {reason}", step=step, reason=reason
        )
