"""The face for threads: one loop, any number of threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextvars import ContextVar

from twisted.trial.unittest import SynchronousTestCase

import rocketbroker.threads
from rocketbroker.errors import (
    ClientClosed,
    ConfigurationError,
    ConnectionLost,
    RequestTimeout,
)
from rocketbroker.threads import Message, connect
from rocketbroker.threads.loop_thread import LoopThread
from tests.faces import ERRORS, NO_CONNECTIONS, NO_CONSUMERS, OTHERS, loaded, missing

#: Loads all that a program with a producer and a consumer loads.
PROGRAM = """
from rocketbroker.threads import *
with connect("127.0.0.1:1") as mq:
    mq.consumer("T", "G", broadcast=True)
"""


class FaceTests(SynchronousTestCase):
    """C{from rocketbroker.threads import connect}."""

    def test_noTwisted(self) -> None:
        """It runs on asyncio."""
        self.assertEqual(loaded(PROGRAM, "twisted"), "")

    def test_neitherServersNorCommandLine(self) -> None:
        """An import takes no longer than the client itself."""
        self.assertEqual(loaded(PROGRAM, *OTHERS), "")

    def test_senderLoadsNoConsumer(self) -> None:
        """A command that sends one message begins sooner."""
        consumers = ("rocketbroker.client.consumer", "rocketbroker.threads.lite_pull")
        sender = "from rocketbroker.threads import Message, connect; connect('a:1')"
        self.assertEqual(loaded(sender, *consumers, "rocketbroker.filtering.sql"), "")
        self.assertIn(consumers[0], loaded(PROGRAM, *consumers))

    def test_namesAreThere(self) -> None:
        """All that the package names can be imported from it, and nothing else."""
        self.assertEqual(missing(rocketbroker.threads), [])
        self.assertEqual(set(ERRORS) - {*rocketbroker.threads.__all__}, set())
        self.assertFalse(hasattr(rocketbroker.threads, "Connection"))

    def test_wrongArgumentsAreOneSentence(self) -> None:
        """At once, not with the first message."""
        for servers, options in NO_CONNECTIONS:
            with self.assertRaises(ConfigurationError):
                connect(servers, **options)
        with connect("a:1") as mq:
            for topic, group, options in NO_CONSUMERS:
                with self.assertRaises(ConfigurationError):
                    mq.consumer(topic, group, **options)
                with self.assertRaises(ConfigurationError):
                    mq.on(topic, group=group, **options)

    def test_closedSessionSaysSo(self) -> None:
        """Closing twice is closing once; a session that was never used closes, too."""
        mq = connect("127.0.0.1:1", patience=0.01)
        # A busy machine may not have found out in time that nobody listens.
        with self.assertRaises((ConnectionLost, RequestTimeout)):
            mq.send("T", "x")
        for _ in range(2):
            mq.close()
        with self.assertRaises(ClientClosed):
            mq.send("T", "x")
        connect("127.0.0.1:1").close()


class SendAllTests(SynchronousTestCase):
    """C{send_all}, to where nobody is."""

    def setUp(self) -> None:
        self.mq = connect("127.0.0.1:1")
        self.addCleanup(self.mq.close)

    def test_messagesAreTakenByTheThreadThatReads(self) -> None:
        """What they come from may wait; that is not in the thread of the loop."""
        found: list[threading.Thread] = []

        def messages() -> Iterator[Message]:
            for number in range(9):
                found.append(threading.current_thread())
                yield Message("T", str(number))

        results = self.mq.send_all(messages(), patience=0, in_flight=3)
        self.assertEqual(found, [])
        with self.assertRaises(ConnectionLost):
            next(results)
        self.assertEqual(found, [threading.current_thread()] * 3)
        self.assertEqual([*results], [])

    def test_noMessagesNoResults(self) -> None:
        """Nothing is connected."""
        self.assertEqual([*self.mq.send_all([])], [])

    def test_wrongArgumentsAreRefusedAtOnce(self) -> None:
        """Not with the first result."""
        with self.assertRaises(ConfigurationError):
            self.mq.send_all([], in_flight=0)


class LoopThreadTests(SynchronousTestCase):
    """The thread behind a session."""

    def setUp(self) -> None:
        self.thread = LoopThread()
        self.addCleanup(self.thread.stop)

    def test_contextGoesAlong(self) -> None:
        """From the caller into the loop, and from there into a thread of a pool."""
        name: ContextVar[str] = ContextVar("name")
        pool = ThreadPoolExecutor(1)
        self.addCleanup(pool.shutdown)

        async def read() -> str:
            return await self.thread.in_pool(pool, name.get, "no")

        for value in ("a", "b"):
            name.set(value)
            self.assertEqual(self.thread.call(read()), value)

    def test_callsOfManyThreadsRunSideBySide(self) -> None:
        """Each gets its own result."""
        meeting = asyncio.Barrier(5)
        found: list[int] = []

        async def meet(number: int) -> int:
            await meeting.wait()
            return number

        threads = [
            threading.Thread(target=lambda n=n: found.append(self.thread.call(meet(n))))
            for n in range(5)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(found), [*range(5)])

    def test_errorsComeThrough(self) -> None:
        """As they were raised."""

        async def fail() -> None:
            raise ConnectionLost("gone")

        with self.assertRaises(ConnectionLost):
            self.thread.call(fail())

    def test_blockingCallInTheLoopIsRefused(self) -> None:
        """It would wait for itself."""

        async def nothing() -> None:
            """Do nothing."""

        async def block() -> None:
            self.thread.call(nothing())

        with self.assertRaises(RuntimeError):
            self.thread.call(block())

    def test_cancelledCallIsCancelledThere(self) -> None:
        """So that nothing goes on that nobody waits for."""
        cancelled = threading.Event()

        async def wait() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        future = self.thread.submit(wait())
        self.thread.call(asyncio.sleep(0))
        future.cancel()
        self.assertRaises(CancelledError, future.result)
        self.assertTrue(cancelled.wait(30.0))

    def test_stopEndsTheCallsOfOtherThreads(self) -> None:
        """They say that it was closed."""
        thread = LoopThread()
        begun = threading.Event()
        found: list[str] = []

        async def wait() -> None:
            begun.set()
            await asyncio.Event().wait()

        def call() -> None:
            try:
                thread.call(wait())
            except ClientClosed as problem:
                found.append(str(problem))

        calling = threading.Thread(target=call, daemon=True)
        calling.start()
        self.assertTrue(begun.wait(30.0))
        thread.stop()
        calling.join(30.0)
        self.assertEqual(found, ["the session was closed meanwhile"])

    def test_stoppedThreadTakesNothing(self) -> None:
        """It says that it was closed."""
        thread = LoopThread()
        thread.stop()

        async def nothing() -> None:
            """Do nothing."""

        with self.assertRaises(ClientClosed):
            thread.call(nothing())
        thread.soon(lambda: None)
