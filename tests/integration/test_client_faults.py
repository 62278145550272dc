"""What a client rides over: nothing is lost, all goes on, and each fault is said once.

How soon it was back is printed; nothing is asserted about it, as machines may be busy.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.aio import MessageStream, ReceivedMessage, Session, connect
from rocketbroker.blocking import Client, Settings
from scripts.lab.servers import Cluster
from tests.heavy import HEAVY

#: For how long there is no name server, in seconds, and how often clients ask for
#: routes: in the large form as users have it.
AWAY = 120.0 if HEAVY else 10.0
ROUTE_SECONDS = 30.0 if HEAVY else 1.0

#: How long a story may take besides, and a request; nothing is asserted about it.
SECONDS = 120.0

#: One sends, one reads: each has connections and routes of its own.
CLIENTS = 2

#: Seconds between two sends.
PAUSE = 0.005

TOPIC, GROUP = "T", "G"


class Said(logging.Handler):
    """What the client has said, without its reasons, which stand behind colons."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self.lines.append(record.getMessage().split(": ")[0])


@contextmanager
def hearing() -> Iterator[Said]:
    """Hear what the client says."""
    logger, said = logging.getLogger("rocketbroker.client"), Said()
    level = logger.level
    logger.addHandler(said)
    logger.setLevel(logging.INFO)
    try:
        yield said
    finally:
        logger.removeHandler(said)
        logger.setLevel(level)


class Traffic:
    """Numbers that are sent one after the other, and come back.

    @ivar sent: how many are stored.
    @ivar come: those that came.
    """

    def __init__(self, mq: Session, stream: MessageStream) -> None:
        self.sent = 0
        self.come: Counter[int] = Counter()
        self._mq = mq
        self._stream = stream
        self._ends = False

    async def send(self) -> None:
        """Send until L{end}."""
        while not self._ends:
            await self._mq.send(TOPIC, str(self.sent))
            self.sent += 1
            await asyncio.sleep(PAUSE)

    async def read(self) -> None:
        """Read until the consumer is closed."""
        async for message in self._stream:
            self.come[int(message.text)] += 1
            await message.ack()

    async def flows(self) -> None:
        """Wait until a number has been sent from now on, and has come."""
        number = self.sent + 1
        while not self.come[number]:
            await asyncio.sleep(PAUSE)

    async def end(self) -> None:
        """Send no more, and wait until all numbers have come."""
        self._ends = True
        while len(self.come) < self.sent:
            await asyncio.sleep(PAUSE)


def create_topic(names: str) -> None:
    """The topic that all goes through."""
    with Client(Settings(names)) as client:
        client.create_topic(TOPIC, 4)


@asynccontextmanager
async def traffic(names: str, **options: Any) -> AsyncIterator[Traffic]:
    """Traffic that flows; all of it has come at the end."""
    await asyncio.to_thread(create_topic, names)
    async with connect(names, seconds=SECONDS, **options) as mq:
        stream = mq.consumer(TOPIC, GROUP, start="earliest")
        async with stream:
            found = Traffic(mq, stream)
            reading = asyncio.create_task(found.read())
            sending = asyncio.create_task(found.send())
            await found.flows()
            yield found
            await asyncio.gather(sending, found.end())
        await reading


class Wire:
    """A TCP proxy that ends all its connections inside a frame.

    @ivar cuts: how many it has ended so.
    """

    def __init__(self, host: str, port: int) -> None:
        """
        @param host: of the server; the port is the same on both sides.
        """
        self._host = host
        self._port = port
        self._cut: str | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self.cuts = 0

    @asynccontextmanager
    async def listening(self, host: str) -> AsyncIterator[Wire]:
        """Take connections; all have ended at the end."""
        async with await asyncio.start_server(self._connected, host, self._port):
            yield self
            self._end()
            while self._writers:
                await asyncio.sleep(PAUSE)

    def _end(self) -> None:
        for each in self._writers:
            each.close()

    async def cut(self, what: str) -> None:
        """End a connection inside the next frame that comes, and so all others.

        @param what: C{"answer"} or C{"request"}.
        """
        self._cut = what
        while self._cut:
            await asyncio.sleep(PAUSE)

    async def _connected(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        far_reader, far_writer = await asyncio.open_connection(self._host, self._port)
        ends = {writer, far_writer}
        self._writers |= ends
        with contextlib.suppress(OSError):
            await asyncio.gather(
                self._pass("request", reader, far_writer),
                self._pass("answer", far_reader, writer),
            )
        for each in ends:
            each.close()
            with contextlib.suppress(OSError):
                await each.wait_closed()
        self._writers -= ends

    async def _pass(
        self, what: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while data := await reader.read(1 << 16):
            if self._cut == what:
                writer.write(data[:-1])
                self._cut = None
                self.cuts += 1
                self._end()
                return
            writer.write(data)
            await writer.drain()
        writer.close()


class FaultTests(SynchronousTestCase):
    """A client that sends and reads, of our broker."""

    timeout = 600

    def cluster(self, **settings: object) -> Cluster:
        """Servers."""
        cluster = Cluster(**settings)
        self.addCleanup(cluster.stop)
        return cluster.start()

    def play(self, story: Callable[[Said], Awaitable[None]]) -> None:
        """Run a story."""

        async def bounded(said: Said) -> None:
            await asyncio.wait_for(story(said), AWAY + SECONDS)

        with hearing() as said:
            asyncio.run(bounded(said))

    async def back(self, what: str, flowing: Traffic) -> None:
        """Wait until traffic flows again, and tell how soon."""
        begun = time.monotonic()
        await flowing.flows()
        print(f"{what}: back after {time.monotonic() - begun:.1f} s")

    def assertSaidOnce(self, said: Said) -> None:
        """Of each outage there is one line, and one of its end, and of nothing else."""
        what = "broker broker-a"
        both = [f"{what} is away, and is tried again", f"{what} is back"]
        self.assertEqual(said.lines, both * (len(said.lines) // 2 or 1))
        said.lines.clear()

    def test_brokerIsStartedAgain(self) -> None:
        """After it was stopped, and after it was killed."""
        cluster = self.cluster()

        async def story(said: Said) -> None:
            async with traffic(cluster.names) as flowing:
                for how in (signal.SIGTERM, signal.SIGKILL):
                    await asyncio.to_thread(cluster.broker.stop, how)
                    await asyncio.to_thread(cluster.broker.start)
                    await self.back(f"broker after {how.name}", flowing)
                    self.assertSaidOnce(said)

        self.play(story)

    def test_nameServerIsAway(self) -> None:
        """Sends and reads go on meanwhile."""
        cluster = self.cluster()

        async def story(said: Said) -> None:
            options = {"route_seconds": ROUTE_SECONDS}
            async with traffic(cluster.names, **options) as flowing:
                await asyncio.to_thread(cluster.namesrv.stop, signal.SIGKILL)
                end = time.monotonic() + AWAY
                while time.monotonic() < end:
                    await flowing.flows()
                await asyncio.to_thread(cluster.namesrv.start)
                away, back = (
                    "the name server is away; known routes are kept, and it is tried "
                    "again",
                    "the name server is back",
                )
                while back not in said.lines:
                    await asyncio.sleep(PAUSE)
                self.assertEqual(said.lines, [away, back])

        self.play(story)

    def test_connectionsEndInsideAFrame(self) -> None:
        """One that goes there, and one that comes."""
        cluster = self.cluster(bindAddress="127.0.0.1", brokerIP1="127.0.0.2")

        async def story(said: Said) -> None:
            wire = Wire("127.0.0.1", cluster.broker.port)
            async with (
                wire.listening("127.0.0.2"),
                traffic(cluster.names) as flowing,
            ):
                for what in ("request", "answer"):
                    await wire.cut(what)
                    await self.back(f"half {what}", flowing)
                    self.assertSaidOnce(said)
            self.assertEqual(wire.cuts, 2)

        self.play(story)

    def test_listenerHangs(self) -> None:
        """What it has in hand comes again, and all else goes on."""
        cluster = self.cluster(messageDelayLevel="1s 1s 1s 1s")
        count, come = 100, Counter[str]()

        async def story(said: Said) -> None:
            hangs = asyncio.Event()
            await asyncio.to_thread(create_topic, cluster.names)
            async with connect(cluster.names, seconds=SECONDS) as mq:
                options: Any = {"start": "earliest", "consume_timeout": 2.0}

                @mq.on(TOPIC, group=GROUP, concurrency=2, **options)
                async def handle(message: ReceivedMessage) -> None:
                    come[message.text] += 1
                    if message.text == "7" and message.attempt == 1:
                        await hangs.wait()

                running = asyncio.create_task(mq.run())
                for number in range(count):
                    await mq.send(TOPIC, str(number))
                while len(come) < count or come["7"] < 2:
                    await asyncio.sleep(PAUSE)
                hangs.set()
                mq.stop()
                await running
            self.assertEqual(come["7"], 2)
            for line in said.lines:
                self.assertIn("was not acknowledged for 2 seconds", line)
                self.assertEqual(said.lines.count(line), 1)

        self.play(story)
