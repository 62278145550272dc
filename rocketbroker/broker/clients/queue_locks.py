# -*- test-case-name: tests.broker.clients.test_queue_locks -*-
"""Locks of queues for orderly consumers: requests 41 and 42.

A lock belongs to a client id, not to a connection. A client that goes without unlocking
keeps its queues until its locks expire, because it may still work on messages; if it
comes back in time with the same id it has them still. Two clients with one id share
their locks, as in RocketMQ: nothing in the request tells them apart.

Pulls and commits of offsets do not look at locks: the client keeps the order, and the
broker only grants the turn. Locks are not written to a file: after a restart members
lock anew within 20 seconds, and the first one gets the queue.

With lockInStrictMode a lock takes the votes of more than half of totalReplicas. Slaves
are not asked, so the only vote is that of this broker: more than one replica and strict
mode together grant nothing, like a master that has lost its slaves. A request of
another broker (onlyThisBroker) is decided here alone.

The queues of one request are read, and those that are granted are written, in slices;
all are locked at once, so that of two members that ask for the same one gets all.

Rules: docs/facts/broker.md 18."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias, final

from twisted.internet.defer import Deferred

from rocketbroker.broker.json_bodies import (
    STEP_ENTRIES,
    check_count,
    read,
    with_body,
)
from rocketbroker.broker.long_requests import LongRequests
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import InvalidParameter
from rocketbroker.remoting.cooperative_tasks import soon
from rocketbroker.remoting.interfaces import IConnection, IResponderTable, ISlices
from rocketbroker.wire.bodies.queues import LockBatchBody, MessageQueue
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.fastjson import Written, dumps
from rocketbroker.wire.fields import Fields

#: How long a lock lives after it was last asked for: RocketMQ's default for its
#: system property rocketmq.broker.rebalance.lockMaxLiveTime. Clients ask each 20 s.
LIFE_SECONDS: Final = 60.0

#: The locks that a broker keeps, a few hundred bytes each. A queue for which there is
#: no room is not granted, and its client asks again.
MAX_LOCKS: Final = 100_000

#: The longest client id, group or topic: names end at 255, an id is put together of
#: an address and names that its user chose.
MAX_TEXT: Final = 1024

#: Topic, broker and number of a queue, in the order in which clients sort queues.
#: Unlike those of L{MessageQueue}, ten thousand of them are sorted in milliseconds.
QueueKey: TypeAlias = tuple[str, str, int]


@final
class Lock:
    """The owner of a queue, and the time of its lock by the monotonic clock."""

    __slots__ = ("client_id", "renewed")

    def __init__(self, client_id: str, renewed: float) -> None:
        self.client_id = client_id
        self.renewed = renewed


@final
class QueueLocks:
    """The locks of all groups.

    @ivar count: how many there are, with those that have expired since the last
        L{scan}.
    """

    def __init__(
        self,
        seconds: Callable[[], float],
        slices: ISlices,
        long_requests: LongRequests,
        settings: BrokerSettings,
    ) -> None:
        """
        @param seconds: the monotonic time.
        """
        self.count = 0
        self._seconds = seconds
        self._slices = slices
        self._long = long_requests
        self._groups: dict[str, dict[QueueKey, Lock]] = {}
        self.configure(settings)

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        strict = settings.broker.lock_in_strict_mode
        self._needs_votes = needs_votes(strict, settings.store.total_replicas)
        self._most = settings.broker.rocketbroker_max_request_entries

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        table.register(RequestCode.LOCK_BATCH_MQ, self.lock_batch)
        table.register(RequestCode.UNLOCK_BATCH_MQ, self.unlock_batch)

    def lock_batch(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        """Request 41: the queues that the client has now, of those it wants."""
        return self._long.begin(request, self._lock_batch(connection, request))

    async def _lock_batch(self, connection: IConnection, request: Command) -> Command:
        body, queues = await self._read(connection, request)
        granted = self._lock(body, queues)
        if self._needs_votes and not body.only_this_broker:
            granted = []
        texts: list[str] = []
        await soon(self._slices, connection, queue_texts(granted, texts))
        written = Written(["[", ",".join(texts), "]"])
        return with_body(request, {"lockOKMQSet": written})

    def unlock_batch(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        """Request 42: a client gives its queues back; those of others stay."""
        return self._long.begin(request, self._unlock_batch(connection, request))

    async def _unlock_batch(self, connection: IConnection, request: Command) -> Command:
        body, queues = await self._read(connection, request)
        locks = self._groups.get(body.consumer_group, {})
        for queue in queues:
            lock = locks.get(queue)
            if lock is not None and lock.client_id == body.client_id:
                self._remove(body.consumer_group, queue)
        return response_to(request)

    async def _read(
        self, connection: IConnection, request: Command
    ) -> tuple[LockBatchBody, list[QueueKey]]:
        """Who locks or unlocks, and the queues.

        @raise SystemFailure: the body says no such thing, or has too many queues.
        @raise InvalidParameter: a name is longer than any real one.
        """
        most = self._most
        body, entries = await self._long.read(connection, request, parts_of, most)
        check_count(len(entries), "queues", most)
        check_texts(body.client_id, body.consumer_group)
        queues: list[QueueKey] = []

        def steps() -> Iterator[None]:
            for number, entry in enumerate(entries, 1):
                queue = read(MessageQueue.from_json, entry)
                check_texts(queue.topic, queue.broker_name)
                queues.append((queue.topic, queue.broker_name, queue.queue_id))
                if number % STEP_ENTRIES == 0:
                    yield

        await soon(self._slices, connection, steps())
        return body, queues

    def is_locked(self, group: str) -> bool:
        """Whether some member of a group has a queue: the group consumes in order."""
        now = self._seconds()
        return any(
            now - lock.renewed <= LIFE_SECONDS
            for lock in self._groups.get(group, {}).values()
        )

    def scan(self) -> None:
        """Forget the locks that have expired."""
        latest = self._seconds() - LIFE_SECONDS
        for group, locks in list(self._groups.items()):
            expired = [queue for queue, lock in locks.items() if lock.renewed < latest]
            for queue in expired:
                self._remove(group, queue)

    def _lock(self, body: LockBatchBody, queues: list[QueueKey]) -> list[QueueKey]:
        now = self._seconds()
        granted = []
        locks = self._groups.setdefault(body.consumer_group, {})
        # Sorted, so that two members that ask for the same get the same order.
        for queue in sorted(set(queues)):
            lock = locks.get(queue)
            if lock is None:
                if self.count >= MAX_LOCKS:
                    continue
                self.count += 1
                locks[queue] = Lock(body.client_id, now)
            elif lock.client_id == body.client_id or now - lock.renewed > LIFE_SECONDS:
                lock.client_id = body.client_id
                lock.renewed = now
            else:
                continue
            granted.append(queue)
        if not locks:
            del self._groups[body.consumer_group]
        return granted

    def _remove(self, group: str, queue: QueueKey) -> None:
        locks = self._groups[group]
        del locks[queue]
        self.count -= 1
        if not locks:
            del self._groups[group]


def parts_of(value: object) -> tuple[LockBatchBody, list[object]]:
    """The body of 41 or 42 without its queues, and the queues, not read yet.

    @raise RemoteProtocolError: it is no such thing.
    """
    entries = Fields(value, "queues to lock").items("mqSet")
    assert isinstance(value, dict)
    body = LockBatchBody.from_json({**value, "mqSet": None})
    return body, [entry for entry in entries if entry is not None]


def check_texts(*texts: str) -> None:
    """Refuse names.

    @raise InvalidParameter: one is longer than any real one.
    """
    longest = max(map(len, texts))
    if longest > MAX_TEXT:
        raise InvalidParameter(f"a name of {longest} characters, at most {MAX_TEXT}")


def queue_texts(queues: list[QueueKey], texts: list[str]) -> Iterator[None]:
    """Write queues, some at each step.

    @param texts: gets the texts.
    """
    for number, queue in enumerate(queues, 1):
        texts.append(dumps(MessageQueue(*queue)).decode())
        if number % STEP_ENTRIES == 0:
            yield


def needs_votes(strict: bool, replicas: int) -> bool:
    """Whether a lock needs the votes of other brokers, of which there are none."""
    return strict and replicas // 2 + 1 > 1
