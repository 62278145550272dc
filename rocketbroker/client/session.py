# -*- test-case-name: tests.client.test_session -*-
"""The simple face, whatever drives it: send, receive, listen.

With asyncio this is what users have in their hands; the other faces call it from where
their users are.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar, Unpack, final

import attrs

from rocketbroker.client.arguments import (
    bound_ms,
    check_count,
    check_listener,
    check_queue,
    check_queues,
    check_search,
    check_timeout,
    checked_message,
    delay_ms,
    messages_of,
    moment_ms,
)
from rocketbroker.client.instance import Instance
from rocketbroker.client.options import ConsumerOptions, consumer_settings
from rocketbroker.client.outages import OutageBoard
from rocketbroker.client.producer import Producer
from rocketbroker.client.queries import Queries
from rocketbroker.client.queue_choice import Selector
from rocketbroker.client.received import MessageView, ReceivedMessage
from rocketbroker.client.replies import REPLY_SECONDS, Replies
from rocketbroker.client.runtime import Runtime
from rocketbroker.client.send_stream import IN_FLIGHT, SendStream
from rocketbroker.client.settings import ClientSettings, ProducerSettings
from rocketbroker.client.subscription import subscription
from rocketbroker.client.trace import with_trace
from rocketbroker.client.transactions import Check, Transaction, Transactions
from rocketbroker.client.waits import Signal, Tasks, together
from rocketbroker.errors import (
    ClientClosed,
    ConfigurationError,
    RocketbrokerError,
)
from rocketbroker.records.names import INNER_PRODUCER
from rocketbroker.records.outgoing import Message
from rocketbroker.routing.key_search import FOREVER_MS
from rocketbroker.routing.send_requests import SendResult
from rocketbroker.routing.topic_view import MessageQueue

if TYPE_CHECKING:
    from rocketbroker.client.lite_pull import LitePullConsumer
    from rocketbroker.client.local_offsets import OffsetFolder
    from rocketbroker.client.served import Listener, Member

#: How many messages a listener has in hand at once.
CONCURRENCY: Final = 20

L = TypeVar("L", bound="Listener")
C = TypeVar("C", bound=Check)

_log: Final = logging.getLogger("rocketbroker.client")


@final
class MessageStream:
    """The messages of one consumer: a context, and an iterator in it."""

    def __init__(
        self,
        consumer: Member,
        wait_for_topic: bool,
        closed: Callable[[MessageStream], None],
    ) -> None:
        self._consumer = consumer
        self._wait_for_topic = wait_for_topic
        self._closed = closed

    async def __aenter__(self) -> MessageStream:
        try:
            await self._consumer.start(self._wait_for_topic)
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *problem: object) -> None:
        await self.close()

    def __aiter__(self) -> MessageStream:
        return self

    async def __anext__(self) -> ReceivedMessage:
        try:
            message = await self._consumer.next()
        except ClientClosed:
            raise StopAsyncIteration from None
        assert message is not None
        return message

    async def next(self, timeout: float | None = None) -> ReceivedMessage | None:
        """The next message.

        @param timeout: how many seconds to wait for one; None: until there is one.
        @return: None if none came in time.
        @raise ClientClosed: it was closed.
        """
        check_timeout(timeout)
        return await self._consumer.next(timeout)

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues that are ours now."""
        outside = self._consumer.namespace.queue_outside
        return sorted(map(outside, self._consumer.queues))

    @property
    def positions(self) -> Mapping[MessageQueue, int]:
        """The first offset of each of them that is not acknowledged; none with pop."""
        outside = self._consumer.namespace.queue_outside
        offsets = self._consumer.offsets()
        return {outside(queue): offset for queue, offset in offsets.items()}

    async def close(self) -> None:
        """Leave the group: the other members have the queues at once. Idempotent."""
        self._closed(self)
        await self._consumer.close()


@attrs.frozen
class _Registration:
    """A listener, and what it listens to."""

    make: Callable[[], Member]
    consumer: Member
    wait_for_topic: bool
    listener: Listener
    concurrency: int


@final
class Session:
    """Sends and receives messages.

    @ivar producer: what it sends with.
    """

    def __init__(
        self,
        runtime: Runtime,
        settings: ClientSettings,
        producing: ProducerSettings,
        folder: Callable[[], OffsetFolder],
    ) -> None:
        """
        @param producing: the settings of its producer.
        @param folder: where consumers that broadcast keep their offsets; asked for
            with the first of them.
        """
        self._runtime = runtime
        self._folder = folder
        self._settings, self._trace = with_trace(runtime, settings, producing.group)
        self._producing = producing
        self._sending: Instance | None = None
        self._producer: Producer | None = None
        self._transactions: Transactions | None = None
        self._replies: Replies | None = None
        self._checks: dict[str, Check] = {}
        self._streams: list[MessageStream] = []
        self._registrations: list[_Registration] = []
        self._board = OutageBoard()
        self._stopping = False
        self._stopped = Signal(runtime)
        self._closed = False
        self._left: list[object] = []
        runtime.watch_fork(self)

    def forked(self) -> None:
        """See L{rocketbroker.config.forks.Forked}: a child sends, and listens,
        over connections of its own; what it was given before belongs to the parent."""
        self._left += [self._sending, self._transactions, self._replies, self._streams]
        self._left += self._registrations
        self._sending = self._producer = self._transactions = self._replies = None
        self._streams = []
        self._stopped = Signal(self._runtime)
        if not self._closed:
            self._registrations = [
                attrs.evolve(one, consumer=one.make()) for one in self._registrations
            ]

    async def __aenter__(self) -> Session:
        if self._checks:
            await self._all_transactions().join()
        return self

    async def __aexit__(self, *problem: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Leave all groups and close all connections; idempotent."""
        self._closed = True
        self.stop()
        streams = [stream.close() for stream in [*self._streams]]
        if self._replies is not None:
            self._replies.close()
        await together(self._runtime, streams)
        if self._producer is not None:
            await self._producer.close()
        if self._sending is not None:
            await self._sending.close()
        if self._trace is not None:
            await self._trace.close()

    @property
    def producer(self) -> Producer:
        """What it sends with: messages of all kinds.

        @raise ClientClosed: the session was closed.
        """
        if self._closed:
            raise ClientClosed("the session was closed before")
        if self._producer is None:
            self._sending = Instance(self._runtime, self._settings, self._board)
            self._producer = Producer(self._sending, self._producing)
            self._producer.start()
        return self._producer

    async def send(
        self,
        topic: str,
        body: bytes | str,
        *,
        tag: str | None = None,
        keys: str | Iterable[str] = (),
        properties: Mapping[str, str] | None = None,
        delay_level: int = 0,
        delay: float | timedelta | None = None,
        at: float | datetime | None = None,
        order_key: str | None = None,
        priority: int | None = None,
        queue: MessageQueue | Selector | None = None,
        timeout: float | None = None,
        accumulate: bool | None = None,
        patience: float | None = None,
    ) -> SendResult:
        """Send a message and wait until it is stored.

        @param body: a string is sent as UTF-8.
        @param tag: by which readers choose.
        @param keys: under which it can be found; none holds a space.
        @param delay_level: the broker's; 1 is the shortest.
        @param delay: how long it rests, in seconds; brokers of RocketMQ 5.
        @param at: when it is delivered: a C{datetime}, or seconds since 1970; the same.
        @param order_key: messages with the same key go to the same queue, one after
            the other.
        @param priority: 0 or more: those with a higher one are popped first, from
            topics of that type; brokers of RocketMQ 5.4.
        @param queue: where to, or a function that is given the queues of the topic and
            the message, and returns one of them; unless given, each queue in turn.
        @param timeout: seconds for all tries together; unless given, the patience of
            C{connect}.
        @param accumulate: gather it for some milliseconds with others, into a batch;
            unless given, as C{connect} says.
        @param patience: seconds after which it is not tried again, 0 for one try, if
            that is to be sooner than C{timeout}; a try takes what C{seconds} of
            C{connect} says.
        @raise MessageIllegal: it cannot be sent, or the broker refuses it.
        @raise TopicNotExist: there is no such topic, and nobody creates it.
        @raise BrokerError: the broker refuses.
        @raise ConnectionLost: no broker could be reached in time: the message may be
            stored.
        @raise RequestTimeout: no broker answered in time: the same.
        """
        message = message_of(
            topic,
            body,
            tag,
            keys,
            properties,
            delay_level,
            delay,
            at,
            order_key,
            priority,
        )
        check_queue(topic, queue)
        check_timeout(timeout)
        check_timeout(patience, "patience")
        return await self.producer.send(message, queue, timeout, accumulate, patience)

    async def send_oneway(
        self,
        topic: str,
        body: bytes | str,
        *,
        tag: str | None = None,
        keys: str | Iterable[str] = (),
        properties: Mapping[str, str] | None = None,
        order_key: str | None = None,
        queue: MessageQueue | Selector | None = None,
    ) -> None:
        """Send a message, and do not wait until it is stored: it may be lost.

        Arguments and errors as those of L{send}.
        """
        message = message_of(
            topic, body, tag, keys, properties, 0, None, None, order_key
        )
        check_queue(topic, queue)
        await self.producer.send_oneway(message, queue)

    async def send_batch(
        self,
        messages: Iterable[Message],
        *,
        queue: MessageQueue | None = None,
        timeout: float | None = None,
        patience: float | None = None,
    ) -> list[SendResult]:
        """Send messages of one topic in as few requests as their sizes allow.

        @param messages: see L{Message}.
        @param queue: where to; unless given, each request goes to the next queue.
        @param timeout: seconds for each request, as C{patience}: see L{send}.
        @return: one result for each request; C{message_ids} are in the order of the
            messages. Errors as L{send}; those before the failed request are stored.
        """
        found = messages_of(messages)
        for message in found[:1]:
            check_queue(message.topic, queue, chooses=False)
        check_timeout(timeout)
        check_timeout(patience, "patience")
        return await self.producer.send_batch(found, queue, timeout, patience)

    def send_all(
        self,
        messages: Iterable[Message],
        *,
        queue: MessageQueue | None = None,
        timeout: float | None = None,
        patience: float | None = None,
        in_flight: int = IN_FLIGHT,
    ) -> SendStream:
        """Send messages one after the other, without waiting for each.

        It is an iterator over their results, which come in the order of the messages;
        nothing is sent before it is used. Messages are taken from their source as fast
        as results are taken from here, so there may be any number of them.

        @param messages: see L{Message}; their topics may differ.
        @param queue: where to; unless given, as L{send}, also for the order key.
        @param timeout: seconds for each of them, as C{patience}: see L{send}.
        @param in_flight: how many may be under way. A broker of ours stores those for
            one queue in their order; RocketMQ's has threads, and stores what is under
            way at once in any. With 1 they keep it with both, and if one is tried
            again.
        @raise MessageIllegal: one cannot be sent; as each error (see L{send}) this
            comes after the results of the messages before it, and ends the iteration.
            Some of those after it may be stored.
        """
        check_timeout(timeout)
        check_timeout(patience, "patience")
        check_count("in_flight", in_flight)

        def send(message: Message) -> Coroutine[Any, Any, SendResult]:
            checked_message(message)
            check_queue(message.topic, queue, chooses=False)
            return self.producer.send(message, queue, timeout, None, patience)

        return SendStream(self._runtime, send, messages, in_flight)

    async def request(
        self,
        topic: str,
        body: bytes | str,
        *,
        tag: str | None = None,
        keys: str | Iterable[str] = (),
        properties: Mapping[str, str] | None = None,
        order_key: str | None = None,
        queue: MessageQueue | None = None,
        timeout: float | None = REPLY_SECONDS,
    ) -> MessageView:
        """Send a message to which a reader replies, and wait for that reply.

        Arguments and errors as those of L{send}.

        @param timeout: seconds for both; None: the patience of C{connect}.
        @raise RequestTimeout: nobody has replied in time; the message may have been
            read all the same, and what is replied later is lost.
        """
        message = message_of(
            topic, body, tag, keys, properties, 0, None, None, order_key
        )
        check_queue(topic, queue)
        check_timeout(timeout)
        if self._replies is None:
            self._replies = Replies(*self._sender())
        return await self._replies.ask(message, queue, timeout)

    async def recall(self, topic: str, handle: str | None) -> str:
        """Take back a message that waits for its time: nobody will read it.

        @param handle: C{recall_handle} of the result of its send. Brokers before 5.3
            give none.
        @return: the message id.
        @raise MessageIllegal: it is no recall handle, or the broker gave none.
        @raise BrokerError: the broker refuses; it may be too late, or recalling may be
            off there (C{recallMessageEnable}).
        """
        instance, _ = self._sender()
        space = instance.namespace
        group = space.producer_group(self._producing.group)
        problem: RocketbrokerError | None = None
        try:
            requests = instance.requests
            return await requests.recall(space.inside(topic), handle, group)
        except RocketbrokerError as failure:
            problem = failure
            raise
        finally:
            if instance.observers is not None:
                group = self._producing.group
                instance.observers.recall_ended(group, topic, handle or "", problem)

    async def find(
        self,
        topic: str,
        *,
        key: str | None = None,
        message_id: str | None = None,
        max_messages: int = 32,
        begin: float | datetime | None = None,
        end: float | datetime | None = None,
    ) -> list[MessageView]:
        """Find messages by a key or an id, whoever has read them.

        @param key: one of those it was sent with;
        @param message_id: or C{message_id} of the result of its send, or one of its
            C{offset_ids}.
        @param max_messages: with a key: the newest are given if there are more.
        @param begin: with a key: stored then or later: a C{datetime}, or seconds since
            1970.
        @param end: with a key: stored then or before.
        @return: by store time; empty if there is none.
        @raise ConfigurationError: neither a key nor an id is given, or both.
        @raise TopicNotExist: there is no such topic.
        @raise BrokerError: a broker of the topic refuses.
        @raise ConnectionLost: a broker of the topic cannot be asked; so for
            RequestTimeout.
        """
        instance, _ = self._sender()
        queries = Queries(instance)
        check_search(key, message_id)
        if message_id is not None:
            return await queries.by_id(topic, message_id)
        assert key is not None
        first, last = bound_ms("begin", begin, 0), bound_ms("end", end, FOREVER_MS)
        return await queries.by_key(topic, key, max_messages, first, last)

    def _sender(self) -> tuple[Instance, Producer]:
        """The client that sends, and its producer."""
        producer = self.producer
        assert self._sending is not None
        return self._sending, producer

    # Transactions.

    def check(self, topic: str) -> Callable[[C], C]:
        """Decorate a function or coroutine that says what became of a transaction.

        The broker asks when the end of one did not arrive. It is given the half
        message, and returns True: commit; False: roll back; None: not known yet. The
        broker can ask from when the session is entered.

        @raise ConfigurationError: the session has no group of its own.
        """
        self._check_group()

        def register(decide: C) -> C:
            self._checks[topic] = decide
            return decide

        return register

    async def transaction(
        self,
        topic: str,
        body: bytes | str,
        *,
        tag: str | None = None,
        keys: str | Iterable[str] = (),
        properties: Mapping[str, str] | None = None,
        order_key: str | None = None,
        timeout: float | None = None,
    ) -> Transaction:
        """Store a message that nobody reads before the transaction is committed.

        It is a context, which commits at its end, and rolls back if that is an error.

        @raise ConfigurationError: the session has no group of its own, or no C{check}.
        """
        self._check_group()
        if topic not in self._checks:
            raise ConfigurationError(
                f"a transaction needs a function decorated with check({topic!r}), "
                "which says what became of it if this process ends in between"
            )
        message = message_of(
            topic, body, tag, keys, properties, 0, None, None, order_key
        )
        return await self._all_transactions().begin(message, None, timeout)

    def _check_group(self) -> None:
        if self._producing.group == INNER_PRODUCER:
            raise ConfigurationError(
                "transactions need a group of producers: connect(..., group=...)"
            )

    def _all_transactions(self) -> Transactions:
        if self._transactions is None:
            self._transactions = Transactions(
                *self._sender(), self._producing.group, self._checks
            )
        return self._transactions

    # Receiving.

    def consumer(
        self, topic: str, group: str, **options: Unpack[ConsumerOptions]
    ) -> MessageStream:
        """The messages of a topic, as a member of a group.

        It is a context, in which one iterates over it. The members of a group share the
        queues; outside of the context it is no member.

        @param options: see L{ConsumerOptions}.
        @raise ConfigurationError: something cannot be as it is given.
        """
        consumer = self._consumer(topic, group, options)
        waits = options.get("wait_for_topic", True)
        stream = MessageStream(consumer, waits, self._forget)
        self._streams.append(stream)
        return stream

    def _consumer(
        self,
        topic: str,
        group: str,
        options: ConsumerOptions,
        listener: Listener | None = None,
    ) -> Member:
        # Programs that only send have no use for these.
        from rocketbroker.client.consumer import Consumer
        from rocketbroker.client.local_offsets import INSTANCE_NAME
        from rocketbroker.client.pop_consumer import PopConsumer
        from rocketbroker.client.served import served

        if self._closed:
            raise ClientClosed("the session was closed before")
        settings = consumer_settings(group, options)
        wanted = subscription(topic, options.get("tags"), options.get("sql"))
        if settings.mode == "pop":
            instance = Instance(self._runtime, self._settings, self._board)
            member = PopConsumer(instance, settings, wanted)
            return served(instance, member, listener)
        if not settings.broadcast:
            instance = Instance(self._runtime, self._settings, self._board)
            consumer = Consumer(instance, settings, [wanted])
            return served(instance, consumer, listener)
        name = self._settings.instance_name or INSTANCE_NAME
        fixed = attrs.evolve(self._settings, instance_name=name)
        instance = Instance(self._runtime, fixed, self._board)
        offsets = self._folder().of_group(
            instance.membership.client_id,
            instance.namespace.inside(group),
            settings.offset_folder,
        )
        consumer = Consumer(instance, settings, [wanted], offsets)
        return served(instance, consumer, listener)

    def _forget(self, stream: MessageStream) -> None:
        if stream in self._streams:
            self._streams.remove(stream)

    def lite_pull(
        self,
        group: str,
        topic: str | None = None,
        *,
        queues: Sequence[MessageQueue] | None = None,
        auto_commit: bool = True,
        **options: Unpack[ConsumerOptions],
    ) -> LitePullConsumer:
        """A consumer that polls, seeks, pauses and commits by itself; it is a context.

        @param topic: which it shares with the members of its group;
        @param queues: or these queues, which it shares with nobody.
        @param options: see L{ConsumerOptions}.
        @raise ConfigurationError: something cannot be as it is given.
        """
        from rocketbroker.client.lite_pull import LitePullConsumer

        if self._closed:
            raise ClientClosed("the session was closed before")
        if (topic is None) == (queues is None):
            raise ConfigurationError("lite_pull is given a topic or queues: one")
        if queues is not None:
            check_queues(queues)
        topics = {queue.topic for queue in queues or ()} or {topic or ""}
        tags, sql = options.get("tags"), options.get("sql")
        settings = consumer_settings(group, {**options, "mode": "lite"})
        return LitePullConsumer(
            Instance(self._runtime, self._settings, self._board),
            settings,
            [subscription(one, tags, sql) for one in sorted(topics)],
            queues,
            auto_commit,
        )

    # Listening.

    def on(
        self,
        topic: str,
        *,
        group: str,
        concurrency: int = CONCURRENCY,
        **options: Unpack[ConsumerOptions],
    ) -> Callable[[L], L]:
        """Decorate a function or coroutine that handles the messages of a topic.

        If it returns, the message is acknowledged; if it raises, the message comes
        again later. It is called while L{run} runs.

        @param concurrency: how many messages it has in hand at once.
        @raise ConfigurationError: something cannot be as it is given.
        """
        check_count("concurrency", concurrency)
        consumer_settings(group, options)
        subscription(topic, options.get("tags"), options.get("sql"))

        def register(listener: L) -> L:
            check_listener(listener)

            def make() -> Member:
                return self._consumer(topic, group, options, listener)

            self._registrations.append(
                _Registration(
                    make,
                    make(),
                    options.get("wait_for_topic", True),
                    listener,
                    concurrency,
                )
            )
            return listener

        return register

    async def run(self) -> None:
        """Give messages to listeners until L{stop}, SIGTERM or cancellation.

        What is in hand then is finished, and the groups are left.

        @raise ConfigurationError: there is no listener.
        """
        registrations, self._registrations = self._registrations, []
        if not registrations:
            raise ConfigurationError("nothing to run: decorate a function with on()")
        watch_no_more = self._runtime.watch_termination(self.stop)
        workers = Tasks(self._runtime)
        consumers = [one.consumer for one in registrations]
        try:
            for one in registrations:
                await one.consumer.start(one.wait_for_topic)
                for _ in range(one.concurrency):
                    workers.spawn(self._work(one))
            while not self._stopping:
                await self._stopped.wait()
        finally:
            watch_no_more()
            await together(self._runtime, [one.stop_reading() for one in consumers])
            await workers.all_ended()
            await together(self._runtime, [one.close() for one in consumers])

    def stop(self) -> None:
        """Let L{run} finish what is in hand and return; it may be called anywhere in
        the thread of the session."""
        self._stopping = True
        self._stopped.fire()

    async def _work(self, registration: _Registration) -> None:
        consumer = registration.consumer
        while True:
            try:
                message = await consumer.next()
            except ClientClosed:
                return
            if message is not None:
                await self._handle(registration, message)

    async def _handle(
        self, registration: _Registration, message: ReceivedMessage
    ) -> None:
        handlings = registration.consumer.handlings
        handling = handlings and handlings.listener_started(message.stored)
        problem: Exception | None = None
        try:
            outcome = registration.listener(message)
            if inspect.isawaitable(outcome):
                await outcome
        except self._runtime.cancelled:
            raise
        except Exception as failure:
            problem = failure
            _log.exception("A listener failed with %r, which comes again", message)
        if handlings is not None and handling is not None:
            handlings.listener_ended(handling, problem)
        if problem is None:
            await message.ack()
        else:
            await message.retry()


def message_of(
    topic: str,
    body: bytes | str,
    tag: str | None,
    keys: str | Iterable[str],
    properties: Mapping[str, str] | None,
    delay_level: int,
    delay: float | timedelta | None,
    at: float | datetime | None,
    order_key: str | None,
    priority: int | None = None,
) -> Message:
    """A message as C{send} is given it.

    @raise MessageIllegal: something cannot be as it is given.
    """
    return Message(
        topic,
        body,
        tags=tag,
        keys=keys,
        properties=properties,
        sharding_key=order_key,
        delay_level=delay_level,
        deliver_at_ms=moment_ms(at),
        delay_ms=delay_ms(delay),
        priority=priority,
    )
