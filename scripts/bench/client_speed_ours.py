#!/usr/bin/env python3
"""A load of C{client_speed.py} with our client for asyncio, in a process of its own.

It is told the name server, the topic, the load and how many messages. It prints a line
of JSON: the seconds, and the seconds of processors of this process.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from rocketbroker.aio import Session, connect

BODY = b"x" * 128

#: How many sends are under way, and how many messages a batch has.
OUTSTANDING = 64
BATCH = 32

#: Of the messages so many warm up.
WARM = 5

Load = Callable[[int], Awaitable[None]]


class Loads:
    """What is done with a session and a topic."""

    def __init__(self, mq: Session, topic: str) -> None:
        self._mq = mq
        self._topic = topic

    async def outstanding(self, count: int) -> None:
        """Sends, some of which are always under way."""
        numbers = iter(range(count))

        async def sender() -> None:
            for _ in numbers:
                await self._mq.send(self._topic, BODY)

        await asyncio.gather(*(sender() for _ in range(OUTSTANDING)))

    async def awaited(self, count: int) -> None:
        """Sends, each when the one before is stored."""
        for _ in range(count):
            await self._mq.send(self._topic, BODY)

    async def consumed(self, load: Callable[[Load], Awaitable[None]]) -> None:
        """Let a load read as a member of a group, which acknowledges each message."""
        stream = self._mq.consumer(
            self._topic, f"{self._topic}-ours", start="earliest", pull_batch=BATCH
        )

        async def read(count: int) -> None:
            for _ in range(count):
                message = await stream.__anext__()
                await message.ack()

        async with stream:
            await load(read)


async def main() -> None:
    """Warm up, and measure."""
    names, topic, name, count = sys.argv[1:5]

    async def measured(load: Load) -> None:
        await load(int(count) // WARM)
        begin, cpu = time.monotonic(), used()
        await load(int(count))
        found = {"cpu": used() - cpu, "seconds": time.monotonic() - begin}
        print(json.dumps(found), flush=True)

    async with connect(names) as mq:
        loads = Loads(mq, topic)
        if name == "consumed":
            await loads.consumed(measured)
        else:
            sends = {"outstanding": loads.outstanding, "awaited": loads.awaited}
            await measured(sends[name])


def used() -> float:
    """The seconds of processors of this process until now."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    asyncio.run(main())
