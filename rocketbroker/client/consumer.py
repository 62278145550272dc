# -*- test-case-name: tests.client.test_consumer -*-
"""One member of a group: its queues, and what becomes of their messages.

What brokers and the other members see of it is what they see of Java's push consumer:
heartbeats, rebalance, pulls that wait, messages sent back, offsets, and the farewell.

Who runs when:

  - the rebalance: every 20 s, when the broker says that members have changed, and
    sooner again when a round could not do all it wanted;
  - a loop for each queue (L{rocketbroker.client.pull_loop});
  - the commit of offsets, every 5 s, when a queue is lost and at the end;
  - the look for messages that nobody has acknowledged for too long.

A queue that is lost is dropped at once, with all that waits; what is given out goes on
with its reader, but what becomes of it counts for nothing: the new owner gets it again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final, final

from rocketbroker.client.assignment import BrokerAssignment
from rocketbroker.client.connections import FOREIGN
from rocketbroker.client.handlings import handlings_of
from rocketbroker.client.inbox import Inbox, Taken
from rocketbroker.client.instance import Instance
from rocketbroker.client.locks import RENEWAL_SECONDS, QueueLocks
from rocketbroker.client.observers import Outcome
from rocketbroker.client.offsets import BrokerOffsets, OffsetStore, start_offset
from rocketbroker.client.pop_consumer import PopConsumer
from rocketbroker.client.process_queue import ProcessQueue
from rocketbroker.client.producer import Producer
from rocketbroker.client.pull_loop import PullLoop
from rocketbroker.client.rebalance import Rebalance
from rocketbroker.client.received import ReceivedMessage, topic_of
from rocketbroker.client.replies import send_reply
from rocketbroker.client.settings import ConsumerSettings, ProducerSettings
from rocketbroker.client.subscription import Subscription
from rocketbroker.client.waits import Signal, Tasks, together
from rocketbroker.errors import (
    ClientClosed,
    ConfigurationError,
    RocketbrokerError,
    TopicNotExist,
)
from rocketbroker.records import names, properties
from rocketbroker.records.outgoing import Message
from rocketbroker.records.record import StoredMessage
from rocketbroker.routing.static_topics import MOCK_PREFIX
from rocketbroker.routing.topic_view import MessageQueue
from rocketbroker.wire.bodies.heartbeats import ConsumerData

#: Seconds between two rounds of rebalance: at least, and after one that could not do
#: all that it wanted.
LEAST_BETWEEN_ROUNDS: Final = 1.0

#: The level of a message that was given out too long ago.
TIMED_OUT_LEVEL: Final = 3

#: Seconds until a message that could not be sent back is given out again here.
LOCAL_RETRY_SECONDS: Final = 5.0

#: How long a round waits for messages of ordered queues that are in hand.
REST_SECONDS: Final = 0.5

#: How often messages that were given out too long ago are looked for.
OVERDUE_SECONDS: Final = 60.0

_log: Final = logging.getLogger("rocketbroker.client")


@final
class Consumer:
    """One member of a group.

    @ivar settings: its settings.
    @ivar namespace: how its users know topics and groups.
    @ivar queues: those that are its own now.
    @ivar received: how many messages have been given out.
    @ivar commits: whether offsets are committed with the loss of a queue and the end.
    @ivar handlings: what observers are told of its messages; None for no observers.
    """

    def __init__(
        self,
        instance: Instance,
        settings: ConsumerSettings,
        subscriptions: Sequence[Subscription],
        offsets: OffsetStore | None = None,
    ) -> None:
        """
        @param instance: belongs to this consumer alone, which closes it.
        @param subscriptions: what it wants, one for each topic.
        @param offsets: where they are kept, unless at the brokers.
        @raise ConfigurationError: the settings cannot be used.
        """
        runtime = instance.runtime
        self.namespace = instance.namespace
        settings = self.namespace.settings(settings)
        subscriptions = self.namespace.subscriptions(subscriptions)
        self.settings = settings
        self._instance = instance
        self._offsets = offsets or BrokerOffsets(
            runtime, instance.requests, instance.outages, settings.group
        )
        self._subscriptions = {one.topic: one for one in subscriptions}
        if settings.mode == "classic" and not settings.broadcast:
            retries = names.retry_topic(settings.group)
            self._subscriptions[retries] = Subscription(retries)
        now = runtime.wall_ms()
        self._versions = dict.fromkeys(self._subscriptions, now)
        self._added: set[str] = set()
        self._rebalance = Rebalance(instance, settings)
        self._inbox = Inbox(runtime, settings.ordered)
        self.queues: dict[MessageQueue, ProcessQueue] = {}
        self.handlings = handlings_of(instance, settings)
        self._assignment: BrokerAssignment | None = None
        if settings.assignment == "broker":
            self._assignment = BrokerAssignment(
                instance, settings, self._inbox, self.handlings
            )
        self._tasks = Tasks(runtime)
        self._loops: dict[MessageQueue, Tasks] = {}
        self._wanted = False
        self._woken = Signal(runtime)
        self._settled = Signal(runtime)
        self._retries = Producer(instance, ProducerSettings())
        self._locks = QueueLocks(instance, settings.group)
        self._closing = False
        self._fixed: Sequence[MessageQueue] | None = None
        self.received = 0
        self.commits = True

    # Life.

    async def start(self, wait_for_topic: bool = True) -> None:
        """Join the group, and begin to read.

        @param wait_for_topic: go on without a topic that does not exist yet.
        @raise TopicNotExist: it does not exist.
        @raise ConfigurationError: a name server is none.
        """
        instance = self._instance
        group = self.settings.group
        if self.handlings is not None:
            self.handlings.start(self.queues)
        for topic in self._subscriptions:
            try:
                await instance.routes.view(topic)
            except TopicNotExist:
                if not wait_for_topic and not names.is_retry_topic(topic):
                    raise
            except RocketbrokerError as problem:
                _log.debug("Topic %s is waited for: %s", topic, problem)
        instance.membership.add_consumer(group, self.heartbeat_data)
        instance.watch_members(group, self.wake)
        instance.start()
        await instance.membership.beat()
        balanced = await self._round()
        self._tasks.spawn(self._rebalancing(balanced))
        if self.settings.mode == "lite":
            return
        self._tasks.spawn(self._committing())
        if self.settings.ordered:
            self._tasks.spawn(self._renewing())
        else:
            self._tasks.spawn(self._looking_for_overdue())

    async def stop_reading(self) -> None:
        """Give out nothing more, and pull nothing more.

        What is given out may still be acknowledged or sent back, until L{close}.
        """
        self._inbox.close()
        if self._assignment is not None:
            await self._assignment.stop()
        loops = [loop.end() for loop in self._loops.values()]
        await together(self._instance.runtime, loops)

    async def close(self) -> None:
        """Leave the group: the other members have the queues at once. Idempotent.

        What was given out and is not acknowledged goes to them, too.
        """
        if self._closing or self._inbox.foreign:
            return
        self._closing = True
        self._inbox.close()
        if self.handlings is not None:
            self.handlings.close()
        await self._tasks.end()
        if self._assignment is not None:
            await self._assignment.end()
        await together(
            self._instance.runtime, [loop.end() for loop in self._loops.values()]
        )
        if self.commits:
            await self._commit([*self.queues.values()], wait=True)
        for queue in self.queues.values():
            queue.drop()
        if self.settings.ordered:
            await self._locks.unlock(self.queues)
        await self._instance.membership.leave(consumer=self.settings.group)
        await self._instance.close()

    @property
    def popping(self) -> list[PopConsumer]:
        """What pops for it, where brokers say so."""
        return [] if self._assignment is None else self._assignment.parts()

    def heartbeat_data(self) -> ConsumerData:
        """What heartbeats say of it."""
        start = self.settings.start
        where = {
            "latest": "CONSUME_FROM_LAST_OFFSET",
            "earliest": "CONSUME_FROM_FIRST_OFFSET",
        }
        is_lite = self.settings.mode == "lite"
        return ConsumerData(
            group_name=self.settings.group,
            consume_type="CONSUME_ACTIVELY" if is_lite else "CONSUME_PASSIVELY",
            message_model="BROADCASTING" if self.settings.broadcast else "CLUSTERING",
            consume_from_where=where.get(str(start), "CONSUME_FROM_TIMESTAMP"),
            unit_mode=self._instance.settings.unit_mode,
            subscription_data_set=[
                one.data(self._versions[topic])
                for topic, one in self._subscriptions.items()
                if self._fixed is None
            ],
        )

    def fix(self, queues: Sequence[MessageQueue]) -> None:
        """Read these queues, whoever else reads them; before the start."""
        self._fixed = queues

    # Messages.

    async def next(self, seconds: float | None = None) -> ReceivedMessage | None:
        """The next message.

        @param seconds: how long to wait for one; None: until there is one.
        @return: None if none came in time.
        @raise ClientClosed: the consumer is closed.
        """
        while True:
            taken = await self.take(seconds)
            if taken is None:
                return None
            part = None
            if self._assignment is not None:
                part = self._assignment.popped_by(taken.message)
            if part is None:
                if self.handlings is not None:
                    self.handlings.begin(taken)
                return ReceivedMessage(self, taken, self.namespace)
            message = part.given_out(taken)
            if message is not None:
                return message

    async def take(self, seconds: float | None = None) -> Taken | None:
        """The next message, with the queue in which it is to be settled."""
        taken = await self._inbox.next(seconds)
        if taken is not None:
            self.received += 1
        return taken

    async def acknowledge(self, taken: Taken) -> None:
        """See C{ReceivedMessage.ack}."""
        self._check_open()
        self._settle(taken, Outcome.ACKNOWLEDGED)

    def _settle(self, taken: Taken, outcome: Outcome) -> None:
        if taken.queue.settle(taken.message):
            self._inbox.offer(taken.queue)
            self._settled.fire()
        self._end_handling(taken.message, outcome)

    def _end_handling(self, message: StoredMessage, outcome: Outcome) -> None:
        if self.handlings is not None:
            self.handlings.end(message, outcome)

    async def send_back(self, taken: Taken, delay_level: int) -> None:
        """See C{ReceivedMessage.retry}."""
        self._check_open()
        queue, message = taken
        if not queue.is_given(message):
            return
        if self.settings.broadcast:
            # As in Java: nobody else would get it.
            self._settle(taken, Outcome.FAILED)
            return
        is_last = message.reconsume_times >= self.settings.attempts_allowed
        if self.settings.ordered and delay_level >= 0:
            if not is_last:
                self._rest(taken)
                return
            delay_level = -1
        if await self._send_back(queue.queue, message, delay_level):
            is_dead = delay_level < 0 or is_last
            self._settle(taken, Outcome.DEAD_LETTER if is_dead else Outcome.RETRIED)
        else:
            self._end_handling(message, Outcome.FAILED)
            self._tasks.spawn(self._give_again(taken, LOCAL_RETRY_SECONDS))

    def _check_open(self) -> None:
        if self._inbox.foreign:
            raise ConfigurationError(FOREIGN)
        if self._closing:
            raise ClientClosed(
                "the consumer was closed before; the message is given to the group "
                "again"
            )

    async def reply(
        self,
        taken: Taken,
        body: bytes | str,
        tag: str | None,
        properties: Mapping[str, str] | None,
    ) -> None:
        """See C{ReceivedMessage.reply}."""
        await send_reply(self._retries, taken.message, body, tag, properties)

    def _rest(self, taken: Taken) -> None:
        """Let an ordered queue rest, and go on with the message that failed."""
        self._end_handling(taken.message, Outcome.RETRIED)
        taken.message.reconsume_times += 1
        taken.queue.give_back(taken.message)
        taken.queue.resting = True
        self._settled.fire()
        self._tasks.spawn(self._end_rest(taken.queue))

    async def _end_rest(self, queue: ProcessQueue) -> None:
        await self._instance.runtime.sleep(self.settings.suspend_seconds)
        queue.resting = False
        self._inbox.offer(queue)

    async def _give_again(self, taken: Taken, seconds: float) -> None:
        await self._instance.runtime.sleep(seconds)
        if taken.queue.is_given(taken.message):
            taken.queue.give_back(taken.message)
            self._inbox.offer(taken.queue)

    async def _send_back(
        self, queue: MessageQueue, message: StoredMessage, delay_level: int
    ) -> bool:
        """Have the broker keep a message for the group; whether one did."""
        settings = self.settings
        # In a logical queue the broker does not find it by its position.
        if not queue.broker.startswith(MOCK_PREFIX):
            try:
                await self._instance.requests.send_back(
                    queue,
                    settings.group,
                    message,
                    topic_of(message),
                    delay_level,
                    settings.attempts_allowed,
                )
            except RocketbrokerError as problem:
                _log.warning(
                    "%s cannot be sent back to its broker: %s", message, problem
                )
            else:
                return True
        try:
            retry = retry_message(settings, message, delay_level < 0)
            request = self._retries.requests.single(retry)  # not the user's send
            seconds = self._instance.settings.seconds
            await self._retries.deliver(request, timeout=seconds)
        except RocketbrokerError as problem:
            _log.warning("%s cannot be sent back at all: %s", message, problem)
            return False
        return True

    # Rebalance.

    def wake(self) -> None:
        """The members may have changed: share the queues out anew."""
        self._wanted = True
        self._woken.fire()

    async def _rebalancing(self, balanced: bool) -> None:
        runtime = self._instance.runtime
        while True:
            await runtime.sleep(LEAST_BETWEEN_ROUNDS)
            if balanced and not self._wanted:
                left = self.settings.rebalance_seconds - LEAST_BETWEEN_ROUNDS
                await self._woken.wait(left)
            balanced = await self._round()

    async def _round(self) -> bool:
        """Take and give queues; whether all are as they should be."""
        self._wanted = False
        balanced = True
        changed = []
        for topic in [*self._subscriptions]:
            assigned = await self._assigned(topic)
            if assigned is None:
                balanced = balanced and names.is_retry_topic(topic)
                continue
            if await self._apply(topic, assigned):
                changed.append(topic)
            if self._assignment is not None:
                await self._assignment.pop(self._subscriptions[topic])
            mine = {queue for queue in self.queues if queue.topic == topic}
            balanced = balanced and mine == set(assigned)
        if self._assignment is not None:
            more = await self._adjust(self._assignment.retries())
            balanced = balanced and not more
            changed += more
        if changed:
            now = self._instance.runtime.wall_ms()
            self._versions.update(dict.fromkeys(changed, now))
            await self._instance.membership.beat()
        return balanced

    async def _assigned(self, topic: str) -> list[MessageQueue] | None:
        if self._assignment is not None:
            return await self._assignment.assigned(self._subscriptions[topic])
        if self._fixed is None:
            return await self._rebalance.assigned(topic)
        return [queue for queue in self._fixed if queue.topic == topic]

    async def _adjust(self, wanted: Mapping[str, Subscription]) -> list[str]:
        """Read these topics beside those that were subscribed; which came or went."""
        gone = [topic for topic in self._added if topic not in wanted]
        new = [topic for topic in wanted if topic not in self._subscriptions]
        for topic in gone:
            del self._subscriptions[topic]
            lost = {queue for queue in self.queues if queue.topic == topic}
            await self._give_up(lost)
        self._subscriptions.update({topic: wanted[topic] for topic in new})
        self._added = {*wanted}
        return gone + new

    async def _apply(self, topic: str, assigned: Sequence[MessageQueue]) -> bool:
        """Make these the queues of a topic, as far as that can be; whether any went or
        came."""
        mine = {queue for queue in self.queues if queue.topic == topic}
        lost = mine.difference(assigned)
        if self.settings.ordered:
            lost = await self._come_to_rest(lost)
        if lost:
            await self._give_up(lost)
        for queue in mine.intersection(assigned):
            self._wake_queue(self.queues[queue])
        new = [queue for queue in assigned if queue not in mine]
        before = len(self.queues)
        locks: dict[MessageQueue, float] = {}
        if self.settings.ordered and new:
            locks = await self._locks.lock(new)
            new = [queue for queue in new if locks.get(queue)]
        await together(
            self._instance.runtime,
            [self._take_over(one, locks.get(one, 0.0)) for one in new],
        )
        return bool(lost) or len(self.queues) > before

    async def _come_to_rest(self, lost: set[MessageQueue]) -> set[MessageQueue]:
        """Wait for messages of ordered queues that are in hand; the queues without any.

        The others are kept until the next round, and so is their lock: the new owner
        is not to begin with the next message while this one is worked on.
        """
        runtime = self._instance.runtime
        end = runtime.monotonic() + REST_SECONDS
        leaving = [self.queues[queue] for queue in lost]
        for queue in leaving:
            queue.leaving = True
        while any(queue.given for queue in leaving) and runtime.monotonic() < end:
            await self._settled.wait(end - runtime.monotonic())
        now = runtime.monotonic()
        return {
            one.queue for one in leaving if not one.given or now >= one.locked_until
        }

    def _wake_queue(self, queue: ProcessQueue) -> None:
        """It was to be given up, and is ours again."""
        if queue.leaving:
            queue.leaving = False
            self._inbox.offer(queue)

    async def _renewing(self) -> None:
        while True:
            await self._instance.runtime.sleep(RENEWAL_SECONDS)
            await self._locks.renew([*self.queues.values()])
            for queue in self.queues.values():
                self._inbox.offer(queue)

    async def _give_up(self, lost: set[MessageQueue]) -> None:
        dropped = [self.queues.pop(queue) for queue in lost]
        for queue in dropped:
            queue.drop()
            self._forget(queue)
        loops = [self._loops.pop(queue) for queue in lost]
        await together(self._instance.runtime, [loop.end() for loop in loops])
        if self.commits:
            await self._commit(dropped, wait=self.settings.ordered)
        if self.settings.ordered:
            await self._locks.unlock(lost)

    async def _take_over(self, queue: MessageQueue, locked_until: float) -> None:
        instance = self._instance
        try:
            start = await start_offset(
                instance.requests, self._offsets, queue, self.settings
            )
        except RocketbrokerError as problem:
            name = instance.routes.broker_of(queue)
            instance.outages.failed(f"broker {name}", problem)
            return
        taken = ProcessQueue(queue, start, self.settings)
        taken.locked_until = locked_until
        self.queues[queue] = taken
        self._spawn_loop(taken)

    def _spawn_loop(self, queue: ProcessQueue) -> None:
        name = queue.queue
        loop = PullLoop(
            self._instance,
            self.settings,
            self._subscriptions[name.topic],
            lambda: self._versions[name.topic],
            queue,
            self._inbox,
        )
        tasks = self._loops[name] = Tasks(self._instance.runtime)
        tasks.spawn(loop.run())

    async def seek(self, queue: ProcessQueue, offset: int) -> None:
        """Go on somewhere else: what is here is forgotten, a pull that waits ended."""
        await self._loops[queue.queue].end()
        self._forget(queue)
        queue.reset(offset)
        if not queue.dropped:
            self._spawn_loop(queue)

    def _forget(self, queue: ProcessQueue) -> None:
        if self.handlings is not None:
            self.handlings.forget(queue)

    async def reset(self, offsets: Mapping[MessageQueue, int]) -> None:
        """Go on there; what was given out before counts for nothing."""
        for queue, offset in offsets.items():
            mine = self.queues.get(queue)
            if mine is not None:
                await self.seek(mine, offset)
        await self.commit()

    def pause(self, queue: ProcessQueue, is_paused: bool) -> None:
        """Want nothing of a queue, or want it again."""
        queue.pause(is_paused)
        self._inbox.offer(queue)

    # Offsets, and messages that take too long.

    async def _committing(self) -> None:
        while True:
            await self._instance.runtime.sleep(self.settings.commit_seconds)
            await self._commit([*self.queues.values()], wait=False)

    async def commit(self) -> None:
        """Commit the offsets of all queues now, and wait until that is done."""
        await self._commit([*self.queues.values()], wait=True)

    async def _commit(self, queues: Sequence[ProcessQueue], wait: bool) -> None:
        offsets = {one.queue: one.commit_offset for one in queues}
        await self._offsets.write(offsets, wait)

    def offsets(self) -> Mapping[MessageQueue, int]:
        """The offset of each queue that may be committed now."""
        return {one.queue: one.commit_offset for one in self.queues.values()}

    async def _looking_for_overdue(self) -> None:
        runtime = self._instance.runtime
        pause = min(OVERDUE_SECONDS, self.settings.consume_timeout / 4)
        while True:
            await runtime.sleep(pause)
            for queue in [*self.queues.values()]:
                for message in queue.overdue(runtime.monotonic()):
                    await self._send_overdue_back(queue, message)

    async def _send_overdue_back(
        self, queue: ProcessQueue, message: StoredMessage
    ) -> None:
        _log.warning(
            "%s was not acknowledged for %g seconds; the group gets it again",
            message,
            self.settings.consume_timeout,
        )
        if self.settings.broadcast or await self._send_back(
            queue.queue, message, TIMED_OUT_LEVEL
        ):
            queue.settle(message)
            self._end_handling(message, Outcome.TIMED_OUT)


def retry_message(
    settings: ConsumerSettings, message: StoredMessage, is_dead: bool = False
) -> Message:
    """A message for the group's retry topic, where its broker cannot take it back.

    C{docs/facts/client.md} 20.

    @param is_dead: the broker makes a dead letter of it, as it has been tried more
        often than is allowed.
    """
    most = 0 if is_dead else settings.attempts_allowed
    times = message.reconsume_times + 1
    found = Message(names.retry_topic(settings.group), message.body, flag=message.flag)
    found.properties = {
        **{
            name: value
            for name, value in message.properties.items()
            if name != properties.TRANSACTION_PREPARED
        },
        properties.RETRY_TOPIC: topic_of(message),
        properties.ORIGIN_MESSAGE_ID: message.properties.get(
            properties.ORIGIN_MESSAGE_ID, message.message_id
        ),
        properties.RECONSUME_TIME: str(times),
        properties.MAX_RECONSUME_TIMES: str(most),
        properties.DELAY: str(3 + message.reconsume_times),
        properties.WAIT: message.properties.get(properties.WAIT, "true"),
    }
    return found
