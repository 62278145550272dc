# -*- test-case-name: tests.client.test_pop -*-
"""A member of a group that pops: brokers give each message to one of the members.

No queue has an owner, so there is no rebalance, no offset and no lock: a message that
is popped is invisible to the others for a while, and is acknowledged by itself. Members
may be more than there are queues. RocketMQ 5 and newer.

A loop for each broker of the topic, or for each of the places that brokers assign
(L{rocketbroker.client.assignment}), asks for messages, and the broker waits until there
are some. What is not acknowledged in time is given out again, perhaps to another
member; so a message that has waited here for too long is left alone.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Final, final

from rocketbroker.client.handlings import Handlings, handlings_of
from rocketbroker.client.inbox import Inbox, Taken
from rocketbroker.client.instance import Instance
from rocketbroker.client.observers import Outcome
from rocketbroker.client.pop import (
    ANY_QUEUE,
    SLACK_SECONDS,
    Popped,
    PopPlace,
    ack_request,
    pop_request,
    popped,
    rest_request,
    retry_seconds,
)
from rocketbroker.client.process_queue import ProcessQueue
from rocketbroker.client.producer import Producer
from rocketbroker.client.pull_loop import FIRST_PAUSE, LONGEST_PAUSE
from rocketbroker.client.received import ReceivedMessage, topic_of
from rocketbroker.client.replies import send_reply
from rocketbroker.client.settings import ConsumerSettings, ProducerSettings
from rocketbroker.client.subscription import Subscription
from rocketbroker.client.waits import Signal, Tasks, together
from rocketbroker.errors import ClientClosed, RocketbrokerError, TopicNotExist
from rocketbroker.records.record import StoredMessage
from rocketbroker.routing.topic_view import READ, MessageQueue
from rocketbroker.wire.bodies.heartbeats import ConsumerData
from rocketbroker.wire.command import Command

#: How long an acknowledgement may take.
ACK_SECONDS: Final = 3.0

#: How many messages of a broker may be without an acknowledgement.
MAX_UNACKNOWLEDGED: Final = 96

_log: Final = logging.getLogger("rocketbroker.client")


@final
class PopConsumer:
    """One member of a group that pops.

    @ivar settings: its settings.
    @ivar namespace: how its users know topics and groups.
    @ivar topic: the topic, as brokers know it.
    @ivar queues: empty: no queue is its own.
    @ivar received: how many messages have been given out.
    @ivar handlings: what observers are told of its messages; None for no observers.
    """

    def __init__(
        self,
        instance: Instance,
        settings: ConsumerSettings,
        subscription: Subscription,
        inbox: Inbox | None = None,
        handlings: Handlings | None = None,
    ) -> None:
        """
        @param instance: belongs to this consumer alone, which closes it.
        @param inbox: of the member of which this is a part: then it is not started, but
            told where to pop (L{assign}), and leaves no group.
        @param handlings: of that member.
        """
        runtime = instance.runtime
        self.namespace = instance.namespace
        settings = self.namespace.settings(settings)
        (subscription,) = self.namespace.subscriptions([subscription])
        self.settings = settings
        self.topic = subscription.topic
        self.queues: dict[MessageQueue, ProcessQueue] = {}
        self._instance = instance
        self._subscription = subscription
        self._version = runtime.wall_ms()
        self._inbox = inbox or Inbox(runtime)
        self._tasks = Tasks(runtime)
        self._loops: dict[PopPlace, Tasks] = {}
        self._places: dict[MessageQueue, ProcessQueue] = {}
        self._popped_at: dict[str, float] = {}
        self._handles: dict[StoredMessage, Popped] = {}
        self._room = Signal(runtime)
        self._replies = Producer(instance, ProducerSettings())
        self._closing = False
        self.handlings = handlings or handlings_of(instance, settings)
        if handlings is not None:
            handlings.start(self._places)
        self.received = 0

    async def start(self, wait_for_topic: bool = True) -> None:
        """See L{rocketbroker.client.consumer.Consumer.start}."""
        instance = self._instance
        if self.handlings is not None:
            self.handlings.start(self._places)
        try:
            await instance.routes.view(self._subscription.topic)
        except TopicNotExist:
            if not wait_for_topic:
                raise
        except RocketbrokerError as problem:
            _log.debug("Topic %s is waited for: %s", self._subscription.topic, problem)
        instance.membership.add_consumer(self.settings.group, self.heartbeat_data)
        instance.start()
        await instance.membership.beat()
        await self._look_for_brokers()
        self._tasks.spawn(self._looking_for_brokers())

    async def stop_reading(self) -> None:
        """See L{rocketbroker.client.consumer.Consumer.stop_reading}."""
        self._inbox.close()
        await self._tasks.end()
        await self.assign([])

    async def close(self) -> None:
        """Leave the group; what is not acknowledged is given out again in time."""
        if self._closing or self._inbox.foreign:
            return
        await self.end()
        await self._instance.membership.leave(consumer=self.settings.group)
        await self._instance.close()

    async def end(self) -> None:
        """Pop no more, and acknowledge no more."""
        self._closing = True
        if self.handlings is not None:
            self.handlings.close()
        await self.stop_reading()

    def offsets(self) -> Mapping[MessageQueue, int]:
        """None: no queue is its own."""
        return {}

    async def reset(self, offsets: Mapping[MessageQueue, int]) -> None:
        """Nothing: the brokers keep where the group is."""

    def pops(self) -> dict[str, tuple[float, int]]:
        """Of each broker: when it was last asked, by the monotonic clock, and how many
        of its messages are not settled."""
        held = dict.fromkeys(self._popped_at, 0)
        for one in self._places.values():
            held[one.queue.broker] += len(one)
        return {broker: (at, held[broker]) for broker, at in self._popped_at.items()}

    def heartbeat_data(self) -> ConsumerData:
        """What heartbeats say of it."""
        return ConsumerData(
            group_name=self.settings.group,
            unit_mode=self._instance.settings.unit_mode,
            subscription_data_set=[self._subscription.data(self._version)],
        )

    async def next(self, seconds: float | None = None) -> ReceivedMessage | None:
        """See L{rocketbroker.client.consumer.Consumer.next}."""
        while True:
            taken = await self._inbox.next(seconds)
            if taken is None:
                return None
            message = self.given_out(taken)
            if message is not None:
                return message

    def given_out(self, taken: Taken) -> ReceivedMessage | None:
        """A message as its reader has it; None if it has waited too long."""
        if self._is_late(taken.message):
            self._settle(taken)
            return None
        self.received += 1
        if self.handlings is not None:
            self.handlings.begin(taken)
        return ReceivedMessage(self, taken, self.namespace)

    def has(self, message: StoredMessage) -> bool:
        """Whether a message was popped here, and is not settled."""
        return message in self._handles

    def _is_late(self, message: StoredMessage) -> bool:
        """Whether the broker has given it, or is about to give it, to another one."""
        handle = self._handles[message].handle
        return self._instance.runtime.wall_ms() >= handle.pop_ms + handle.invisible_ms

    # What becomes of messages.

    async def acknowledge(self, taken: Taken) -> None:
        """See C{ReceivedMessage.ack}.

        @raise RocketbrokerError: the broker does not hear of it: the message is given
            out again, unless it is acknowledged before.
        """
        found = self._given(taken)
        if found is None:
            return
        command = ack_request(self._subscription.topic, self.settings.group, found)
        await self._ask(found, command)
        self._settle(taken)
        self._end_handling(taken, Outcome.ACKNOWLEDGED)

    def _end_handling(self, taken: Taken, outcome: Outcome) -> None:
        if self.handlings is not None:
            self.handlings.end(taken.message, outcome)

    async def send_back(self, taken: Taken, delay_level: int) -> None:
        """See C{ReceivedMessage.retry}."""
        found = self._given(taken)
        if found is None:
            return
        settings = self.settings
        message = taken.message
        if delay_level < 0 or message.reconsume_times >= settings.attempts_allowed:
            await self._instance.requests.send_back(
                taken.queue.queue, settings.group, message, topic_of(message), -1, 0
            )
            self._end_handling(taken, Outcome.DEAD_LETTER)
            await self.acknowledge(taken)
            return
        rest = retry_seconds(delay_level, message.reconsume_times)
        topic = self._subscription.topic
        await self._ask(found, rest_request(topic, settings.group, found, rest))
        self._settle(taken)
        self._end_handling(taken, Outcome.RETRIED)

    async def reply(
        self,
        taken: Taken,
        body: bytes | str,
        tag: str | None,
        properties: Mapping[str, str] | None,
    ) -> None:
        """See C{ReceivedMessage.reply}."""
        await send_reply(self._replies, taken.message, body, tag, properties)

    def _given(self, taken: Taken) -> Popped | None:
        if self._closing:
            raise ClientClosed(
                "the consumer was closed before; the message is given to the group "
                "again"
            )
        return self._handles.get(taken.message)

    async def _ask(self, found: Popped, command: Command) -> None:
        routes = self._instance.routes
        address = routes.master(self._subscription.topic, found.handle.broker_name)
        await self._instance.connections.ask(address, command, ACK_SECONDS)

    def _settle(self, taken: Taken) -> None:
        self._handles.pop(taken.message, None)
        taken.queue.settle(taken.message)
        if not len(taken.queue):
            self._places.pop(taken.queue.queue, None)
        self._room.fire()

    # Loops.

    async def _looking_for_brokers(self) -> None:
        runtime = self._instance.runtime
        while True:
            known = bool(self._loops)
            await runtime.sleep(self.settings.rebalance_seconds if known else 1.0)
            try:
                view = self._instance.routes.view
                await view(self._subscription.topic, refresh=not known)
            except RocketbrokerError as problem:
                _log.debug("No route of %s: %s", self._subscription.topic, problem)
                continue
            if not known:
                await self._instance.membership.beat()
            await self._look_for_brokers()

    async def _look_for_brokers(self) -> None:
        view = self._instance.routes.known(self._subscription.topic)
        if view is None:
            return
        readable = {
            one.broker_name
            for one in view.route.queue_datas
            if one.perm & READ and one.read_queue_nums
        }
        here = {PopPlace(name, ANY_QUEUE) for name in readable & view.masters.keys()}
        await self.assign(here.union(self._loops))

    async def assign(self, places: Collection[PopPlace]) -> bool:
        """Pop there, and nowhere else; whether anything has changed.

        What was popped elsewhere before may still be acknowledged.
        """
        lost = [place for place in self._loops if place not in places]
        new = [place for place in places if place not in self._loops]
        loops = [self._loops.pop(place) for place in lost]
        await together(self._instance.runtime, [loop.end() for loop in loops])
        for place in new:
            loop = self._loops[place] = Tasks(self._instance.runtime)
            loop.spawn(self._popping(place))
        return bool(lost or new)

    def _is_full(self, broker: str) -> bool:
        held = [one for one in self._places.values() if one.queue.broker == broker]
        waiting = sum(len(one) - one.given for one in held)
        unacknowledged = sum(len(one) for one in held)
        return waiting >= self.settings.prefetch or unacknowledged >= MAX_UNACKNOWLEDGED

    async def _popping(self, place: PopPlace) -> None:
        """Ask a broker for messages, again and again."""
        broker = place.broker
        runtime = self._instance.runtime
        failures = 0
        while True:
            while self._is_full(broker):
                await self._room.wait()
            try:
                await self._pop(place)
            except RocketbrokerError as problem:
                self._instance.outages.failed(f"broker {broker}", problem)
                await runtime.sleep(min(FIRST_PAUSE * 2**failures, LONGEST_PAUSE))
                failures = min(failures + 1, 10)
            else:
                failures = 0
                self._instance.outages.worked(f"broker {broker}")

    async def _pop(self, place: PopPlace) -> None:
        broker = place.broker
        instance = self._instance
        address = instance.routes.master(self._subscription.topic, broker)
        self._popped_at[broker] = instance.runtime.monotonic()
        now = instance.runtime.wall_ms()
        command = pop_request(*place, self._subscription, self.settings, now)
        seconds = self.settings.hold_seconds + SLACK_SECONDS
        answer = await instance.connections.invoke(address, command, seconds)
        unwanted: list[Popped] = []
        for one in popped(broker, answer):
            if not self._subscription.wants(one.message.tags):
                unwanted.append(one)
                continue
            self._take(broker, one)
        await together(instance.runtime, [self._pass(one) for one in unwanted])

    def _take(self, broker: str, one: Popped) -> None:
        message = one.message
        place = MessageQueue(message.topic, broker, message.queue_id)
        queue = self._places.get(place)
        if queue is None:
            queue = self._places[place] = ProcessQueue(place, 0, self.settings)
        self._handles[message] = one
        queue.add([message], message.queue_offset + 1)
        self._inbox.offer(queue)

    async def _pass(self, one: Popped) -> None:
        """Acknowledge what the broker has given by mistake."""
        command = ack_request(self._subscription.topic, self.settings.group, one)
        try:
            await self._ask(one, command)
        except RocketbrokerError as problem:
            _log.debug("%s is given out again: %s", one.message, problem)
