# -*- test-case-name: tests.client.test_observers -*-
"""The handlings of one consumer's messages, of which observers are told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import final

from rocketbroker.client.inbox import Taken
from rocketbroker.client.instance import Instance
from rocketbroker.client.observers import Handling, Observers, Outcome
from rocketbroker.client.process_queue import ProcessQueue
from rocketbroker.client.received import topic_of
from rocketbroker.client.settings import ConsumerSettings
from rocketbroker.records.record import StoredMessage
from rocketbroker.routing.topic_view import MessageQueue


@final
class Handlings:
    """The messages of one consumer that are given out; see L{ObservedConsumer}.

    @ivar group: whose member the consumer is.
    """

    def __init__(
        self,
        observers: Observers,
        instance: Instance,
        settings: ConsumerSettings,
    ) -> None:
        """
        @param settings: of the consumer, with names as brokers know them.
        """
        self._observers = observers
        self._runtime = instance.runtime
        self._namespace = instance.namespace
        self._broadcast = settings.broadcast
        self._queues: list[Mapping[MessageQueue, ProcessQueue]] = []
        self._given: dict[StoredMessage, Handling] = {}
        self._started = False
        instance.runtime.watch_fork(self)
        self.group = self._namespace.outside(settings.group)

    def forked(self) -> None:
        """See L{rocketbroker.config.forks.Forked}: all is the parent's."""
        self._queues = []
        self._given = {}

    def prefetched(self) -> Mapping[str, int]:
        """See L{ObservedConsumer.prefetched}."""
        found: Counter[str] = Counter()
        waiting = [queue for each in [*self._queues] for queue in [*each.values()]]
        for queue in waiting:
            topic = self._namespace.outside(queue.queue.topic)
            found[topic] += len(queue) - queue.given
        return found

    def start(self, queues: Mapping[MessageQueue, ProcessQueue]) -> None:
        """The consumer, or a part of it, starts.

        @param queues: where its messages wait.
        """
        self._queues.append(queues)
        if not self._started:
            self._started = True
            self._observers.consumer_started(self)

    def close(self) -> None:
        """The consumer is closed: what is given out counts for nothing."""
        for message in [*self._given]:
            self.end(message, Outcome.FAILED)
        if self._started:
            self._started = False
            self._observers.consumer_ended(self)

    def begin(self, taken: Taken) -> None:
        """A message is given out."""
        message = taken.message
        handling = self._given[message] = Handling(
            message=message,
            topic=self._namespace.outside(topic_of(message)),
            queue=self._namespace.queue_outside(taken.queue.queue),
            group=self.group,
            broadcast=self._broadcast,
            attempt=message.reconsume_times + 1,
            started_at=self._runtime.monotonic(),
        )
        self._observers.handling_started(handling)

    def listener_started(self, message: StoredMessage) -> Handling | None:
        """A listener is about to be called with it; its handling, if it has not ended
        before."""
        handling = self._given.get(message)
        if handling is not None:
            self._observers.listener_started(handling)
        return handling

    def listener_ended(self, handling: Handling, problem: BaseException | None) -> None:
        """It has returned, or has raised C{problem}."""
        handling.problem = problem
        self._observers.listener_ended(handling)

    def end(self, message: StoredMessage, outcome: Outcome) -> None:
        """A message is settled; nothing if it was before."""
        handling = self._given.pop(message, None)
        if handling is not None:
            handling.outcome = outcome
            handling.seconds = self._runtime.monotonic() - handling.started_at
            self._observers.handling_ended(handling)

    def forget(self, queue: ProcessQueue) -> None:
        """A queue is given up, or goes on elsewhere: what is given out of it counts
        for nothing."""
        for message in queue.held():
            self.end(message, Outcome.FAILED)


def handlings_of(
    instance: Instance,
    settings: ConsumerSettings,
) -> Handlings | None:
    """The handlings of a consumer; None where nobody observes."""
    if instance.observers is None:
        return None
    return Handlings(instance.observers, instance, settings)
