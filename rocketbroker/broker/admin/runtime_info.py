# -*- test-case-name: tests.broker.admin.test_runtime_info -*-
"""The state of a broker in figures (request 28), all as text.

C{mqadmin brokerStatus} prints the figures, C{clusterList} takes some of them apart, and
the official exporter loses all of them when a single one is missing or is written in
another way; so every key of RocketMQ is there. For a part that this broker does not
have, timers for instance, the figure is the one that RocketMQ shows when the part is
switched off.

The time of the oldest message is read in a thread, as it may wait for the disk.

Forms: docs/facts/admin.md 2.4 and 4; docs/facts/security-metrics.md 6.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, final

from twisted.internet.defer import Deferred

from rocketbroker.broker.appends.group_commit import GroupCommit
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.json_bodies import with_body
from rocketbroker.broker.pull.pull import MAX_COLD, PullRequests
from rocketbroker.broker.running_settings import RunningSettings
from rocketbroker.broker.stats.broker_stats import BrokerStats
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.record import decode
from rocketbroker.remoting.interfaces import Answer, IConnection, IResponderTable
from rocketbroker.store.disk_usage import DiskRoom, DiskUsage
from rocketbroker.store.interfaces import IStore
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import VERSION, Command

#: The release of RocketMQ that this broker behaves like, as tools show it.
VERSION_NAME: Final = "V5_3_3"

#: Figures of queues in front of threads, and of a lock that is waited for. There are
#: none here: a request is answered in the turn that brings it, or waits for the disk.
NOTHING_WAITS: Final = {
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


@final
class RuntimeInfo:
    """The responder of request 28, the broker's runtime info."""

    def __init__(
        self,
        context: BrokerContext,
        running: RunningSettings,
        statistics: BrokerStats,
        group_commit: GroupCommit,
        pulling: PullRequests,
        ends: Callable[[], int],
        others: Sequence[Callable[[], Mapping[str, str]]],
    ) -> None:
        """
        @param ends: how many ends of transactions wait for a thread.
        @param others: figures of parts that are not always there.
        """
        self._running = running
        self._store = context.store
        self._statistics = statistics
        self._group_commit = group_commit
        self._pulling = pulling
        self._wall_ms = context.wall_ms
        self._in_thread = context.administrators.before_threads(context.in_thread)
        self._ends = ends
        self._others = others
        self._started_ms = context.started_ms

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        table.register(RequestCode.GET_BROKER_RUNTIME_INFO, self.respond)

    def respond(self, connection: IConnection, request: Command) -> Answer:
        """Request 28."""
        done: Deferred[Command | None] = Deferred()

        def answer(earliest: int) -> None:
            table = {**self.table(), "earliestMessageTimeStamp": str(earliest)}
            done.callback(with_body(request, {"table": dict(sorted(table.items()))}))

        found = self._in_thread(lambda: earliest_ms(self._store))
        found.addCallback(answer).addErrback(done.errback)
        return done

    def table(self) -> dict[str, str]:
        """All figures but the one that only the log has."""
        store = self._store
        table = {
            **NOTHING_WAITS,
            **NO_TIMER,
            **self._statistics.table(),
            **self._queues(),
            **disks(store.space),
            "bootTimestamp": str(self._started_ms),
            "brokerActive": "true",
            "brokerVersion": str(VERSION),
            "brokerVersionDesc": VERSION_NAME,
            "commitLogMaxOffset": str(store.published_position),
            "commitLogMinOffset": str(store.min_position),
            "dispatchBehindBytes": str(
                store.published_position - store.dispatched_position
            ),
            "remainHowManyDataToFlush": sized(
                store.published_position - store.flushed_position
            ),
            "remainTransientStoreBufferNumbs": NO_POOL,
            "runningFlags": str(store.flags.bits),  # ours
            "runtime": lasted(self._wall_ms() - self._started_ms),
            "startAcceptSendRequestTimeStamp": str(
                self._running.current.broker.start_accept_send_request_time_stamp
            ),
        }
        refusal = store.refusal()
        if refusal is not None:
            table["storeRefusal"] = refusal  # ours, as it is in /healthz
        for other in self._others:
            table.update(other())
        return table

    def _queues(self) -> dict[str, str]:
        """The requests that wait: sends, and pulls of old messages, for the disk, and
        ends of transactions for a thread."""
        options, group_commit, pulling = (
            self._running.current.broker,
            self._group_commit,
            self._pulling,
        )
        return {
            "EndTransactionQueueSize": str(self._ends()),
            "EndTransactionThreadPoolQueueCapacity": str(
                options.end_transaction_pool_queue_capacity
            ),
            "ackThreadPoolQueueCapacity": str(options.ack_thread_pool_queue_capacity),
            "litePullThreadPoolQueueCapacity": str(
                options.lite_pull_thread_pool_queue_capacity
            ),
            "pullThreadPoolQueueCapacity": str(MAX_COLD),
            "pullThreadPoolQueueHeadWaitTimeMills": str(pulling.cold_since_ms()),
            "pullThreadPoolQueueSize": str(pulling.cold),
            "queryThreadPoolQueueCapacity": str(
                options.query_thread_pool_queue_capacity
            ),
            "sendThreadPoolQueueCapacity": str(options.send_thread_pool_queue_capacity),
            "sendThreadPoolQueueHeadWaitTimeMills": str(group_commit.waiting_ms()),
            "sendThreadPoolQueueSize": str(group_commit.waiting),
        }


def disks(space: DiskUsage) -> dict[str, str]:
    """How full the disks were at the last look, a second ago at most.

    Ratios are rounded up to percents, and -1.0 where they are not known.
    """
    root = space.queues
    return {
        "commitLogDirCapacity": (
            f"Total : {sized(root.total)}, Free : {sized(root.usable)}."
        ),
        "commitLogDiskRatio": ratio(space.log),
        **{f"commitLogDiskRatio_{room.path}": ratio(room) for room in space.logs},
        "consumeQueueDiskRatio": ratio(root),
    }


def ratio(room: DiskRoom) -> str:
    """How full a disk is, 0 to 1."""
    return "-1.0" if room.percent < 0 else str(room.percent / 100)


def earliest_ms(store: IStore) -> int:
    """I{Blocking.} When the oldest message was stored; -1 if there is none."""
    record = store.record_at(store.min_position)
    try:
        return -1 if record is None else decode(record).store_ms
    except Malformed:
        return -1


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
