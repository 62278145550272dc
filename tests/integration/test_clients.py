"""The client against a broker as a user starts it."""

from __future__ import annotations

import asyncio
import atexit
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, cast

from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTCP
from twisted.trial.unittest import SynchronousTestCase, TestCase

from rocketbroker import deferred, threads
from rocketbroker.aio import MessageStream, ReceivedMessage, Session, connect
from rocketbroker.blocking import Client, Settings
from scripts.lab.servers import ROOT, Cluster, environment

#: How long something may take; nothing is asserted about it.
SECONDS = 60.0


class Shared:
    """One cluster for all tests, until the process ends: trial has nothing for it."""

    cluster: ClassVar[Cluster | None] = None

    @classmethod
    def get(cls) -> Cluster:
        """The cluster, started with the first test that asks."""
        if cls.cluster is None:
            cluster = Cluster(recallMessageEnable="true")
            atexit.register(cluster.stop)
            cls.cluster = cluster.start()
        return cls.cluster


def create(names: str, topic: str, queues: int = 4) -> None:
    """Make a topic."""
    with Client(Settings(names)) as client:
        client.create_topic(topic, queues)


class AsyncioTests(SynchronousTestCase):
    """C{rocketbroker.aio}."""

    def setUp(self) -> None:
        self.names = Shared.get().names

    def create(self, topic: str, queues: int = 4) -> Client:
        """Make a topic."""
        client = Client(Settings(self.names))
        self.addCleanup(client.close)
        client.create_topic(topic, queues)
        return client

    def test_sentMessageIsReceived(self) -> None:
        """With all that it was sent with; what is acknowledged stays so."""
        self.create("AioOne")

        async def scenario() -> list[tuple[str, str | None, list[str]]]:
            found = []
            async with connect(self.names) as mq:
                for _ in range(2):
                    async with mq.consumer("AioOne", "AioOneG") as messages:
                        await mq.send("AioOne", "hello", tag="paid", keys=["k1"])
                        message = await messages.next(SECONDS)
                        assert message is not None
                        await message.ack()
                        found.append((message.text, message.tag, message.keys))
                        self.assertIsNone(await messages.next(0.2))
            return found

        expected = [("hello", "paid", ["k1"])] * 2
        self.assertEqual(asyncio.run(scenario()), expected)

    def test_twoMembersShareFourQueues(self) -> None:
        """Each message is read once, by one of them; when one leaves, the other one has
        all queues."""
        client = self.create("AioShared")

        async def read(messages: MessageStream, found: list[str]) -> None:
            async for message in messages:
                found.append(message.text)
                await message.ack()

        async def owned(count: int, *streams: MessageStream) -> None:
            """Wait until these have that many queues each."""
            while not all(
                len([queue for queue in one.queues if queue.topic == "AioShared"])
                == count
                for one in streams
            ):
                await asyncio.sleep(0.02)

        async def share(mq: Session) -> list[list[str]]:
            first: list[str] = []
            second: list[str] = []
            one = mq.consumer("AioShared", "AioSharedG", start="earliest")
            async with one, mq.consumer("AioShared", "AioSharedG") as other:
                await owned(2, one, other)
                readers = [
                    asyncio.create_task(read(one, first)),
                    asyncio.create_task(read(other, second)),
                ]
                sends = [mq.send("AioShared", str(n)) for n in range(100)]
                await asyncio.gather(*sends)
                while len(first) + len(second) < 100:
                    await asyncio.sleep(0.02)
                await other.close()
                await owned(4, one)
                await asyncio.gather(
                    *(mq.send("AioShared", str(n)) for n in range(100, 108))
                )
                while len(first) + len(second) < 108:
                    await asyncio.sleep(0.02)
            await asyncio.gather(*readers)
            return [first, second]

        async def scenario() -> list[list[str]]:
            async with connect(self.names) as mq, asyncio.timeout(SECONDS):
                return await share(mq)

        first, second = asyncio.run(scenario())
        self.assertEqual(sorted(map(int, first + second)), [*range(108)])
        self.assertTrue(first and second)
        offsets = [
            client.committed_offset(queue, "AioSharedG")
            for queue in client.queues("AioShared")
        ]
        self.assertEqual(sum(offset or 0 for offset in offsets), 108)

    def test_retriedMessageAndDeadLetter(self) -> None:
        """A listener that fails sees the message again; dead letters are put aside."""
        self.create("AioRetry", 1)
        seen: list[tuple[str, int]] = []

        async def scenario() -> int:
            async with connect(self.names) as mq, asyncio.timeout(SECONDS):
                await mq.send("AioRetry", "bad")
                await mq.send("AioRetry", "dead")
                async with mq.consumer(
                    "AioRetry", "AioRetryG", start="earliest"
                ) as messages:
                    async for message in messages:
                        seen.append((message.text, message.attempt))
                        if message.text == "dead":
                            await message.dead_letter()
                        elif message.attempt == 1:
                            await message.retry(delay_level=1)
                        else:
                            await message.ack()
                            break
                async with mq.consumer(
                    "%DLQ%AioRetryG", "AioDeadG", start="earliest"
                ) as dead:
                    found = await dead.next(SECONDS)
                    assert found is not None
                    return found.attempt if found.text == "dead" else -1

        self.assertGreaterEqual(asyncio.run(scenario()), 1)
        self.assertEqual(seen, [("bad", 1), ("dead", 1), ("bad", 2)])

    def test_transactionIsReadWhenItIsCommitted(self) -> None:
        """And what is rolled back is never read."""
        self.create("AioHalf", 1)

        async def scenario() -> list[str]:
            mq = connect(self.names, group="AioHalfP")
            mq.check("AioHalf")(lambda message: None)
            async with mq, mq.consumer("AioHalf", "AioHalfG") as messages:
                async with await mq.transaction("AioHalf", "committed"):
                    self.assertIsNone(await messages.next(0.5))
                await (await mq.transaction("AioHalf", "gone")).rollback()
                await mq.send("AioHalf", "plain")
                found = [await messages.next(SECONDS) for _ in range(2)]
                return sorted(message.text for message in found if message)

        self.assertEqual(asyncio.run(scenario()), ["committed", "plain"])

    def test_recalledMessageIsNeverRead(self) -> None:
        """One that was sent later, and waits as long, is."""
        self.create("Recall", 1)

        async def scenario() -> list[str | None]:
            async with connect(self.names) as mq, asyncio.timeout(SECONDS):
                results = [await mq.send("Recall", body, delay=1.5) for body in "ab"]
                handle = results[0].recall_handle
                assert handle is not None
                recalled = await mq.recall("Recall", handle)
                self.assertEqual(recalled, results[0].message_id)
                async with mq.consumer("Recall", "RG", start="earliest") as some:
                    first = await some.next()
                    second = await some.next(0.5)
                    return [message and message.text for message in (first, second)]

        self.assertEqual(asyncio.run(scenario()), ["b", None])

    def test_poppedMessagesAreShared(self) -> None:
        """Two members, one queue; a message that is retried comes again."""
        self.create("AioPop", 1)
        seen: list[tuple[str, int]] = []
        members: set[int] = set()

        async def read(messages: MessageStream, number: int) -> None:
            async for message in messages:
                seen.append((message.text, message.attempt))
                members.add(number)
                if message.text == "again" and message.attempt == 1:
                    await message.retry(delay_level=0)
                else:
                    await message.ack()

        async def scenario() -> None:
            async with connect(self.names) as mq:
                streams = [
                    mq.consumer("AioPop", "AioPopG", mode="pop", start="earliest")
                    for _ in range(2)
                ]
                async with streams[0], streams[1]:
                    readers = [
                        asyncio.create_task(read(stream, number))
                        for number, stream in enumerate(streams)
                    ]
                    for number in range(40):
                        await mq.send("AioPop", str(number))
                    await mq.send("AioPop", "again")
                    while ("again", 2) not in seen:
                        await asyncio.sleep(0.05)
                await asyncio.gather(*readers)

        asyncio.run(asyncio.wait_for(scenario(), SECONDS))
        once = [text for text, _ in seen if text != "again"]
        self.assertEqual(sorted(map(int, once)), [*range(40)])
        self.assertEqual(len(members), 2)

    def test_orderIsKept(self) -> None:
        """Of each key, by one reader at a time, also while members come and go."""
        self.create("AioOrder")
        seen: dict[str, list[int]] = {}

        async def handle(message: ReceivedMessage) -> None:
            key, number = message.text.split()
            seen.setdefault(key, []).append(int(number))

        async def scenario() -> None:
            async with connect(self.names) as first, connect(self.names) as second:
                runs = []
                for mq in (first, second):
                    mq.on(
                        "AioOrder", group="AioOrderG", ordered=True, start="earliest"
                    )(handle)
                runs.append(asyncio.create_task(first.run()))
                for number in range(20):
                    if number == 5:
                        runs.append(asyncio.create_task(second.run()))
                    for key in "abcd":
                        await first.send("AioOrder", f"{key} {number}", order_key=key)
                while sum(len(set(one)) for one in seen.values()) < 80:
                    await asyncio.sleep(0.05)
                second.stop()
                first.stop()
                await asyncio.gather(*runs)

        asyncio.run(asyncio.wait_for(scenario(), SECONDS))
        for key in "abcd":
            self.assertEqual(list(dict.fromkeys(seen[key])), [*range(20)])
            self.assertEqual(seen[key], sorted(seen[key]))


#: A program that forks: parent and child send with one session, and close it.
FORK = """
import os, sys
from rocketbroker.threads import connect
mq = connect(sys.argv[1])
mq.send("ThreadsFork", "before")
child = os.fork()
for number in range(20):
    mq.send("ThreadsFork", f"{'parent' if child else 'child'} {number}")
mq.close()
if child:
    os.waitpid(child, 0)
else:
    os._exit(0)
"""

#: The same with asyncio, and with the client on plain sockets.
FORKS = """
import asyncio, os, sys
from rocketbroker import aio
from rocketbroker.blocking import Client, Message, Producer, Settings
mq = aio.connect(sys.argv[1])
producer = Producer(Client(Settings(sys.argv[1])))
async def send(who):
    await asyncio.gather(*(mq.send("Forks", f"aio {who} {n}") for n in range(20)))
asyncio.run(send("before"))
producer.send(Message("Forks", "blocking before"))
child = os.fork()
who = "parent" if child else "child"
for n in range(20):
    producer.send(Message("Forks", f"blocking {who} {n}"))
if not child:
    asyncio.run(send(who))
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""

#: A program that leaves its consumer open when it ends.
LEFT = """
import sys
from rocketbroker.threads import connect
mq = connect(sys.argv[1])
mq.send("ThreadsLeft", "x")
stream = mq.consumer("ThreadsLeft", "ThreadsLeftG", start="earliest")
stream.__enter__()
message = stream.next(60.0)
message.ack()
"""


class CrowdTests(SynchronousTestCase):
    """As many senders as a program has threads or tasks, with one session."""

    def setUp(self) -> None:
        self.names = Shared.get().names

    def stored(self, topic: str) -> int:
        """How many messages a topic has."""
        with Client(Settings(self.names)) as client:
            return sum(map(client.max_offset, client.queues(topic)))

    def test_tenThousandTasksOfOneSession(self) -> None:
        """More than may be under way: the others wait. Alone, and in batches."""
        create(self.names, "TenThousand")

        async def send(mq: Session, count: int, **options: Any) -> int:
            sends = (mq.send("TenThousand", str(n), **options) for n in range(count))
            return len({one.message_id for one in await asyncio.gather(*sends)})

        async def scenario() -> tuple[int, int]:
            async with connect(self.names, max_sends=256) as mq:
                alone = await send(mq, 2_000)
                return alone, await send(mq, 10_000, accumulate=True)

        self.assertEqual(asyncio.run(scenario()), (2_000, 10_000))
        self.assertEqual(self.stored("TenThousand"), 12_000)

    def test_thousandThreadsOfOneSession(self) -> None:
        """Each gets the result of its own message."""
        create(self.names, "Thousand")
        found: dict[str, str] = {}
        with threads.connect(self.names) as mq:

            def send(text: str) -> None:
                found[mq.send("Thousand", text).message_id] = text

            senders = [
                threading.Thread(target=send, args=(str(n),)) for n in range(1_000)
            ]
            for one in senders:
                one.start()
            for one in senders:
                one.join(SECONDS)
        self.assertEqual(sorted(map(int, found.values())), [*range(1_000)])
        self.assertEqual(self.stored("Thousand"), 1_000)


class ThreadsTests(SynchronousTestCase):
    """C{rocketbroker.threads}."""

    def setUp(self) -> None:
        self.names = Shared.get().names

    def bodies(self, topic: str) -> list[str]:
        """All messages of a topic, sorted."""
        found = []
        with threads.connect(self.names) as mq:
            group = f"{topic}All"
            with mq.consumer(topic, group, start="earliest") as messages:
                while (message := messages.next(1.0)) is not None:
                    found.append(message.text)
                    message.ack()
        return sorted(found)

    def program(self, text: str) -> None:
        """Run a program to its end."""
        subprocess.run(
            [sys.executable, "-c", text, self.names],
            cwd=ROOT,
            env=environment(),
            check=True,
            timeout=SECONDS,
        )

    def test_threadsShareASession(self) -> None:
        """Many send, and one is stopped from another thread while it reads."""
        create(self.names, "ThreadsShared")
        found: list[str] = []
        with threads.connect(self.names) as mq, ThreadPoolExecutor(20) as pool:
            messages = mq.consumer("ThreadsShared", "ThreadsSharedG", start="earliest")

            def read() -> None:
                for message in messages:
                    found.append(message.text)
                    message.ack()

            with messages:
                reading = threading.Thread(target=read)
                reading.start()
                texts = [str(n) for n in range(200)]
                list(pool.map(lambda text: mq.send("ThreadsShared", text), texts))
                end = time.monotonic() + SECONDS
                while len(found) < 200 and time.monotonic() < end:
                    time.sleep(0.01)
            reading.join()
        self.assertEqual(sorted(found), sorted(texts))

    def test_listenerRunsInThreads(self) -> None:
        """Several at a time; one that fails comes again."""
        create(self.names, "ThreadsListen")
        seen: list[str] = []
        both = threading.Barrier(2)
        mq = threads.connect(self.names)

        @mq.on("ThreadsListen", group="ThreadsListenG", start="earliest")
        def handle(message: threads.ReceivedMessage) -> None:
            if message.attempt == 1:
                both.wait(SECONDS)
                if message.text == "bad":
                    seen.append("failed")
                    message.retry(delay_level=1)
                    return
            seen.append(message.text)
            if sorted(seen) == ["bad", "failed", "good"]:
                mq.stop()

        with mq:
            mq.send("ThreadsListen", "bad")
            mq.send("ThreadsListen", "good")
            mq.run()
        self.assertEqual(sorted(seen), ["bad", "failed", "good"])

    def test_pollGoesBackAndForth(self) -> None:
        """A queue that is given to it, from any thread."""
        create(self.names, "ThreadsPoll", 1)
        queue = threads.MessageQueue("ThreadsPoll", "broker-a", 0)
        with threads.connect(self.names) as mq:
            for number in range(3):
                mq.send("ThreadsPoll", str(number))
            with mq.lite_pull("ThreadsPollG", queues=[queue], start="earliest") as one:
                found: list[str] = []
                while len(found) < 3:
                    found += [each.text for each in one.poll(SECONDS)]
                one.seek(queue, 1)
                again = [each.text for each in one.poll(SECONDS, 1)]
                one.pause([queue])
                self.assertEqual(one.poll(0.1), [])
                one.resume([queue])
                self.assertEqual(one.position(queue), 2)
        self.assertEqual((found, again), (["0", "1", "2"], ["1"]))

    def test_transactionIsCommittedByItsEnd(self) -> None:
        """An error rolls it back."""
        create(self.names, "ThreadsHalf", 1)
        mq = threads.connect(self.names, group="ThreadsHalfP")
        mq.check("ThreadsHalf")(lambda message: None)
        with mq:
            with mq.transaction("ThreadsHalf", "good"):
                pass
            bad = mq.transaction("ThreadsHalf", "bad")
            with self.assertRaises(ZeroDivisionError), bad:
                raise ZeroDivisionError
        self.assertEqual(self.bodies("ThreadsHalf"), ["good"])

    def test_childOfAForkHasItsOwnConnections(self) -> None:
        """Both send with the same session, and nothing is stored twice or lost."""
        create(self.names, "ThreadsFork")
        self.program(FORK)
        sent = [f"{who} {n}" for who in ("parent", "child") for n in range(20)]
        self.assertEqual(self.bodies("ThreadsFork"), sorted(["before", *sent]))

    def test_soHasItWithTheOtherFaces(self) -> None:
        """As far as a child can use them: one of asyncio has a loop of its own."""
        create(self.names, "Forks")
        self.program(FORKS)
        sent = [f"aio {who} {n}" for who in ("before", "child") for n in range(20)]
        for who in ("parent", "child"):
            sent += [f"blocking {who} {n}" for n in range(20)]
        self.assertEqual(self.bodies("Forks"), sorted(["blocking before", *sent]))

    def test_sessionThatIsLeftOpenIsClosedAtTheEnd(self) -> None:
        """What was acknowledged is committed."""
        create(self.names, "ThreadsLeft", 1)
        self.program(LEFT)
        with Client(Settings(self.names)) as client:
            (queue,) = client.queues("ThreadsLeft")
            self.assertEqual(client.committed_offset(queue, "ThreadsLeftG"), 1)


class DeferredTests(TestCase):
    """C{rocketbroker.deferred}."""

    def setUp(self) -> None:
        self.names = Shared.get().names
        self.reactor = cast(IReactorTCP, reactor)

    def test_deferredsFireWithResults(self) -> Deferred[None]:
        """A message is sent and received, with callbacks alone."""
        create(self.names, "DeferredOne")
        mq = deferred.connect(self.reactor, self.names)
        stream = mq.consumer("DeferredOne", "DeferredOneG", start="earliest")

        def take(message: deferred.ReceivedMessage | None) -> Deferred[None]:
            assert message is not None
            self.assertEqual((message.text, message.tag), ("hello", "a"))
            return message.ack()

        received = (
            stream.start()
            .addCallback(lambda _: mq.send("DeferredOne", "hello", tag="a"))
            .addCallback(lambda _: stream.next(SECONDS))
            .addCallback(take)
        )
        return received.addBoth(
            lambda outcome: mq.close().addCallback(lambda _: outcome)
        )

    async def test_coroutineReadsAsWithAsyncio(self) -> None:
        """Contexts and iteration; a listener runs until it is stopped."""
        create(self.names, "DeferredTwo")
        seen: list[str] = []
        async with deferred.connect(self.reactor, self.names) as mq:
            await mq.send("DeferredTwo", "1")
            async with mq.consumer(
                "DeferredTwo", "DeferredTwoG", start="earliest"
            ) as messages:
                async for message in messages:
                    seen.append(message.text)
                    await message.ack()
                    break

            @mq.on("DeferredTwo", group="DeferredTwoG")
            def handle(message: deferred.ReceivedMessage) -> Deferred[None]:
                seen.append(message.text)
                mq.stop()
                return message.ack()

            await mq.send("DeferredTwo", "2")
            await mq.run()
        self.assertEqual(seen, ["1", "2"])
