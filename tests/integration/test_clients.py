"""The client against a broker as a user starts it."""

from __future__ import annotations

import asyncio
import atexit
from typing import ClassVar

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.aio import MessageStream, Session, connect
from rocketbroker.blocking import Client, Settings
from tests.integration.servers import Cluster

#: How long something may take; nothing is asserted about it.
SECONDS = 60.0


class Shared:
    """One cluster for all tests, until the process ends: trial has nothing for it."""

    cluster: ClassVar[Cluster | None] = None

    @classmethod
    def get(cls) -> Cluster:
        """The cluster, started with the first test that asks."""
        if cls.cluster is None:
            cluster = Cluster()
            atexit.register(cluster.stop)
            cls.cluster = cluster.start()
        return cls.cluster


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
