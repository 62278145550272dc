# -*- test-case-name: tests.threads -*-
"""The client for plain threads: the coroutines of the core, waited for."""

from __future__ import annotations

import atexit
import os
import signal
import threading
import weakref
from collections.abc import (
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from types import FrameType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Final,
    ParamSpec,
    TypeVar,
    Unpack,
    final,
)

from rocketbroker.client import session as core
from rocketbroker.client import transactions
from rocketbroker.client.arguments import check_listener
from rocketbroker.client.options import (
    ClientOptions,
    ConsumerOptions,
    client_settings,
)
from rocketbroker.client.received import MessageView
from rocketbroker.client.received import ReceivedMessage as CoreMessage
from rocketbroker.client.runtimes.machine import (
    may_watch_termination,
    offset_folder,
    watch_fork,
)
from rocketbroker.client.runtimes.on_asyncio import AsyncioRuntime
from rocketbroker.client.send_stream import SendStream
from rocketbroker.client.session import CONCURRENCY
from rocketbroker.errors import ClientClosed
from rocketbroker.routing.send_requests import SendResult
from rocketbroker.routing.topic_view import MessageQueue
from rocketbroker.threads.loop_thread import LoopThread

if TYPE_CHECKING:
    from rocketbroker.threads.lite_pull import LitePullConsumer

P = ParamSpec("P")
T = TypeVar("T")

#: How long a session that was left open may take to be closed at the end.
EXIT_SECONDS: Final = 5.0


@final
class ReceivedMessage(MessageView):
    """A message, and what becomes of it."""

    __slots__ = ("_message", "_thread")

    def __init__(self, thread: LoopThread, message: CoreMessage) -> None:
        super().__init__(message.stored, message.queue, message.topic)
        self._thread = thread
        self._message = message

    def ack(self) -> None:
        """See C{CoreMessage.ack}."""
        self._thread.call(self._message.ack())

    def retry(self, delay_level: int = 0) -> None:
        """See C{CoreMessage.retry}."""
        self._thread.call(self._message.retry(delay_level))

    def dead_letter(self) -> None:
        """See C{CoreMessage.dead_letter}."""
        self._thread.call(self._message.dead_letter())

    def reply(
        self,
        body: bytes | str,
        *,
        tag: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """See C{CoreMessage.reply}."""
        self._thread.call(self._message.reply(body, tag=tag, properties=properties))


#: Handles a message: returns, and it is acknowledged; raises, and it comes again.
Listener = Callable[[ReceivedMessage], object]

L = TypeVar("L", bound=Listener)
C = TypeVar("C", bound=Callable[[MessageView], bool | None])


@final
class MessageStream:
    """The messages of one consumer: a context, and an iterator in it."""

    def __init__(self, thread: LoopThread, stream: core.MessageStream) -> None:
        self._thread = thread
        self._stream = stream

    def __enter__(self) -> MessageStream:
        self._thread.call(self._stream.__aenter__())
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def __iter__(self) -> MessageStream:
        return self

    def __next__(self) -> ReceivedMessage:
        try:
            message = self.next()
        except ClientClosed:
            raise StopIteration from None
        assert message is not None
        return message

    def next(self, timeout: float | None = None) -> ReceivedMessage | None:
        """See C{core.MessageStream.next}."""
        message = self._thread.call(self._stream.next(timeout))
        return None if message is None else ReceivedMessage(self._thread, message)

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues that are ours now."""
        return self._stream.queues

    @property
    def positions(self) -> Mapping[MessageQueue, int]:
        """See C{core.MessageStream.positions}."""
        return self._stream.positions

    def close(self) -> None:
        """See C{core.MessageStream.close}; any thread may call it."""
        self._thread.call(self._stream.close())


@final
class Transaction:
    """A half message that waits for its end; see L{transactions.Transaction}."""

    def __init__(
        self, thread: LoopThread, transaction: transactions.Transaction
    ) -> None:
        self._thread = thread
        self._transaction = transaction

    @property
    def result(self) -> SendResult:
        """Where the half message is."""
        return self._transaction.result

    def __enter__(self) -> Transaction:
        return self

    def __exit__(self, kind: object, problem: object, trace: object) -> None:
        self._thread.call(self._transaction.__aexit__(kind, problem, trace))

    def commit(self) -> None:
        """See L{transactions.Transaction.commit}."""
        self._thread.call(self._transaction.commit())

    def rollback(self) -> None:
        """See L{transactions.Transaction.rollback}."""
        self._thread.call(self._transaction.rollback())


def _beginning(
    method: Callable[
        Concatenate[core.Session, P], Coroutine[Any, Any, transactions.Transaction]
    ],
) -> Callable[Concatenate[Session, P], Transaction]:
    """The method of the core that begins a transaction."""

    @wraps(method)
    def call(self: Session, /, *args: P.args, **options: P.kwargs) -> Transaction:
        thread, session = self.behind()
        begun = thread.call(method(session, *args, **options))
        return Transaction(thread, begun)

    return call


def _waiting(
    method: Callable[Concatenate[core.Session, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Session, P], T]:
    """A method of the core that returns when it is done."""

    @wraps(method)
    def call(self: Session, /, *args: P.args, **options: P.kwargs) -> T:
        thread, session = self.behind()
        return thread.call(method(session, *args, **options))

    return call


def _iterating(
    method: Callable[Concatenate[core.Session, P], SendStream],
) -> Callable[Concatenate[Session, P], Iterator[SendResult]]:
    """A method of the core that sends what is taken from its source in this thread."""

    @wraps(method)
    def call(
        self: Session, /, *args: P.args, **options: P.kwargs
    ) -> Iterator[SendResult]:
        thread, session = self.behind()
        stream = method(session, *args, **options)

        def results() -> Iterator[SendResult]:
            while found := thread.call(stream.exchange(stream.take())):
                yield from found

        return results()

    return call


#: Sessions that are to be closed when the interpreter ends.
_open: Final[weakref.WeakSet[Session]] = weakref.WeakSet()


@final
class Session:
    """Sends and receives messages. Any number of threads may share it."""

    def __init__(self, make: Callable[[], core.Session]) -> None:
        """
        @param make: makes what stands behind it, anew in each process.
        """
        self._make = make
        self._lock = threading.Lock()
        self._behind: tuple[LoopThread, core.Session] | None = None
        self._left: list[object] = []
        self._registered: list[Callable[[LoopThread, core.Session], object]] = []
        self._closed = False
        watch_fork(self)

    def forked(self) -> None:
        """See L{watch_fork}: another thread may have had the lock."""
        self._lock = threading.Lock()

    def __enter__(self) -> Session:
        if self._behind is not None:  # a function may wait for questions of brokers
            thread, session = self.behind()
            thread.call(session.__aenter__())
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def behind(self) -> tuple[LoopThread, core.Session]:
        """The thread and the session of this process, made with the first call.

        What a parent has made is its own: a child of a fork leaves it alone, and keeps
        it, so that nothing of it is closed here.

        @raise ClientClosed: it was closed.
        """
        found = self._behind
        if found is not None and found[0].process_id == os.getpid():
            return found
        with self._lock:
            found = self._behind
            if found is None or found[0].process_id != os.getpid():
                if self._closed:
                    raise ClientClosed("the session was closed before")
                self._left.append(found)
                found = self._behind = (LoopThread(), self._make())
                _open.add(self)
                for register in self._registered:
                    register(*found)
        return found

    send = _waiting(core.Session.send)
    send_oneway = _waiting(core.Session.send_oneway)
    send_batch = _waiting(core.Session.send_batch)
    request = _waiting(core.Session.request)
    recall = _waiting(core.Session.recall)
    find = _waiting(core.Session.find)
    send_all = _iterating(core.Session.send_all)
    transaction = _beginning(core.Session.transaction)

    def check(self, topic: str) -> Callable[[C], C]:
        """See C{core.Session.check}; the function is called in a thread of its own."""
        _, session = self.behind()
        session.check(topic)

        def decorate(decide: C) -> C:
            def register(thread: LoopThread, session: core.Session) -> None:
                pool = ThreadPoolExecutor(1, f"rocketbroker-check-{topic}")

                async def ask(message: MessageView) -> object:
                    return await thread.in_pool(pool, decide, message)

                session.check(topic)(ask)

            self._register(register)
            return decide

        return decorate

    def _register(self, register: Callable[[LoopThread, core.Session], object]) -> None:
        """Register a function, here and in each child of a fork."""
        found = self.behind()
        self._registered.append(register)
        register(*found)

    def consumer(
        self, topic: str, group: str, **options: Unpack[ConsumerOptions]
    ) -> MessageStream:
        """See C{core.Session.consumer}."""
        thread, session = self.behind()
        return MessageStream(thread, session.consumer(topic, group, **options))

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
        from rocketbroker.threads.lite_pull import LitePullConsumer  # few need it

        thread, session = self.behind()
        made = session.lite_pull(
            group, topic, queues=queues, auto_commit=auto_commit, **options
        )
        return LitePullConsumer(thread, made)

    def on(
        self,
        topic: str,
        *,
        group: str,
        concurrency: int = CONCURRENCY,
        **options: Unpack[ConsumerOptions],
    ) -> Callable[[L], L]:
        """See C{core.Session.on}; the listener is called in a thread of a pool."""
        _, session = self.behind()
        session.on(topic, group=group, concurrency=concurrency, **options)

        def decorate(listener: L) -> L:
            check_listener(listener)

            def register(thread: LoopThread, session: core.Session) -> None:
                pool = ThreadPoolExecutor(concurrency, f"rocketbroker-{topic}")

                async def handle(message: CoreMessage) -> None:
                    received = ReceivedMessage(thread, message)
                    await thread.in_pool(pool, listener, received)

                session.on(topic, group=group, concurrency=concurrency, **options)(
                    handle
                )

            self._register(register)
            return listener

        return decorate

    def run(self) -> None:
        """See C{core.Session.run}; KeyboardInterrupt ends it, too."""
        thread, session = self.behind()
        running = thread.submit(session.run())

        def end(number: int, frame: FrameType | None) -> None:
            thread.soon(session.stop)

        watches = may_watch_termination()
        if watches:
            signal.signal(signal.SIGTERM, end)
        try:
            running.result()
        except KeyboardInterrupt:
            thread.soon(session.stop)
            running.result()
            raise
        finally:
            if watches:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def stop(self) -> None:
        """Let L{run} finish what is in hand and return; any thread may call it.

        Nothing happens if the session is closed.
        """
        if not self._closed:
            thread, session = self.behind()
            thread.soon(session.stop)

    def close(self) -> None:
        """Leave all groups and close all connections; idempotent."""
        with self._lock:
            self._closed = True
            found, self._behind = self._behind, None
        _open.discard(self)
        if found is not None and found[0].process_id == os.getpid():
            thread, session = found
            try:
                thread.call(session.close())
            finally:
                thread.stop()


@atexit.register
def _close_all() -> None:
    """Leave groups, so that the other members have the queues at once."""
    for session in [*_open]:
        closing = threading.Thread(target=session.close, daemon=True)
        closing.start()
        closing.join(EXIT_SECONDS)


def connect(
    name_servers: str | Iterable[str] | None = None, **options: Unpack[ClientOptions]
) -> Session:
    """A session with the brokers that name servers know.

    Nothing is opened before the first call.

    @param name_servers: C{host:port}, several with semicolons between, or a list of
        them; unless given, the variable ROCKETMQ_NAMESRV, else 127.0.0.1:9876.
    @param options: see L{ClientOptions}.
    @raise ConfigurationError: something cannot be as it is given.
    """
    client, producer = client_settings(name_servers, options, os.environ)
    return Session(
        lambda: core.Session(AsyncioRuntime(), client, producer, offset_folder)
    )
