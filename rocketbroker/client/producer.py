# -*- test-case-name: tests.client.test_producer -*-
"""Sending. A send that failed is tried again, on another broker if there is one.

Two limits bound the tries. What a broker refuses for now is tried as often as the
settings say. Servers that cannot be reached are waited for until the time is over,
with pauses that grow, so a restart of a topic's only broker is ridden over. What was
under way when a connection broke may have been stored all the same: messages can
double, under the same unique key, and are not lost. C{docs/facts/client.md} 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, final

import attrs

from rocketbroker.client.accumulator import Accumulator
from rocketbroker.client.back_pressure import SendRoom
from rocketbroker.client.detector import Detector
from rocketbroker.client.instance import Instance
from rocketbroker.client.observers import Observers, Sends
from rocketbroker.client.queue_choice import (
    QueueChoice,
    Selection,
    Selector,
    Where,
    queue_for_key,
)
from rocketbroker.client.settings import COMPRESSIONS, ProducerSettings
from rocketbroker.client.waits import within
from rocketbroker.errors import (
    BrokerError,
    ConnectionLost,
    MessageIllegal,
    NoBroker,
    RemoteProtocolError,
    RequestTimeout,
    RocketbrokerError,
)
from rocketbroker.records.names import INNER_PRODUCER
from rocketbroker.records.outgoing import Message
from rocketbroker.records.properties import SHARDING_KEY
from rocketbroker.routing.send_requests import (
    RETRY_CODES,
    OpenBatch,
    SendRequest,
    SendRequests,
    SendResult,
)
from rocketbroker.routing.topic_view import MessageQueue, writable
from rocketbroker.wire.command import Command

#: Pauses between two tries: the first, and the longest.
FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 2.0

#: Failures that another connection may cure, or another broker.
PASSING: Final = (ConnectionLost, RequestTimeout, RemoteProtocolError, NoBroker)


@final
class _Tries:
    """The tries of one send.

    @ivar failed_broker: where the last one failed.
    @ivar refused: how many brokers have refused.
    """

    def __init__(self, deadline: float, last_at: float, attempts: int) -> None:
        """
        @param deadline: when the last one is over.
        @param last_at: when the last one begins.
        """
        self.deadline = deadline
        self._last_at = last_at
        self._attempts = attempts
        self._pause = FIRST_PAUSE
        self.failed_broker: str | None = None
        self.refused = 0

    def pause(self, problem: RocketbrokerError, now: float) -> float:
        """How long to wait until the next try.

        @raise RocketbrokerError: there is none.
        """
        if isinstance(problem, BrokerError) and not isinstance(problem, NoBroker):
            self.refused += 1
            if problem.code not in RETRY_CODES or self.refused >= self._attempts:
                raise problem
        pause = self._pause
        self._pause = min(2 * pause, LONGEST_PAUSE)
        if now + pause >= self._last_at:
            raise problem
        return pause


@final
class Producer:
    """Sends messages in the name of a group.

    @ivar requests: makes its requests.
    @ivar sent: how many messages have been stored.
    @ivar retries: how many sends have been tried again.
    """

    def __init__(self, instance: Instance, settings: ProducerSettings) -> None:
        group = instance.namespace.producer_group(settings.group)
        settings = attrs.evolve(settings, group=group)
        self._instance = instance
        self._settings = settings
        self._choice = QueueChoice(settings.avoid_slow, instance.token)
        self._detector: Detector | None = None
        self._accumulator: Accumulator | None = None
        self._room = SendRoom(
            instance.runtime, settings.max_sends, settings.max_send_bytes
        )
        self.requests = SendRequests(
            settings.group,
            instance.unique_key,
            instance.runtime.wall_ms,
            settings.compress_over,
            COMPRESSIONS[settings.compress],
            settings.compress_level,
            settings.max_body_bytes,
            instance.namespace.name,
            instance.settings.unit_mode,
        )
        self.sent = 0
        self.retries = 0

    def start(self) -> None:
        """Become a member of the group; idempotent."""
        self._instance.start()
        if self._settings.detector and self._detector is None:
            self._detector = Detector(self._instance, self._choice, self._settings)
            self._instance.tasks.spawn(self._detector.run())
        if self._settings.group != INNER_PRODUCER:
            self._instance.membership.add_producer(self._settings.group)

    async def close(self) -> None:
        """Send what is gathered, and leave the group."""
        if self._accumulator is not None:
            await self._accumulator.close(self._instance.settings.seconds)
        if self._settings.group != INNER_PRODUCER:
            await self._instance.membership.leave(producer=self._settings.group)

    async def send(
        self,
        message: Message,
        queue: MessageQueue | Selector | None = None,
        timeout: float | None = None,
        accumulate: bool | None = None,
        patience: float | None = None,
    ) -> SendResult:
        """Send one message and wait until it is stored.

        A message with a sharding key goes to the queue of that key, and is not tried
        elsewhere: so messages with the same key keep their order, if each is sent when
        the one before it is stored.

        @param queue: where to, or a function of the topic's queues and the message that
            chooses one; it is then not tried elsewhere.
        @param timeout: seconds for all tries together; unless given, the patience of
            the client's settings.
        @param accumulate: gather it with others into a batch; unless given, as the
            settings say.
        @param patience: see L{deliver}; a message with it is not gathered.
        @raise MessageIllegal: it cannot be sent, or the broker refuses it.
        @raise TopicNotExist: there is no such topic, and nobody creates it.
        @raise BrokerError: the last broker tried refused.
        @raise ConnectionLost: no broker could be reached in time, or the last one got
            lost: the message may be stored.
        @raise RequestTimeout: the last broker tried did not answer: the same.
        """
        key = message.properties.get(SHARDING_KEY)
        where = Selection(queue, message) if callable(queue) else queue
        gathers = self._settings.accumulate if accumulate is None else accumulate
        gathers = gathers and patience is None
        observers = self._instance.observers
        if observers is None:
            if gathers:
                return await self._gather(message, where, timeout, key)
            request = self.requests.single(message)
            return await self.deliver(request, where, timeout, key, None, patience)
        with self._sends(observers, [message]) as sends:
            (copy,) = sends.messages
            if gathers:
                result = await self._gather(copy, where, timeout, key, sends)
            else:
                request = self.requests.single(copy)
                result = await self.deliver(
                    request, where, timeout, key, sends, patience
                )
            return sends.stored(result)

    async def _gather(
        self,
        message: Message,
        where: Where,
        timeout: float | None,
        key: str | None,
        sends: Sends | None = None,
    ) -> SendResult:
        """Send a message with others, or alone where that cannot be."""
        instance = self._instance
        routes, namespace = instance.routes, instance.namespace
        if self._accumulator is None:
            self._accumulator = Accumulator(
                instance.runtime, self.requests, self._settings, self.deliver
            )
        queue: MessageQueue | None
        if isinstance(where, Selection) or (where is None and key is not None):
            try:
                queues = await routes.write_queues(namespace.inside(message.topic))
            except PASSING:
                request = self.requests.single(message)
                return await self.deliver(request, where, timeout, key, sends)
            queue = namespace.queue_outside(self._choose(queues, where, key, None))
        else:
            queue = where
        waiter = self._accumulator.gather(message, queue, timeout)
        if waiter is None:
            request = self.requests.single(message)
            return await self.deliver(request, queue, timeout, key, sends)
        result = await waiter
        if sends is not None:
            broker = result.queue.broker
            topic = namespace.inside(message.topic)
            sends.tried(result.queue, routes.master(topic, broker))
        return result

    async def send_batch(
        self,
        messages: Iterable[Message],
        queue: MessageQueue | None = None,
        timeout: float | None = None,
        patience: float | None = None,
    ) -> list[SendResult]:
        """Send messages of one topic in as few requests as their sizes allow.

        Messages that rest for a while go alone: brokers take none of them in a batch.

        @param queue: where to; unless given, each request goes to the next queue.
        @param timeout: for each request, as C{patience}; see L{send}, also for errors.
        @return: one result for each request; their ids are in the order of messages.
        @raise MessageIllegal: one cannot be sent; then none is.
        """
        observers = self._instance.observers
        if observers is None:
            requests = self._batches(messages)
            return [
                await self.deliver(one, queue, timeout, patience=patience)
                for one in requests
            ]
        with self._sends(observers, messages) as sends:
            results = []
            for request in self._batches(sends.messages):
                sends.go_on(len(request.message_ids))
                result = await self.deliver(
                    request, queue, timeout, None, sends, patience
                )
                results.append(sends.stored(result))
            return results

    def _sends(self, observers: Observers, messages: Iterable[Message]) -> Sends:
        instance = self._instance
        group = instance.namespace.outside(self._settings.group)
        return Sends(observers, instance.runtime.monotonic, group, messages)

    def _batches(self, messages: Iterable[Message]) -> list[SendRequest]:
        settings = self._settings
        limit = min(settings.batch_bytes, settings.max_body_bytes)
        batch = OpenBatch(self.requests)
        found: list[SendRequest | None] = []
        for message in messages:
            if batch.first is not None and message.topic != batch.first.topic:
                raise MessageIllegal("a batch has one topic")
            found.append(batch.take(message, limit))
        found.append(batch.close())
        return [request for request in found if request is not None]

    async def send_oneway(
        self, message: Message, queue: MessageQueue | Selector | None = None
    ) -> None:
        """Send one message, and do not wait until it is stored: it may be lost.

        @raise MessageIllegal: it cannot be sent.
        @raise TopicNotExist: there is no such topic, and nobody creates it.
        @raise ConnectionLost: its broker cannot be reached.
        """
        where = Selection(queue, message) if callable(queue) else queue
        observers = self._instance.observers
        if observers is None:
            await self._oneway(message, where)
            return
        with self._sends(observers, [message]) as sends:
            await self._oneway(sends.messages[0], where, sends)

    async def _oneway(
        self, message: Message, queue: Where, sends: Sends | None = None
    ) -> None:
        instance = self._instance
        request = self.requests.single(message)
        key = message.properties.get(SHARDING_KEY)
        queues = await instance.routes.write_queues(request.topic)
        chosen = self._choose(queues, queue, key, None)
        address = instance.routes.master(request.topic, chosen.broker)
        if sends is not None:
            sends.tried(instance.namespace.queue_outside(chosen), address)
        command = Command(request.code, request.ext_for(chosen), request.body)
        await instance.connections.to(address).oneway(command)
        self.sent += 1

    def _choose(
        self,
        queues: Sequence[MessageQueue],
        queue: Where,
        key: str | None,
        failed_broker: str | None,
    ) -> MessageQueue:
        if isinstance(queue, Selection):
            outside = self._instance.namespace.queue_outside
            queue = queue.of([outside(one) for one in queues])
        if queue is not None:
            inside = self._instance.namespace.queue_inside(queue)
            return inside._replace(broker=self._instance.routes.broker_of(inside))
        if key is not None:
            return queue_for_key(queues, key)
        now = self._instance.runtime.monotonic()
        return self._choice.next(queues, failed_broker, now)

    async def deliver(
        self,
        request: SendRequest,
        queue: Where = None,
        timeout: float | None = None,
        key: str | None = None,
        sends: Sends | None = None,
        patience: float | None = None,
    ) -> SendResult:
        """Send what is ready to be sent, when there is room; see L{send}.

        @param sends: is told where each try goes.
        @param patience: seconds after which it is not tried again; the last try may
            take longer. Unless given, as long as all tries together may take.
        """
        runtime = self._instance.runtime
        tries = self._tries(timeout, patience)
        room, size = self._room, len(request.body)
        if not room.take(size):
            await room.wait(size, tries.deadline)
        unsafe: SendResult | None = None
        try:
            while True:
                try:
                    result = await self._try(request, queue, key, tries, sends)
                    tries.refused += 1
                    is_last = tries.refused >= self._settings.attempts
                    if not result.status or not self._settings.retry_unsafe or is_last:
                        return result
                    unsafe, pause = result, 0.0
                except (*PASSING, BrokerError) as problem:
                    if unsafe is not None:
                        return unsafe
                    pause = tries.pause(problem, runtime.monotonic())
                    self._tell(request.topic, tries.failed_broker, problem)
                self.retries += 1
                await runtime.sleep(pause)
        finally:
            room.leave(size)

    def _tries(self, timeout: float | None, patience: float | None) -> _Tries:
        """How often and how long a send that begins now is tried."""
        settings = self._instance.settings
        now = self._instance.runtime.monotonic()
        attempts = self._settings.attempts
        if patience is None:
            deadline = now + (settings.patience if timeout is None else timeout)
            return _Tries(deadline, deadline, attempts)
        seconds = patience + settings.seconds if timeout is None else timeout
        return _Tries(now + seconds, now + min(patience, seconds), attempts)

    async def _try(
        self,
        request: SendRequest,
        queue: Where,
        key: str | None,
        tries: _Tries,
        sends: Sends | None,
    ) -> SendResult:
        instance = self._instance
        runtime = instance.runtime
        is_again = tries.failed_broker is not None
        known = None if is_again else instance.routes.known(request.topic)
        queues: Sequence[MessageQueue]
        if known is not None:
            queues = writable(request.topic, known)
        else:
            # A name server that hangs has no more time than the send.
            left = max(tries.deadline - runtime.monotonic(), 0.001)
            asked = instance.routes.write_queues(request.topic, is_again)
            queues = await within(runtime, left, asked)
        now = runtime.monotonic()
        chosen = self._choose(queues, queue, key, tries.failed_broker)
        tries.failed_broker = chosen.broker
        address = instance.routes.master(request.topic, chosen.broker)
        if sends is not None:
            sends.tried(instance.namespace.queue_outside(chosen), address)
        seconds = min(instance.settings.seconds, max(tries.deadline - now, 0.001))
        command = Command(request.code, request.ext_for(chosen), request.body)
        detector = self._detector
        if detector is not None:
            detector.topics[chosen.broker] = request.topic
        try:
            answer = await instance.connections.invoke(address, command, seconds)
            result = request.result(chosen, answer)
        except RocketbrokerError as problem:
            end = runtime.monotonic()
            # Only a detector finds out that a broker can be reached again.
            unseen = detector is None and not isinstance(problem, BrokerError)
            self._choice.report(chosen.broker, end - now, True, end, unseen)
            raise
        end = runtime.monotonic()
        failed = bool(result.status) and self._settings.retry_unsafe
        self._choice.report(chosen.broker, end - now, failed, end)
        self.sent += len(request.message_ids)
        if instance.outages.away:
            instance.outages.worked(f"broker {chosen.broker}")
            instance.outages.worked(f"a broker for {request.topic}")
        shown = instance.namespace.queue_outside(result.queue)
        return result if shown is result.queue else result._replace(queue=shown)

    def _tell(self, topic: str, broker: str | None, problem: RocketbrokerError) -> None:
        """Say what is away; routes say it of name servers."""
        if isinstance(problem, NoBroker):
            self._instance.outages.failed(f"a broker for {topic}", problem)
        elif isinstance(problem, PASSING) and broker is not None:
            self._instance.outages.failed(f"broker {broker}", problem)
