# -*- test-case-name: tests.client.test_consumer -*-
"""Fills one process queue: a pull, and the next one when there is room.

Each queue has a loop of its own, so a broker that hangs holds up its own queues only.
The broker holds a pull until there is a message, so an idle queue costs a request each
fifteen seconds. C{docs/facts/client.md} 19.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, final

from rocketbroker.client.inbox import Inbox
from rocketbroker.client.instance import Instance
from rocketbroker.client.process_queue import ProcessQueue
from rocketbroker.client.pull import (
    FOUND,
    MOVED,
    SLACK_SECONDS,
    Pulled,
    lite_pull_request,
    pull_request,
    pulled,
)
from rocketbroker.client.settings import ConsumerSettings
from rocketbroker.client.subscription import Subscription
from rocketbroker.client.waits import Signal
from rocketbroker.errors import (
    BrokerError,
    RemoteProtocolError,
    RocketbrokerError,
    SubscriptionNotExist,
    SubscriptionNotLatest,
)
from rocketbroker.records.batches import messages
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.record import StoredMessage
from rocketbroker.wire.codes import ResponseCode
from rocketbroker.wire.command import Command

#: Seconds until the next try: when the broker asks for a pause, after the first
#: failure, and at most.
FLOW_CONTROL_PAUSE: Final = 0.02
FIRST_PAUSE: Final = 0.25
LONGEST_PAUSE: Final = 3.0

#: How long an ordered queue without a lock rests.
UNLOCKED_PAUSE: Final = 1.0

_log: Final = logging.getLogger("rocketbroker.client")


@final
class PullLoop:
    """The loop of one queue."""

    def __init__(
        self,
        instance: Instance,
        settings: ConsumerSettings,
        subscription: Subscription,
        version: Callable[[], int],
        queue: ProcessQueue,
        inbox: Inbox,
    ) -> None:
        """
        @param version: of the subscription, as the last heartbeat had it.
        """
        self._instance = instance
        self._settings = settings
        self._subscription = subscription
        self._version = version
        self._queue = queue
        self._inbox = inbox
        self._room = Signal(instance.runtime)
        self._failures = 0
        queue.watch_room(self._room.fire)

    async def run(self) -> None:
        """Pull until the queue is dropped, or the task is cancelled."""
        queue = self._queue
        while not queue.dropped:
            if queue.is_full:
                await self._room.wait()
            elif self._settings.ordered and self._is_unlocked():
                await self._instance.runtime.sleep(UNLOCKED_PAUSE)
            else:
                await self._pull()

    def _is_unlocked(self) -> bool:
        return self._instance.runtime.monotonic() >= self._queue.locked_until

    async def _pull(self) -> None:
        queue = self._queue
        instance = self._instance
        address = None
        try:
            address, is_master = instance.routes.readable(queue.queue, queue.broker_id)
            offset = queue.pull_offset
            queue.pulled_at = instance.runtime.monotonic()
            command = self._request(is_master)
            seconds = self._settings.hold_seconds + SLACK_SECONDS
            answer = await instance.connections.invoke(address, command, seconds)
            found = pulled(answer)
            if not queue.dropped and queue.pull_offset == offset:
                self._take(found)
        except (SubscriptionNotExist, SubscriptionNotLatest):
            assert address is not None
            await instance.membership.beat_to(address)
            await self._pause(ResponseCode.SUBSCRIPTION_NOT_EXIST)
        except BrokerError as problem:
            await self._failed(problem, problem.code)
        except RocketbrokerError as problem:
            await self._failed(problem, None)
        else:
            self._failures = 0
            name = instance.routes.broker_of(queue.queue)
            instance.outages.worked(f"broker {name}")

    def _request(self, is_master: bool) -> Command:
        queue = self._queue
        if self._settings.mode == "lite":
            return lite_pull_request(
                queue.queue, queue.pull_offset, self._subscription, self._settings
            )
        commits = is_master and not self._settings.broadcast
        return pull_request(
            queue.queue,
            queue.pull_offset,
            queue.commit_offset if commits else None,
            self._subscription,
            self._version(),
            self._settings,
        )

    async def _failed(self, problem: RocketbrokerError, code: int | None) -> None:
        queue = self._queue
        queue.broker_id = 0
        if code not in (ResponseCode.FLOW_CONTROL, ResponseCode.NOT_LEADER_FOR_QUEUE):
            name = self._instance.routes.broker_of(queue.queue)
            self._instance.outages.failed(f"broker {name}", problem)
        await self._pause(code)
        if self._failures and code in (None, ResponseCode.NOT_LEADER_FOR_QUEUE):
            await self._learn_route()

    async def _pause(self, code: int | None) -> None:
        if code == ResponseCode.FLOW_CONTROL:
            await self._instance.runtime.sleep(FLOW_CONTROL_PAUSE)
            return
        pause = min(FIRST_PAUSE * 2**self._failures, LONGEST_PAUSE)
        self._failures = min(self._failures + 1, 10)
        await self._instance.runtime.sleep(pause)

    async def _learn_route(self) -> None:
        try:
            await self._instance.routes.view(self._queue.queue.topic, refresh=True)
        except RocketbrokerError as problem:
            _log.debug("No route of %s: %s", self._queue.queue.topic, problem)

    def _take(self, found: Pulled) -> None:
        queue = self._queue
        queue.broker_id = found.broker_id
        if found.code == MOVED:
            _log.warning(
                "%s has no offset %d any more; it is read from %d",
                queue.queue,
                queue.pull_offset,
                found.next_offset,
            )
            queue.reset(found.next_offset)
            return
        if found.code != FOUND:
            queue.add([], max(found.next_offset, queue.pull_offset))
            return
        if found.next_offset <= queue.pull_offset:
            raise RemoteProtocolError(
                f"{queue.queue} was read from {queue.pull_offset} and goes on at "
                f"{found.next_offset}"
            )
        queue.add(self._wanted(found.data, found.delta), found.next_offset)
        self._inbox.offer(queue)

    def _wanted(self, data: bytes, delta: int) -> list[StoredMessage]:
        """The messages that were asked for; those of a batch that are behind us not.

        @param delta: what is added to their offsets.
        """
        wanted: list[StoredMessage] = []
        start = self._queue.pull_offset
        origin = self._subscription.origin
        try:
            for message in messages(data):
                if delta:
                    message.queue_offset += delta
                if origin:
                    message.topic = origin
                if message.queue_offset >= start and self._subscription.wants(
                    message.tags
                ):
                    wanted.append(message)
        except Malformed as problem:
            _log.error(
                "%s has something behind %s that is no message, and is passed over: %s",
                self._queue.queue,
                wanted[-1] if wanted else f"offset {start}",
                problem,
            )
        return wanted
