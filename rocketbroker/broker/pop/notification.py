# -*- test-case-name: tests.broker.pop.test_notification -*-
"""Requests 200054 and 200055: whether there is something to pop, and how many wait.

A client that shares a few connections among many consumers, as RocketMQ's Proxy does,
asks first, without taking messages, and may wait for the answer.

C{docs/facts/transaction-timer-pop.md} C9; C{docs/facts/broker.md} 20.7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, final

from twisted.internet.defer import Deferred

from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.metadata.offsets import NONE
from rocketbroker.broker.metadata.topics import TopicTable
from rocketbroker.broker.pop.pop_checks import PopChecks, PopRoute
from rocketbroker.broker.pop.pop_polling import (
    LEAST_SECONDS,
    HeldPop,
    HoldResult,
    PopLongPolling,
)
from rocketbroker.broker.pop.pop_request import Source
from rocketbroker.broker.pop.pop_state import PopState
from rocketbroker.errors import BrokerError
from rocketbroker.records.names import is_retry_topic
from rocketbroker.remoting.interfaces import (
    Answer,
    IConnection,
    IResponderTable,
    ISlices,
)
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.headers.pull import (
    NotificationRequestHeader,
    NotificationResponseHeader,
    PollingInfoRequestHeader,
    PollingInfoResponseHeader,
)

#: Required fields that a notification does well without.
NOT_NEEDED: Final = frozenset(("bornTime", "pollTime"))


#: So many queues are looked at in one step: a millisecond.
STEP_QUEUES: Final = 512


@final
class NotificationRequests:
    """The responder of requests 200054 and 200055."""

    def __init__(
        self,
        context: BrokerContext,
        topics: TopicTable,
        state: PopState,
        checks: PopChecks,
        polling: PopLongPolling,
        pops: PopLongPolling,
        dispatch: Callable[[], None],
    ) -> None:
        """
        @param polling: the notifications that wait. C{pops}: the pops that do.
        @param dispatch: enters what was appended into the queues, now.
        """
        self._clock = context.clock
        self._store = context.store
        self._checks = checks
        self._topics = topics
        self._retry_topics = state.retry_topics
        self._progress = state.progress
        self._order = state.order
        self._polling = polling
        self._pops = pops
        self._dispatch = dispatch
        self._wall_ms = context.wall_ms
        self._slices: ISlices = context.slices

    def register(self, table: IResponderTable) -> None:
        """Answer on a port; not on the VIP port, as in RocketMQ."""
        table.register(RequestCode.NOTIFICATION, self.notify)
        table.register(RequestCode.POLLING_INFO, self.info)

    def info(self, connection: IConnection, request: Command) -> Command:
        """Request 200055: how many pops wait."""
        header = PollingInfoRequestHeader.complete(request.ext)
        self._checks.check(
            header.consumer_group, header.topic, header.queue_id, None, ""
        )
        party = header.topic, header.consumer_group
        count = self._pops.count(party, header.queue_id)
        answer = PollingInfoResponseHeader(polling_num=count)
        return response_to(request, ext=answer.to_ext())

    def notify(self, connection: IConnection, request: Command) -> Answer:
        """Request 200054: whether there is a message."""
        header = NotificationRequestHeader.complete(request.ext, NOT_NEEDED)
        route = self._route(header)
        self._dispatch()
        sources = self._sources(header, route)
        if len(sources) > STEP_QUEUES:
            return Deferred.fromCoroutine(
                self._notify(connection, request, header, sources)
            )
        if self._has_messages(header, sources):
            return answer_to(request, True, False)
        return self._hold(connection, request, header)

    async def _notify(
        self,
        connection: IConnection,
        request: Command,
        header: NotificationRequestHeader,
        sources: list[Source],
    ) -> Command | None:
        """The same of more queues than one turn has time for."""
        if await self._look(connection, header, sources):
            return answer_to(request, True, False)
        answer = self._hold(connection, request, header)
        if not isinstance(answer, Deferred):
            return answer
        # Messages may have come into queues after it had looked at them.
        if await self._look(connection, header, sources):
            self._polling.wake(header.topic, header.consumer_group, header.queue_id)
        return await answer

    async def _look(
        self,
        connection: IConnection,
        header: NotificationRequestHeader,
        sources: list[Source],
    ) -> bool:
        """Whether a pop would find something, looked up in slices."""
        found = False

        def steps() -> Iterator[None]:
            nonlocal found
            for at in range(0, len(sources), STEP_QUEUES):
                found = self._has_messages(header, sources[at : at + STEP_QUEUES])
                if found:
                    return
                yield

        await self._slices.run(connection, steps())
        return found

    def _route(self, header: NotificationRequestHeader) -> PopRoute:
        return self._checks.check(
            header.consumer_group, header.topic, header.queue_id, None, ""
        )

    def _hold(
        self,
        connection: IConnection,
        request: Command,
        header: NotificationRequestHeader,
    ) -> Answer:
        done: Deferred[Command | None] = Deferred()
        now_ms = self._wall_ms()
        wait_ms = (header.born_time or now_ms) + header.poll_time - now_ms
        if header.poll_time <= 0 or wait_ms <= LEAST_SECONDS * 1000:
            return answer_to(request, False, False)
        held = self._polling.hold(
            HeldPop(
                connection,
                (header.topic, header.consumer_group),
                header.queue_id,
                self._clock.seconds() + wait_ms / 1000,
                None,
                partial(self._resume, connection, request, header, done),
            )
        )
        if held is HoldResult.HELD:
            return done
        return answer_to(request, False, held is HoldResult.FULL)

    def _resume(
        self,
        connection: IConnection,
        request: Command,
        header: NotificationRequestHeader,
        done: Deferred[Command | None],
    ) -> None:
        """One that has waited looks again, and is answered in any case."""
        if connection.closed:
            return
        try:
            sources = self._sources(header, self._route(header))
        except BrokerError as error:
            done.callback(response_to(request, error.code, error.remark))
            return
        if len(sources) > STEP_QUEUES:
            looked = Deferred.fromCoroutine(self._look(connection, header, sources))
            looked.addCallbacks(
                lambda found: done.callback(answer_to(request, found, False)),
                done.errback,
            )
            return
        done.callback(answer_to(request, self._has_messages(header, sources), False))

    def _sources(
        self, header: NotificationRequestHeader, route: PopRoute
    ) -> list[Source]:
        """The queues in which a pop would look."""
        topic, group = header.topic, header.consumer_group
        if header.queue_id >= 0:
            sources = [(topic, header.queue_id)]
        else:
            sources = [(topic, number) for number in range(route.read_queues)]
        if header.order or is_retry_topic(topic):
            return sources
        for chance in (0, 1):
            retry = self._retry_topics.read(group, topic, chance)
            config = self._topics.config(retry)
            queues = config.read_queue_nums if config else 0
            sources += [(retry, number) for number in range(queues)]
        return sources

    def _has_messages(
        self, header: NotificationRequestHeader, sources: list[Source]
    ) -> bool:
        """Whether a pop would find something in one of these queues."""
        return any(self._has_message(header, *source) for source in sources)

    def _has_message(
        self, header: NotificationRequestHeader, topic: str, queue_id: int
    ) -> bool:
        place = header.consumer_group, topic, queue_id
        if header.order:
            free_ms = self._order.free_ms(place, header.attempt_id, 0)
            if free_ms > self._wall_ms():
                return False
        queue = self._store.queue(topic, queue_id)
        offset = self._progress.next_offset(place)
        if offset == NONE:
            offset = queue.min_offset
        return queue.max_offset > offset


def answer_to(request: Command, has_message: bool, is_full: bool) -> Command:
    """The answer to a notification."""
    header = NotificationResponseHeader(has_msg=has_message, polling_full=is_full)
    return response_to(request, ext=header.to_ext())
