#!/usr/bin/env python3
"""A member of a group in a process of its own, with our client for asyncio.

It carries out commands as JSON lines, as the program with the official client does
(C{scripts/lab/javaclient.py}): C{consumer}, C{queues}, C{stop}. A message is a line of
a file before it is handled: when, which queue, which offset, what. The file is there
when the process is killed.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from rocketbroker.aio import MessageStream, connect

#: How many messages are in hand at once.
READERS = 4


class Reading:
    """One stay in the group."""

    def __init__(self, stream: MessageStream, path: str) -> None:
        self.stream = stream
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115
        self._leaves = False
        self._tasks = [asyncio.create_task(self._read()) for _ in range(READERS)]
        self._in_hand = 0

    async def _read(self) -> None:
        async for message in self.stream:
            if self._leaves:
                return
            self._in_hand += 1
            place = f"{message.queue.queue_id} {message.offset} {message.text}"
            self._file.write(f"{time.monotonic_ns()} {place}\n".encode())
            await asyncio.sleep(0.001)
            await message.ack()
            self._in_hand -= 1

    async def stop(self) -> None:
        """Finish what is in hand, and leave."""
        self._leaves = True
        while self._in_hand:
            await asyncio.sleep(0.001)
        await self.stream.close()
        await asyncio.gather(*self._tasks)
        self._file.close()


class Program:
    """All stays, by their names."""

    def __init__(self, names: str) -> None:
        self._mq = connect(names)
        self._readings: dict[str, Reading] = {}

    async def consumer(self, words: dict[str, Any]) -> str:
        """Join."""
        stream = self._mq.consumer(
            words["topic"],
            words["group"],
            ordered=words.get("orderly", False),
            start="earliest",
        )
        await stream.__aenter__()
        self._readings[words["name"]] = Reading(stream, words["file"])
        return "started"

    async def queues(self, words: dict[str, Any]) -> list[str]:
        """The queues that are ours now."""
        queues = self._readings[words["name"]].stream.queues
        return [f"{queue.topic}/{queue.queue_id}" for queue in queues]

    async def stop(self, words: dict[str, Any]) -> str:
        """Leave."""
        await self._readings.pop(words["name"]).stop()
        return "stopped"

    async def carry_out(self, line: str) -> dict[str, Any]:
        """The answer to one command."""
        words = json.loads(line)
        commands: dict[str, Callable[..., Any]] = {
            "consumer": self.consumer,
            "queues": self.queues,
            "stop": self.stop,
        }
        try:
            return {"ok": await commands[words["do"]](words)}
        except Exception as problem:
            kind = type(problem).__name__
            return {"error": kind, "code": 0, "text": str(problem)}


async def main() -> None:
    """Carry out what comes, until nothing more can come."""
    program = Program(sys.argv[1])
    while line := await asyncio.to_thread(sys.stdin.readline):
        print(json.dumps(await program.carry_out(line)), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
