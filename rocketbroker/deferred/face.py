# -*- test-case-name: tests.deferred -*-
"""The client for Twisted: the coroutines of the core, as Deferreds."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack, final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTCP

from rocketbroker.client import lite_pull, transactions
from rocketbroker.client import session as core
from rocketbroker.client.arguments import check_listener
from rocketbroker.client.options import (
    ClientOptions,
    ConsumerOptions,
    client_settings,
)
from rocketbroker.client.received import MessageView
from rocketbroker.client.received import ReceivedMessage as CoreMessage
from rocketbroker.client.runtimes.machine import offset_folder
from rocketbroker.client.runtimes.on_twisted import TwistedRuntime
from rocketbroker.client.session import CONCURRENCY
from rocketbroker.errors import ConfigurationError
from rocketbroker.routing.send_requests import SendResult
from rocketbroker.routing.topic_view import MessageQueue

P = ParamSpec("P")
T = TypeVar("T")


@final
class ReceivedMessage(MessageView):
    """A message, and what becomes of it."""

    __slots__ = ("_message",)

    def __init__(self, message: CoreMessage) -> None:
        super().__init__(message.stored, message.queue, message.topic)
        self._message = message

    def ack(self) -> Deferred[None]:
        """See C{CoreMessage.ack}."""
        return Deferred.fromCoroutine(self._message.ack())

    def retry(self, delay_level: int = 0) -> Deferred[None]:
        """See C{CoreMessage.retry}."""
        return Deferred.fromCoroutine(self._message.retry(delay_level))

    def dead_letter(self) -> Deferred[None]:
        """See C{CoreMessage.dead_letter}."""
        return Deferred.fromCoroutine(self._message.dead_letter())

    def reply(
        self,
        body: bytes | str,
        *,
        tag: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Deferred[None]:
        """See C{CoreMessage.reply}."""
        return Deferred.fromCoroutine(
            self._message.reply(body, tag=tag, properties=properties)
        )


#: Handles a message: returns, and it is acknowledged; raises, and it comes again. A
#: Deferred or a coroutine is waited for.
Listener = Callable[[ReceivedMessage], object]

L = TypeVar("L", bound=Listener)
C = TypeVar("C", bound=transactions.Check)


@final
class MessageStream:
    """The messages of one consumer, from L{start} to L{close}.

    In a coroutine it is a context, and an iterator in it.
    """

    def __init__(self, stream: core.MessageStream) -> None:
        self._stream = stream

    def start(self) -> Deferred[MessageStream]:
        """Join the group; fires with this stream."""
        return Deferred.fromCoroutine(self._start())

    async def _start(self) -> MessageStream:
        await self._stream.__aenter__()
        return self

    def next(self, timeout: float | None = None) -> Deferred[ReceivedMessage | None]:
        """See C{core.MessageStream.next}."""
        return Deferred.fromCoroutine(self._next(timeout))

    async def _next(self, timeout: float | None) -> ReceivedMessage | None:
        message = await self._stream.next(timeout)
        return None if message is None else ReceivedMessage(message)

    def close(self) -> Deferred[None]:
        """See C{core.MessageStream.close}."""
        return Deferred.fromCoroutine(self._stream.close())

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues that are ours now."""
        return self._stream.queues

    @property
    def positions(self) -> Mapping[MessageQueue, int]:
        """See C{core.MessageStream.positions}."""
        return self._stream.positions

    async def __aenter__(self) -> MessageStream:
        return await self._start()

    async def __aexit__(self, *problem: object) -> None:
        await self._stream.close()

    def __aiter__(self) -> MessageStream:
        return self

    async def __anext__(self) -> ReceivedMessage:
        return ReceivedMessage(await self._stream.__anext__())


def _polling(
    method: Callable[
        Concatenate[lite_pull.LitePullConsumer, P], Coroutine[Any, Any, T]
    ],
) -> Callable[Concatenate[LitePullConsumer, P], Deferred[T]]:
    """A method of a consumer that polls, which returns a Deferred."""

    @wraps(method)
    def call(
        self: LitePullConsumer, /, *args: P.args, **options: P.kwargs
    ) -> Deferred[T]:
        return Deferred.fromCoroutine(method(self.consumer, *args, **options))

    return call


@final
class LitePullConsumer:
    """See L{lite_pull.LitePullConsumer}.

    @ivar consumer: what stands behind it.
    """

    def __init__(self, consumer: lite_pull.LitePullConsumer) -> None:
        self.consumer = consumer

    async def __aenter__(self) -> LitePullConsumer:
        await self.consumer.start()
        return self

    async def __aexit__(self, *problem: object) -> None:
        await self.consumer.close()

    start = _polling(lite_pull.LitePullConsumer.start)
    close = _polling(lite_pull.LitePullConsumer.close)
    poll = _polling(lite_pull.LitePullConsumer.poll)
    commit = _polling(lite_pull.LitePullConsumer.commit)
    committed = _polling(lite_pull.LitePullConsumer.committed)
    seek = _polling(lite_pull.LitePullConsumer.seek)
    seek_to_begin = _polling(lite_pull.LitePullConsumer.seek_to_begin)
    seek_to_end = _polling(lite_pull.LitePullConsumer.seek_to_end)
    offset_for_time = _polling(lite_pull.LitePullConsumer.offset_for_time)

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues that are ours now."""
        return self.consumer.queues

    def position(self, queue: MessageQueue) -> int:
        """See L{lite_pull.LitePullConsumer.position}."""
        return self.consumer.position(queue)

    def pause(self, queues: Iterable[MessageQueue]) -> None:
        """See L{lite_pull.LitePullConsumer.pause}."""
        self.consumer.pause(queues)

    def resume(self, queues: Iterable[MessageQueue]) -> None:
        """See L{lite_pull.LitePullConsumer.resume}."""
        self.consumer.resume(queues)


@final
class Transaction:
    """A half message that waits for its end; see L{transactions.Transaction}."""

    def __init__(self, transaction: transactions.Transaction) -> None:
        self._transaction = transaction

    @property
    def result(self) -> SendResult:
        """Where the half message is."""
        return self._transaction.result

    async def __aenter__(self) -> Transaction:
        return self

    async def __aexit__(self, kind: object, problem: object, trace: object) -> None:
        await self._transaction.__aexit__(kind, problem, trace)

    def commit(self) -> Deferred[None]:
        """See L{transactions.Transaction.commit}."""
        return Deferred.fromCoroutine(self._transaction.commit())

    def rollback(self) -> Deferred[None]:
        """See L{transactions.Transaction.rollback}."""
        return Deferred.fromCoroutine(self._transaction.rollback())


def _beginning(
    method: Callable[
        Concatenate[core.Session, P], Coroutine[Any, Any, transactions.Transaction]
    ],
) -> Callable[Concatenate[Session, P], Deferred[Transaction]]:
    """The method of the core that begins a transaction."""

    @wraps(method)
    def call(
        self: Session, /, *args: P.args, **options: P.kwargs
    ) -> Deferred[Transaction]:
        begun = Deferred.fromCoroutine(method(self.core, *args, **options))
        return begun.addCallback(Transaction)

    return call


def _deferred(
    method: Callable[Concatenate[core.Session, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Session, P], Deferred[T]]:
    """A method of the core that returns a Deferred."""

    @wraps(method)
    def call(self: Session, /, *args: P.args, **options: P.kwargs) -> Deferred[T]:
        return Deferred.fromCoroutine(method(self.core, *args, **options))

    return call


def _iterating(
    method: Callable[Concatenate[core.Session, P], T],
) -> Callable[Concatenate[Session, P], T]:
    """A method of the core that gives what a coroutine iterates over."""

    @wraps(method)
    def call(self: Session, /, *args: P.args, **options: P.kwargs) -> T:
        return method(self.core, *args, **options)

    return call


@final
class Session:
    """Sends and receives messages.

    @ivar core: what stands behind it.
    """

    def __init__(self, reactor: IReactorTCP, session: core.Session) -> None:
        # It has C{IReactorCore}, too, whose methods not all checkers understand.
        self._reactor: Any = reactor
        self.core = session

    async def __aenter__(self) -> Session:
        await self.core.__aenter__()
        return self

    async def __aexit__(self, *problem: object) -> None:
        await self.core.close()

    send = _deferred(core.Session.send)
    send_oneway = _deferred(core.Session.send_oneway)
    send_batch = _deferred(core.Session.send_batch)
    request = _deferred(core.Session.request)
    recall = _deferred(core.Session.recall)
    find = _deferred(core.Session.find)
    close = _deferred(core.Session.close)
    send_all = _iterating(core.Session.send_all)
    transaction = _beginning(core.Session.transaction)

    def check(self, topic: str) -> Callable[[C], C]:
        """See C{core.Session.check}; the function may return a Deferred."""
        return self.core.check(topic)

    def start(self) -> Deferred[Session]:
        """Let brokers ask what C{check} answers; fires with this session."""
        entered = Deferred.fromCoroutine(self.core.__aenter__())
        return entered.addCallback(lambda _: self)

    def consumer(
        self, topic: str, group: str, **options: Unpack[ConsumerOptions]
    ) -> MessageStream:
        """See C{core.Session.consumer}."""
        return MessageStream(self.core.consumer(topic, group, **options))

    def lite_pull(
        self,
        group: str,
        topic: str | None = None,
        *,
        queues: Sequence[MessageQueue] | None = None,
        auto_commit: bool = True,
        **options: Unpack[ConsumerOptions],
    ) -> LitePullConsumer:
        """See C{core.Session.lite_pull}."""
        made = self.core.lite_pull(
            group, topic, queues=queues, auto_commit=auto_commit, **options
        )
        return LitePullConsumer(made)

    def on(
        self,
        topic: str,
        *,
        group: str,
        concurrency: int = CONCURRENCY,
        **options: Unpack[ConsumerOptions],
    ) -> Callable[[L], L]:
        """See C{core.Session.on}."""
        register = self.core.on(topic, group=group, concurrency=concurrency, **options)

        def decorate(listener: L) -> L:
            check_listener(listener)
            register(lambda message: listener(ReceivedMessage(message)))
            return listener

        return decorate

    def run(self) -> Deferred[None]:
        """See C{core.Session.run}.

        A reactor that is about to stop lets it finish what is in hand before.
        """
        finished: Deferred[None] = Deferred()
        asked: list[bool] = []

        def stop() -> Deferred[None]:
            asked.append(True)
            self.core.stop()
            return finished

        trigger = self._reactor.addSystemEventTrigger("before", "shutdown", stop)

        def ended(result: T) -> T:
            if asked:
                finished.callback(None)
            else:
                self._reactor.removeSystemEventTrigger(trigger)
            return result

        return Deferred.fromCoroutine(self.core.run()).addBoth(ended)

    def stop(self) -> None:
        """See C{core.Session.stop}."""
        self.core.stop()


def connect(
    reactor: IReactorTCP,
    name_servers: str | Iterable[str] | None = None,
    **options: Unpack[ClientOptions],
) -> Session:
    """A session with the brokers that name servers know.

    Nothing is opened before the first send or receive.

    @param reactor: what it runs on.
    @param name_servers: C{host:port}, several with semicolons between, or a list of
        them; unless given, the variable ROCKETMQ_NAMESRV, else 127.0.0.1:9876.
    @param options: see L{ClientOptions}.
    @raise ConfigurationError: something cannot be as it is given.
    """
    if reactor is None or isinstance(reactor, str | list | tuple):
        raise ConfigurationError(
            f"the first argument is the reactor, not {reactor!r}: connect(reactor, ...)"
        )
    client, producer = client_settings(name_servers, options, os.environ)
    runtime = TwistedRuntime(reactor)
    return Session(reactor, core.Session(runtime, client, producer, offset_folder))
