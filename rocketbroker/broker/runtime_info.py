# -*- test-case-name: tests.broker.test_runtime_info -*-
"""Request 28: how the broker is, in figures that are all text.

C{mqadmin brokerStatus} prints them, C{clusterList} cuts some of them up, and the
official exporter loses all of them when a single one is missing or is written in
another way; so every key of the reference is there. What the reference has and this
broker does not (timers, transactions, a pool of buffers) says so by the figure that the
reference shows when it is off.

What may wait for a disk, its usage and the oldest message, is read in a thread.

Forms: the admin sheet, section 4; the security-metrics sheet, 6.3.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Final, final

from twisted.internet.defer import Deferred

from rocketbroker.broker.bodies import with_body
from rocketbroker.broker.durability import Durability, InThread
from rocketbroker.broker.pulling import MOST_COLD, Pulling
from rocketbroker.broker.statistics import Statistics
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.files.interfaces import IFiles
from rocketbroker.records.record import decode
from rocketbroker.remoting.interfaces import Answer, IConnection, IResponderTable
from rocketbroker.store.interfaces import IStore
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import VERSION, Command

#: The release whose behaviour this is, as tools show it.
VERSION_NAME: Final = "V5_3_3"

#: Figures of queues in front of threads, and of a lock that is waited for. There are
#: none here: what has arrived is answered in the same turn, or waits for the disk.
NOTHING_WAITS: Final = {
    "EndTransactionQueueSize": "0",
    "ackThreadPoolQueueHeadWaitTimeMills": "0",
    "ackThreadPoolQueueSize": "0",
    "litePullThreadPoolQueueHeadWaitTimeMills": "0",
    "litePullThreadPoolQueueSize": "0",
    "pageCacheLockTimeMills": "0",
    "queryThreadPoolQueueHeadWaitTimeMills": "0",
    "queryThreadPoolQueueSize": "0",
}

#: Without a timer.
NO_TIMER: Final = {
    "timerCongestNum": "0",
    "timerDequeueTps": "0.0",
    "timerEnqueueTps": "0.0",
    "timerOffsetBehind": "0",
    "timerReadBehind": "0",
}

#: Buffers of the transient store pool that are left, when there is no pool.
NO_POOL: Final = "2147483647"


def uncommitted(store: IStore) -> dict[str, str]:
    """The figures of the transient store pool."""
    left = store.buffers_left()
    if left is None:
        return {"remainTransientStoreBufferNumbs": NO_POOL}
    return {
        "remainHowManyDataToCommit": sized(
            store.published_position - store.committed_position
        ),
        "remainTransientStoreBufferNumbs": str(left),
    }


@final
class RuntimeInfo:
    """Answers how the broker is."""

    def __init__(
        self,
        settings: BrokerSettings,
        store: IStore,
        files: IFiles,
        statistics: Statistics,
        durability: Durability,
        pulling: Pulling,
        wall_ms: Callable[[], int],
        in_thread: InThread,
        others: Sequence[Callable[[], Mapping[str, str]]],
    ) -> None:
        """
        @param others: figures of parts that are not always there.
        """
        self._settings = settings
        self._store = store
        self._files = files
        self._statistics = statistics
        self._durability = durability
        self._pulling = pulling
        self._wall_ms = wall_ms
        self._in_thread = in_thread
        self._others = others
        self._started_ms = wall_ms()
        root = settings.store.store_path_root_dir
        log = settings.store.store_path_commit_log or os.path.join(root, "commitlog")
        self._root = root
        self._log_paths = [path for path in log.split(",") if path]
        self._queue_path = os.path.join(root, "consumequeue")

    def register(self, table: IResponderTable) -> None:
        """Answer on a port."""
        table.register(RequestCode.GET_BROKER_RUNTIME_INFO, self.respond)

    def respond(self, connection: IConnection, request: Command) -> Answer:
        """Request 28."""
        done: Deferred[Command | None] = Deferred()

        def answer(disk: dict[str, str]) -> None:
            table = {**self.table(), **disk}
            done.callback(with_body(request, {"table": dict(sorted(table.items()))}))

        self._in_thread(self._disk).addCallback(answer).addErrback(done.errback)
        return done

    def table(self) -> dict[str, str]:
        """The figures that no disk is asked for."""
        store = self._store
        table = {
            **NOTHING_WAITS,
            **NO_TIMER,
            **self._statistics.table(),
            **self._queues(),
            "bootTimestamp": str(self._started_ms),
            "brokerActive": "true",
            "brokerVersion": str(VERSION),
            "brokerVersionDesc": VERSION_NAME,
            "commitLogMaxOffset": str(store.committed_position),
            "commitLogMinOffset": str(store.min_position),
            "dispatchBehindBytes": str(
                store.committed_position - store.dispatched_position
            ),
            "remainHowManyDataToFlush": sized(
                store.published_position - store.flushed_position
            ),
            **uncommitted(store),
            "runningFlags": str(store.flags.bits),  # ours
            "runtime": lasted(self._wall_ms() - self._started_ms),
            "startAcceptSendRequestTimeStamp": str(
                self._settings.broker.start_accept_send_request_time_stamp
            ),
        }
        for other in self._others:
            table.update(other())
        return table

    def _queues(self) -> dict[str, str]:
        """What waits: sends for the disk, pulls of old messages for it too."""
        options, durability, pulling = (
            self._settings.broker,
            self._durability,
            self._pulling,
        )
        return {
            "EndTransactionThreadPoolQueueCapacity": str(
                options.end_transaction_pool_queue_capacity
            ),
            "ackThreadPoolQueueCapacity": str(options.ack_thread_pool_queue_capacity),
            "litePullThreadPoolQueueCapacity": str(
                options.lite_pull_thread_pool_queue_capacity
            ),
            "pullThreadPoolQueueCapacity": str(MOST_COLD),
            "pullThreadPoolQueueHeadWaitTimeMills": str(pulling.cold_since_ms()),
            "pullThreadPoolQueueSize": str(pulling.cold),
            "queryThreadPoolQueueCapacity": str(
                options.query_thread_pool_queue_capacity
            ),
            "sendThreadPoolQueueCapacity": str(options.send_thread_pool_queue_capacity),
            "sendThreadPoolQueueHeadWaitTimeMills": str(durability.waiting_ms()),
            "sendThreadPoolQueueSize": str(durability.waiting),
        }

    def _disk(self) -> dict[str, str]:
        """I{Blocking.} The figures of disks."""
        ratios = {path: self._ratio(path) for path in self._log_paths}
        try:
            total, usable = self._files.usage(self._root)
        except OSError:
            total = usable = 0
        return {
            "commitLogDirCapacity": f"Total : {sized(total)}, Free : {sized(usable)}.",
            "commitLogDiskRatio": str(min(ratios.values())),
            **{
                f"commitLogDiskRatio_{path}": str(ratio)
                for path, ratio in ratios.items()
            },
            "consumeQueueDiskRatio": str(self._ratio(self._queue_path)),
            "earliestMessageTimeStamp": str(earliest_ms(self._store)),
        }

    def _ratio(self, path: str) -> float:
        """How full the disk of a path is, rounded up to percents; -1.0 if unknown."""
        try:
            total, usable = self._files.usage(path)
        except OSError:
            return -1.0
        return -((usable - total) * 100 // total) / 100 if total > 0 else -1.0


def earliest_ms(store: IStore) -> int:
    """I{Blocking.} When the oldest message was stored; -1 if there is none."""
    record = store.record_at(store.min_position)
    return -1 if record is None else decode(record).store_ms


def sized(count: int) -> str:
    """A number of bytes as tools print it.

    >>> sized(1536)
    '1.5 KiB'
    """
    if count < 1024:
        return f"{count} B"
    size = float(count)
    for unit in ("KiB", "MiB", "GiB"):
        size /= 1024
        if size < 1024:
            return f"{size:.1f} {unit}"
    return f"{size / 1024:.1f} TiB"


def lasted(ms: int) -> str:
    """A time since the start as tools print it.

    >>> lasted(90_061_000)
    '[ 1 days, 1 hours, 1 minutes, 1 seconds ]'
    """
    minutes, seconds = divmod(ms // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"[ {days} days, {hours} hours, {minutes} minutes, {seconds} seconds ]"
