"""Rows of scripts/scale.py: many topics and groups."""

from __future__ import annotations

import contextlib
import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.frames import encode
from scripts.scale_load import (
    NO_ANSWER,
    Figure,
    Peer,
    Scale,
    send_frame,
)
from tests.integration.servers import READY_SECONDS, Cluster, Server

QUEUES = 4

#: New connections that are tried while there are many files.
NEW_CONNECTIONS = 50


def topic(number: int) -> str:
    """The name of a topic; names are as long as people's."""
    return f"scale-of-topics-{number:06}"


def write_table(store: Path, file: str, **table: object) -> None:
    """A table as brokers keep it, before the first start."""
    (store / "config").mkdir(parents=True, exist_ok=True)
    version = {"counter": 1, "stateVersion": 0, "timestamp": 1_700_000_000_000}
    text = json.dumps({"dataVersion": version, **table})
    (store / "config" / file).write_text(text)


def write_topics(store: Path, count: int) -> None:
    """That many topics."""
    kept = {
        topic(number): {
            "attributes": {},
            "order": False,
            "perm": 6,
            "readQueueNums": QUEUES,
            "topicFilterType": "SINGLE_TAG",
            "topicName": topic(number),
            "topicSysFlag": 0,
            "writeQueueNums": QUEUES,
        }
        for number in range(count)
    }
    write_table(store, "topics.json", topicConfigTable=kept)


def first_answer(server: Server, last: str) -> float:
    """Start a broker; after how many seconds it has answered its first request."""
    begin = time.monotonic()
    server.launch()
    assert server.process is not None
    while time.monotonic() - begin < READY_SECONDS and server.process.poll() is None:
        with contextlib.suppress(*NO_ANSWER):
            peer = Peer(server.port)
            answer = peer.ask(
                RequestCode.GET_MAX_OFFSET, {"topic": last, "queueId": "0"}
            )
            peer.close()
            if answer.code == ResponseCode.SUCCESS:
                return time.monotonic() - begin
        time.sleep(0.005)
    raise RuntimeError(f"the broker does not start:\n{server.log.read_text()[-3000:]}")


def send_to_all(port: int, topics: int) -> int:
    """Send a message to each queue of all topics; how many were not acknowledged."""
    frames = [
        send_frame(topic(number), queue)
        for number in range(topics)
        for queue in range(QUEUES)
    ]
    done = 0
    with contextlib.suppress(*NO_ANSWER):
        for answer in Peer(port).ask_all(frames):
            done += answer.code == ResponseCode.SUCCESS
    return len(frames) - done


def wrong_ends(port: int, topics: int, end: int) -> int:
    """How many queues do not hold that many messages."""
    frames = [
        encode(
            Command(
                RequestCode.GET_MAX_OFFSET,
                {"topic": topic(number), "queueId": str(queue)},
            )
        )
        for number in range(topics)
        for queue in range(QUEUES)
    ]
    ends = [(answer.ext or {}).get("offset") for answer in Peer(port).ask_all(frames)]
    return sum(each != str(end) for each in ends)


def not_served(port: int) -> int:
    """How many of some new connections, all open at once, get no answer."""
    served = 0
    with contextlib.ExitStack() as stack, contextlib.suppress(*NO_ANSWER):
        peers = [Peer(port, 5.0) for _ in range(NEW_CONNECTIONS)]
        for peer in peers:
            stack.callback(peer.close)
        for peer in peers:
            ext = {"topic": topic(0), "queueId": "0"}
            answer = peer.ask(RequestCode.GET_MAX_OFFSET, ext)
            served += answer.code == ResponseCode.SUCCESS
    return NEW_CONNECTIONS - served


def descriptors(scale: Scale) -> Iterator[Figure]:
    """Sends to more queues than a process may have files, and starts after them."""
    topics = scale.of(10_000, 300)
    cluster = Cluster()
    server, last = cluster.broker, topic(topics - 1)
    try:
        write_topics(cluster.store, topics)
        server.prefix = ["prlimit", "--nofile=1024:1024"]
        cluster.start()
        yield Figure("sends refused", send_to_all(server.port, topics), "", 0, True)
        unserved = not_served(server.port)
        yield Figure("new connections not served", unserved, "", 0, True)
        clean: list[float] = []
        killed: list[float] = []
        sends = 1
        for _ in range(scale.of(2, 1)):
            for how, starts in ((signal.SIGTERM, clean), (signal.SIGKILL, killed)):
                server.stop(how)
                starts.append(first_answer(server, last))
                sends += not send_to_all(server.port, topics)
        yield Figure("start to the first answer", min(clean), "s", 2)
        yield Figure("the same after kill -9", min(killed), "s", 4)
        wrong = wrong_ends(server.port, topics, sends)
        yield Figure("queues that end elsewhere", wrong, "", 0, True)
    finally:
        cluster.stop()
