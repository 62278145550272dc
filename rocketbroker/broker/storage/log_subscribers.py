# -*- test-case-name: tests.broker.storage.test_log_subscribers -*-
"""Log subscribers: plug-ins that see each dispatched record, each in its own thread.

A subscriber gets the records that it has not seen, at most L{MAX_RECORDS} at a time. An
error that it raises is logged and counted, and the same records are offered again, with
growing pauses. One that hangs holds its own thread and nothing else, also when the
broker stops.

The position of each is in C{config/dispatchFollowers.json}, which is written every
L{SAVE_SECONDS} and at the end::

    {"followers": {"audit": 1073741824}}

After a crash it gets the records since that position again. A subscriber that must see
no record twice keeps its position with its results, and names it when it starts
(L{rocketbroker.store.plugins.IRecordFollower}).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, final

from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.json_table import JsonTable
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.store.dispatched_record import DispatchedRecord, ILogTail
from rocketbroker.store.interfaces import IStore
from rocketbroker.store.plugins import IFollowerPlugin, IRecordFollower

#: The file of the positions, in the folder of the tables.
SUBSCRIBERS: Final = "dispatchFollowers.json"

#: How often one that has seen everything is looked after.
IDLE_SECONDS: Final = 0.1

#: Records that are offered at once: a few ms, for which a thread in Python shares the
#: processor with the reactor's.
MAX_RECORDS: Final = 500

#: How long one that failed is left alone: at first, and at most.
FIRST_PAUSE_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 60.0

#: How often the positions are written, if they moved.
SAVE_SECONDS: Final = 5.0

#: How long the broker waits for one that does not come to an end.
STOP_SECONDS: Final = 5.0


@final
class LogSubscriber:
    """A follower of the log, with its position.

    What it is asked for is asked in its own thread, one after the other; the other
    side decides when.

    @ivar name: how the setting calls it.
    @ivar position: the position behind the last record that it has taken; None as long
        as it has not said where it begins.
    @ivar failures: how often it failed.
    @ivar lost_bytes: what was removed, or broken, before it saw it.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        store: IStore,
        plugin: IFollowerPlugin,
        in_thread: InThread,
        folder: str,
        settings: Mapping[str, str],
    ) -> None:
        """
        @param in_thread: runs functions in the follower's own thread, one by one.
        @param folder: the directory that is its own.
        """
        self.name = plugin.name
        self.position: int | None = None
        self.failures = 0
        self.lost_bytes = 0
        self._clock = clock
        self._store = store
        self._plugin = plugin
        self._in_thread = in_thread
        self._folder = folder
        self._settings = settings
        self._follower: IRecordFollower | None = None
        self._trail: ILogTail | None = None
        self._offered: Sequence[DispatchedRecord] = ()
        self._end_at_open = 0
        # The reactor's.
        self._pause = FIRST_PAUSE_SECONDS
        self._later: IDelayedCall | None = None
        self._stopped = False

    def opened(self, position: int | None) -> None:
        """The store is open, and nobody appends to it yet.

        Where it ends now is as far as any position of before can be right: what a crash
        has taken from the log, other messages have taken the place of soon.

        @param position: what is remembered.
        """
        self.position = position
        self._end_at_open = self._store.published_position

    def start(self) -> None:
        """Begin to follow."""
        self._go_on()

    def behind_bytes(self) -> int:
        """How many bytes of the log it has not seen yet."""
        store = self._store
        position = store.min_position if self.position is None else self.position
        return max(0, store.dispatched_position - position)

    # The reactor's side.

    def _go_on(self) -> None:
        self._later = None
        store = self._store
        end = min(store.dispatched_position, store.flushed_position)
        if self._trail is not None and not self._offered and self._seen() >= end:
            self._after(IDLE_SECONDS)
            return
        self._in_thread(self._work).addCallbacks(self._worked, self._failed)

    def _seen(self) -> int:
        return 0 if self.position is None else self.position

    def _after(self, seconds: float) -> None:
        if not self._stopped:
            self._later = self._clock.callLater(seconds, self._go_on)

    def _worked(self, lost_bytes: int) -> None:
        self._pause = FIRST_PAUSE_SECONDS
        if lost_bytes > self.lost_bytes:
            self._log.warn(
                "{lost} bytes of the log were removed, or cannot be read, before the "
                "follower {name} saw them; it goes on at {position}.",
                lost=lost_bytes - self.lost_bytes,
                name=self.name,
                position=self.position,
            )
            self.lost_bytes = lost_bytes
        self._after(0)

    def _failed(self, failure: Failure) -> None:
        self.failures += 1
        self._log.failure(
            "The follower {name} failed; it is asked again in {seconds} s.",
            failure=failure,
            name=self.name,
            seconds=self._pause,
        )
        self._after(self._pause)
        self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)

    def stop(self) -> Deferred[None]:
        """Let it end; fires when it has, or when that takes too long."""
        self._stopped = True
        if self._later is not None:
            self._later.cancel()
            self._later = None
        # Its thread does one after the other: this comes when it is not at work.
        ended = self._in_thread(self._end)
        ended.addTimeout(STOP_SECONDS, self._clock)
        return ended.addErrback(self._hangs)

    def _hangs(self, failure: Failure) -> None:
        self._log.error(
            "The follower {name} did not stop: {why}",
            name=self.name,
            why=repr(failure.value),
        )

    # The thread's side.

    def _work(self) -> int:
        """I{Blocking.} One step.

        @return: how many bytes it could not be shown so far.
        """
        trail = self._trail
        if trail is None:
            trail = self._begin()
        if not self._offered:
            self._offered = trail.take(MAX_RECORDS)
        if self._offered:
            assert self._follower is not None
            self._follower.follow(self._offered)
            self._offered = ()
        self.position = trail.position
        return trail.lost_bytes

    def _begin(self) -> ILogTail:
        store = self._store
        if self._follower is None:
            self._follower = self._plugin.follower(
                self._folder, self._settings, store.record_at
            )
        end = self._end_at_open
        at = self._follower.start(self.position, end)
        if not 0 <= at <= end:
            self._log.warn(
                "The follower {name} wants to go on at {at}; the log ends at {end}, "
                "and it goes on there.",
                name=self.name,
                at=at,
                end=end,
            )
            at = end
        self._trail = trail = store.log_tail(max(at, store.min_position))
        self.position = trail.position
        return trail

    def _end(self) -> None:
        if self._follower is not None and self._trail is not None:
            self._follower.stop()


@final
class LogSubscribers:
    """All followers of a broker, and the file of their positions.

    @ivar all: the followers.
    """

    def __init__(self, clock: IReactorTime, file: JsonTable) -> None:
        self.all: list[LogSubscriber] = []
        self._clock = clock
        self._file = file
        self._positions: dict[str, int] = {}
        self._later: IDelayedCall | None = None

    def add(self, following: LogSubscriber) -> None:
        """One more; before anything is loaded."""
        self.all.append(following)

    def add_plugins(
        self,
        plugins: Sequence[tuple[IFollowerPlugin, InThread]],
        store: IStore,
        settings: BrokerSettings,
    ) -> None:
        """One of each plug-in, with its thread."""
        root, texts = settings.store.store_path_root_dir, settings.as_properties()
        for plugin, in_thread in plugins:
            folder = f"{root}/plugins/{plugin.name}"
            self.add(
                LogSubscriber(self._clock, store, plugin, in_thread, folder, texts)
            )

    def load(self) -> None:
        """I{Blocking.} Read where each one is; the store is open."""
        if not self.all:
            return
        loaded = (self._file.load() or {}).get("followers")
        if isinstance(loaded, dict):
            for name, position in loaded.items():
                if isinstance(name, str) and type(position) is int and position >= 0:
                    self._positions[name] = position
        for following in self.all:
            following.opened(self._positions.get(following.name))

    def start(self) -> None:
        """Begin to follow."""
        if not self.all:
            return
        for following in self.all:
            following.start()
        self._later = self._clock.callLater(SAVE_SECONDS, self._save_regularly)

    def _save_regularly(self) -> None:
        self._later = self._clock.callLater(SAVE_SECONDS, self._save_regularly)
        self.save()

    def save(self) -> Deferred[None]:
        """Write the positions if they moved; fires when they are in the file."""
        now = {
            each.name: each.position for each in self.all if each.position is not None
        }
        if self._file.failed or {**self._positions, **now} != self._positions:
            self._positions.update(now)
            return self._file.save_soon(lambda: {"followers": dict(self._positions)})
        return self._file.idle()

    def stop(self) -> Deferred[None]:
        """Let all end, and write where they are."""
        if self._later is not None:
            self._later.cancel()
            self._later = None
        stopped = DeferredList([following.stop() for following in self.all])
        return stopped.addCallback(lambda _: self.save())

    def figures(self) -> dict[str, str]:
        """What request 28 says of them."""
        return {
            f"dispatchFollowerBehindBytes_{each.name}": str(each.behind_bytes())
            for each in self.all
        }
