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

Rules: docs/facts/broker.md 18."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from rocketbroker.broker.json_bodies import decoded, with_body
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import InvalidParameter
from rocketbroker.remoting.interfaces import IConnection, IResponderTable
from rocketbroker.wire.bodies.queues import LockBatchBody, MessageQueue
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command, response_to

#: How long a lock lives after it was last asked for: RocketMQ's default for its
#: system property rocketmq.broker.rebalance.lockMaxLiveTime. Clients ask each 20 s.
LIFE_SECONDS: Final = 60.0

#: The locks that a broker keeps, a few hundred bytes each. A queue for which there is
#: no room is not granted, and its client asks again.
MAX_LOCKS: Final = 100_000

#: The longest client id, group or topic: names end at 255, an id is put together of
#: an address and names that its user chose.
MAX_TEXT: Final = 1024


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
        self, seconds: Callable[[], float], strict: bool, replicas: int
    ) -> None:
        """
        @param seconds: the monotonic time.
        @param strict: lockInStrictMode.
        @param replicas: totalReplicas.
        """
        self.count = 0
        self._seconds = seconds
        self._needs_votes = needs_votes(strict, replicas)
        self._groups: dict[str, dict[MessageQueue, Lock]] = {}

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        strict = settings.broker.lock_in_strict_mode
        self._needs_votes = needs_votes(strict, settings.store.total_replicas)

    def register(self, table: IResponderTable) -> None:
        """Answer on a port."""
        table.register(RequestCode.LOCK_BATCH_MQ, self.lock_batch)
        table.register(RequestCode.UNLOCK_BATCH_MQ, self.unlock_batch)

    def lock_batch(self, connection: IConnection, request: Command) -> Command:
        """Request 41: the queues that the client has now, of those it wants."""
        body = _read(request)
        granted = self._lock(body)
        if self._needs_votes and not body.only_this_broker:
            granted = []
        return with_body(request, {"lockOKMQSet": granted})

    def unlock_batch(self, connection: IConnection, request: Command) -> Command:
        """Request 42: a client gives its queues back; those of others stay."""
        body = _read(request)
        locks = self._groups.get(body.consumer_group, {})
        for queue in body.mq_set:
            lock = locks.get(queue)
            if lock is not None and lock.client_id == body.client_id:
                self._remove(body.consumer_group, queue)
        return response_to(request)

    def is_locked(self, group: str) -> bool:
        """Whether some member of a group has a queue: the group consumes in order."""
        return any(
            not self._is_over(lock) for lock in self._groups.get(group, {}).values()
        )

    def scan(self) -> None:
        """Forget the locks that have expired."""
        for group, locks in list(self._groups.items()):
            for queue, lock in list(locks.items()):
                if self._is_over(lock):
                    self._remove(group, queue)

    def _lock(self, body: LockBatchBody) -> list[MessageQueue]:
        now = self._seconds()
        granted = []
        locks = self._groups.setdefault(body.consumer_group, {})
        # Sorted, so that two members that ask for the same get the same order.
        for queue in sorted(set(body.mq_set)):
            lock = locks.get(queue)
            if lock is None:
                if self.count >= MAX_LOCKS:
                    continue
                self.count += 1
                locks[queue] = Lock(body.client_id, now)
            elif lock.client_id == body.client_id or self._is_over(lock):
                lock.client_id = body.client_id
                lock.renewed = now
            else:
                continue
            granted.append(queue)
        if not locks:
            del self._groups[body.consumer_group]
        return granted

    def _is_over(self, lock: Lock) -> bool:
        return self._seconds() - lock.renewed > LIFE_SECONDS

    def _remove(self, group: str, queue: MessageQueue) -> None:
        locks = self._groups[group]
        del locks[queue]
        self.count -= 1
        if not locks:
            del self._groups[group]


def needs_votes(strict: bool, replicas: int) -> bool:
    """Whether a lock needs the votes of other brokers, of which there are none."""
    return strict and replicas // 2 + 1 > 1


def _read(request: Command) -> LockBatchBody:
    """The queues to lock or unlock.

    @raise SystemFailure: the body says no such thing.
    @raise InvalidParameter: a name is longer than any real one.
    """
    body = decoded(request, LockBatchBody.from_json)
    texts = [body.client_id, body.consumer_group]
    texts += [
        text for queue in body.mq_set for text in (queue.topic, queue.broker_name)
    ]
    longest = max(map(len, texts))
    if longest > MAX_TEXT:
        raise InvalidParameter(f"a name of {longest} characters, at most {MAX_TEXT}")
    return body
