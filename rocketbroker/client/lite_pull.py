# -*- test-case-name: tests.client.test_lite_pull -*-
"""A consumer that asks for messages by itself, and says where it is.

It polls: what the last poll gave is taken for done with the next one, or with
C{commit}. It may share a topic with the members of its group, or read queues that it is
given; it may go back and forth. Nothing is sent back: there are no retries and no dead
letters. C{docs/facts/client.md} 23.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import final

from rocketbroker.client.consumer import Consumer
from rocketbroker.client.inbox import Taken
from rocketbroker.client.instance import Instance
from rocketbroker.client.observers import Outcome
from rocketbroker.client.process_queue import ProcessQueue
from rocketbroker.client.received import MessageView, view
from rocketbroker.client.settings import ConsumerSettings
from rocketbroker.client.subscription import Subscription
from rocketbroker.errors import ConfigurationError
from rocketbroker.routing.topic_view import MessageQueue


@final
class LitePullConsumer:
    """One member of a group, or a reader of queues that it is given.

    @ivar auto_commit: whether C{poll} commits, each C{commit_seconds} of the settings.
    """

    def __init__(
        self,
        instance: Instance,
        settings: ConsumerSettings,
        subscriptions: Sequence[Subscription],
        queues: Sequence[MessageQueue] | None = None,
        auto_commit: bool = True,
    ) -> None:
        """
        @param settings: of mode C{"lite"}.
        @param subscriptions: what it wants, one for each topic.
        @param queues: read these, and share nothing.
        """
        self._instance = instance
        self._settings = settings
        self._consumer = Consumer(instance, settings, subscriptions)
        self._consumer.commits = auto_commit
        self._namespace = instance.namespace
        if queues is not None:
            self._consumer.fix([self._namespace.queue_inside(one) for one in queues])
        self._given: list[Taken] = []
        self._committed_at = instance.runtime.monotonic()
        self.auto_commit = auto_commit

    async def __aenter__(self) -> LitePullConsumer:
        await self.start()
        return self

    async def __aexit__(self, *problem: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Begin to read; a topic that does not exist yet is waited for."""
        try:
            await self._consumer.start()
        except BaseException:
            await self._consumer.close()
            raise

    async def close(self) -> None:
        """Stop; what was polled is taken for done if offsets are committed by poll."""
        if self.auto_commit:
            self._settle()
        await self._consumer.close()

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues that are ours now."""
        return sorted(map(self._namespace.queue_outside, self._consumer.queues))

    async def poll(
        self, timeout: float = 5.0, max_messages: int = 32
    ) -> list[MessageView]:
        """The next messages.

        @param timeout: how many seconds to wait for the first of them.
        @return: empty if none came in time.
        @raise ClientClosed: it was closed.
        """
        self._settle()
        await self._commit_in_time()
        taken = await self._consumer.take(timeout)
        handlings = self._consumer.handlings
        while taken is not None:
            self._given.append(taken)
            if handlings is not None:
                handlings.begin(taken)
            if len(self._given) >= max_messages:
                break
            taken = await self._consumer.take(0.0)
        return [
            view(one.message, one.queue.queue, self._namespace) for one in self._given
        ]

    def _settle(self) -> None:
        """What the last poll gave is done."""
        given, self._given = self._given, []
        handlings = self._consumer.handlings
        for taken in given:
            taken.queue.settle(taken.message)
            if handlings is not None:
                handlings.end(taken.message, Outcome.ACKNOWLEDGED)

    async def _commit_in_time(self) -> None:
        now = self._instance.runtime.monotonic()
        if self.auto_commit and (
            now - self._committed_at >= self._settings.commit_seconds
        ):
            self._committed_at = now
            await self._consumer.commit()

    async def commit(self) -> None:
        """What was polled is done: commit that, and wait until it is kept."""
        self._settle()
        await self._consumer.commit()

    # Where it is.

    def position(self, queue: MessageQueue) -> int:
        """The offset of the next message that a poll gives of a queue, or of the first
        that the last poll gave.

        @raise ConfigurationError: the queue is not ours.
        """
        return self._mine(queue).commit_offset

    async def committed(self, queue: MessageQueue) -> int | None:
        """Where the group goes on; None if it has not begun."""
        inside = self._namespace.queue_inside(queue)
        group = self._consumer.settings.group
        return await self._instance.requests.committed_offset(inside, group)

    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """Go on at an offset.

        @raise ConfigurationError: the queue is not ours.
        """
        mine = self._mine(queue)
        self._given = [one for one in self._given if one.queue is not mine]
        await self._consumer.seek(mine, offset)

    async def seek_to_begin(self, queue: MessageQueue) -> None:
        """Go on at the first message that is there."""
        inside = self._namespace.queue_inside(queue)
        await self.seek(queue, await self._instance.requests.min_offset(inside))

    async def seek_to_end(self, queue: MessageQueue) -> None:
        """Go on behind the last message that is there."""
        inside = self._namespace.queue_inside(queue)
        await self.seek(queue, await self._instance.requests.max_offset(inside))

    async def offset_for_time(self, queue: MessageQueue, seconds: float) -> int:
        """The offset of the first message stored at a time or later.

        @param seconds: since 1970.
        """
        ms = round(seconds * 1000)
        inside = self._namespace.queue_inside(queue)
        return await self._instance.requests.offset_by_time(inside, ms)

    def pause(self, queues: Iterable[MessageQueue]) -> None:
        """Poll nothing of these queues, until L{resume}."""
        for queue in queues:
            self._consumer.pause(self._mine(queue), True)

    def resume(self, queues: Iterable[MessageQueue]) -> None:
        """Poll these queues again."""
        for queue in queues:
            self._consumer.pause(self._mine(queue), False)

    def _mine(self, queue: MessageQueue) -> ProcessQueue:
        found = self._consumer.queues.get(self._namespace.queue_inside(queue))
        if found is None:
            raise ConfigurationError(f"{queue} is not one of this consumer's queues")
        return found
