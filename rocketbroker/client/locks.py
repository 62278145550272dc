# -*- test-case-name: tests.client.test_ordered -*-
"""Queues of ordered consumers: one member at a time has the lock of a queue.

Our side takes a lock for lost after 30 s without a renewal, the broker after 60 s. So a
member that cannot reach the broker stops before another one begins.
C{docs/facts/client.md} 21.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from typing import Final, final

from rocketbroker.client.instance import Instance
from rocketbroker.client.process_queue import ProcessQueue
from rocketbroker.client.waits import together
from rocketbroker.errors import RocketbrokerError
from rocketbroker.routing.topic_view import MessageQueue

#: How long a lock is good after it was given, and how often it is renewed.
LOCK_SECONDS: Final = 30.0
RENEWAL_SECONDS: Final = 20.0

_log: Final = logging.getLogger("rocketbroker.client")


@final
class QueueLocks:
    """The locks of one consumer."""

    def __init__(self, instance: Instance, group: str) -> None:
        self._instance = instance
        self._group = group

    async def lock(self, queues: Iterable[MessageQueue]) -> dict[MessageQueue, float]:
        """Lock queues; until when each is ours, 0 for those that others have.

        Those whose broker does not answer are left out.
        """
        until = self._instance.runtime.monotonic() + LOCK_SECONDS
        found: dict[MessageQueue, float] = {}
        await together(
            self._instance.runtime,
            [
                self._lock(broker, some, until, found)
                for broker, some in self._by_broker(queues).items()
            ],
        )
        return found

    async def _lock(
        self,
        broker: str,
        queues: Collection[MessageQueue],
        until: float,
        found: dict[MessageQueue, float],
    ) -> None:
        instance = self._instance
        me = instance.membership.client_id
        try:
            locked = await instance.requests.lock(broker, me, self._group, queues)
        except RocketbrokerError as problem:
            _log.debug("No locks from broker %s: %s", broker, problem)
            return
        found.update({queue: until if queue in locked else 0.0 for queue in queues})

    async def renew(self, queues: Collection[ProcessQueue]) -> None:
        """Lock all again: those that were lost give nothing out until they are ours."""
        found = await self.lock(one.queue for one in queues)
        for one in queues:
            one.locked_until = found.get(one.queue, one.locked_until)

    async def unlock(self, queues: Iterable[MessageQueue]) -> None:
        """Let others have them."""
        await together(
            self._instance.runtime,
            [
                self._unlock(broker, some)
                for broker, some in self._by_broker(queues).items()
            ],
        )

    def _by_broker(
        self, queues: Iterable[MessageQueue]
    ) -> dict[str, list[MessageQueue]]:
        """Queues by the name of the broker that has them now."""
        found: dict[str, list[MessageQueue]] = {}
        for queue in queues:
            name = self._instance.routes.broker_of(queue)
            found.setdefault(name, []).append(queue)
        return found

    async def _unlock(self, broker: str, queues: Collection[MessageQueue]) -> None:
        instance = self._instance
        me = instance.membership.client_id
        try:
            await instance.requests.unlock(broker, me, self._group, queues)
        except RocketbrokerError as problem:
            _log.debug("Broker %s keeps our locks: %s", broker, problem)
