#!/usr/bin/env python3
"""A load of C{client_speed.py} with RocketMQ's gRPC client for Python.

It runs in an environment that has that client and nothing of ours. It is told the
Proxy, the topic, the load and how many messages, and prints what
C{client_speed_ours.py} prints.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import rocketmq
from rocketmq.v5.exception import InternalErrorException

BODY = b"x" * 128

#: How many sends are under way, and how many messages a batch has.
OUTSTANDING = 64
BATCH = 32

#: Of the messages so many warm up.
WARM = 5

#: For how long a message belongs to who has it, in seconds.
INVISIBLE = 60


#: How often a consumer tries to read for the first time.
TRIES = 100


class Sends:
    """Sends with a producer."""

    def __init__(self, producer: Any, topic: str) -> None:
        self._producer = producer
        self._topic = topic

    def _message(self) -> Any:
        message = rocketmq.Message()
        message.topic = self._topic
        message.body = BODY
        return message

    def outstanding(self, count: int) -> None:
        """Sends, some of which are always under way."""
        room = threading.Semaphore(OUTSTANDING)
        failed: list[BaseException] = []

        def done(future: Any) -> None:
            problem = future.exception()
            if problem is not None:
                failed.append(problem)
            room.release()

        for _ in range(count):
            room.acquire()
            self._producer.send_async(self._message()).add_done_callback(done)
        for _ in range(OUTSTANDING):
            room.acquire()
        if failed:
            raise failed[0]

    def awaited(self, count: int) -> None:
        """Sends, each when the one before is stored."""
        for _ in range(count):
            self._producer.send(self._message())


class Reads:
    """Reads with a consumer.

    Its C{ack_async} gives nothing that could be waited for, so threads wait.
    """

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer
        self._pool = ThreadPoolExecutor(BATCH)

    def begin(self) -> None:
        """Read for the first time: the Proxy may not yet know what is wanted."""
        for _ in range(TRIES):
            try:
                return self.consumed(1)
            except InternalErrorException as problem:
                failure = problem
                time.sleep(0.1)
        raise failure

    def consumed(self, count: int) -> None:
        """Batches, of which each message is acknowledged."""
        while count > 0:
            messages = self._consumer.receive(BATCH, INVISIBLE) or []
            count -= len(list(self._pool.map(self._consumer.ack, messages)))


def used() -> float:
    """The seconds of processors of this process until now."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Warm up, and measure."""
    proxy, topic, name, count = sys.argv[1:5]
    settings = rocketmq.ClientConfiguration(proxy, rocketmq.Credentials())
    load: Any
    if name == "consumed":
        wanted = {topic: rocketmq.FilterExpression()}
        client = rocketmq.SimpleConsumer(settings, f"{topic}-official", wanted)
        client.startup()
        reads = Reads(client)
        reads.begin()
        load = reads.consumed
    else:
        client = rocketmq.Producer(settings, (topic,))
        client.startup()
        load = getattr(Sends(client, topic), name)
    load(int(count) // WARM)
    begin, cpu = time.monotonic(), used()
    load(int(count))
    found = {"cpu": used() - cpu, "seconds": time.monotonic() - begin}
    print(json.dumps(found), flush=True)
    # What it leaves running does not count, and need not be waited for.
    os._exit(0)


if __name__ == "__main__":
    main()
