#!/usr/bin/env python3
"""A load of C{proxy_cost.py}, in a process of its own: calls of gRPC.

It is told the proxy, the topic, the load, how many calls are under way at once, and how
many messages. It warms up, prints C{warm}, waits for a line, does the load, and prints
how many messages that were and how many seconds it took: what has been received is
acknowledged, too.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from google.protobuf.duration_pb2 import Duration

from rocketbroker.proxy import messages_pb2 as pb
from scripts.lab.grpcpeer import GrpcPeer, producer_settings, push_settings

BODY = b"x" * 128

#: At most so many connections: clients that have many streams have few of them.
CONNECTIONS = 4

#: Of the messages so many warm up.
WARM = 5

#: How many messages a receive brings, and for how long they are invisible.
BATCH = 32
INVISIBLE = Duration(seconds=60)


class Load:
    """Calls to one proxy."""

    def __init__(self, peers: list[GrpcPeer], topic: str, streams: int) -> None:
        self._peers = [peers[number % len(peers)] for number in range(streams)]
        self._topic = topic
        self._group = f"{topic}-group"
        self._ids = count()

    async def introduce(self, peer: GrpcPeer, name: str) -> object:
        """Say what the client of a connection does."""
        if name == "sent":
            return await peer.introduce(producer_settings(self._topic))
        settings = push_settings(self._topic, self._group)
        settings.client_type = pb.ClientType.SIMPLE_CONSUMER
        return await peer.introduce(settings)

    async def sent(self, number: int) -> int:
        """Messages, each stream's one after the other; how many."""
        left = iter(range(number))

        async def work(peer: GrpcPeer, left: Iterator[int]) -> None:
            for _ in left:
                identity = f"01{next(self._ids):030X}"
                answer = await peer.send(self._topic, BODY, identity)
                if answer.status.code != pb.Code.OK:
                    raise RuntimeError(answer.status.message)

        await asyncio.gather(*(work(peer, left) for peer in self._peers))
        return number

    async def consumed(self, number: int) -> int:
        """Messages, received in batches and acknowledged one by one; how many."""
        left = number

        async def work(peer: GrpcPeer) -> None:
            nonlocal left
            while left > 0:
                messages = await peer.receive(
                    self._topic,
                    self._group,
                    batch_size=BATCH,
                    auto_renew=False,
                    invisible_duration=INVISIBLE,
                )
                for message in messages:
                    answer = await peer.ack(self._topic, self._group, message)
                    if answer.status.code != pb.Code.OK:
                        raise RuntimeError(answer.status.message)
                    left -= 1

        await asyncio.gather(*(work(peer) for peer in self._peers))
        return number - left


async def main() -> None:
    """Warm up, and do it."""
    address, topic, name, streams, number = sys.argv[1:6]
    async with AsyncExitStack() as stack:
        peers = [
            await stack.enter_async_context(GrpcPeer(address, f"{topic}-{each}"))
            for each in range(min(int(streams), CONNECTIONS))
        ]
        load = Load(peers, topic, int(streams))
        opened = [await load.introduce(peer, name) for peer in peers]
        do: Callable[[int], Awaitable[int]] = getattr(load, name)
        await do(int(number) // WARM)
        print("warm", flush=True)
        sys.stdin.readline()
        begin = time.monotonic()
        done = await do(int(number))
        print(done, time.monotonic() - begin, flush=True)
        opened.clear()


if __name__ == "__main__":
    asyncio.run(main())
