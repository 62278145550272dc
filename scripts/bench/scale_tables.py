"""Rows of scale.py: many topics and groups."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.frames import encode
from scripts.lab.peers import (
    NO_ANSWER,
    Beside,
    Peer,
    Stopped,
    create_topic,
    memory,
    send_frame,
    steady,
    wait_for_route,
    waited,
)
from scripts.lab.rows import Figure
from scripts.lab.servers import READY_SECONDS, Cluster, Server
from scripts.lab.targets import Scale, target

QUEUES = 4

#: New connections that are tried while there are many files.
NEW_CONNECTIONS = 50

#: How long the tables are changed and looked at, and how often, in seconds.
TURNS_SECONDS = 60
CHANGE_SECONDS = 1.0
SCRAPE_SECONDS = 15.0

#: How long before nothing but the row's load happens, in seconds: the broker's longest
#: turns are those of the last two minutes at the most.
SETTLE_SECONDS = 70

#: How many of the broker's longest turns are shown.
SHOWN_TURNS = 8

#: The broker's longest turns by what ran.
LONGEST_TURN = re.compile(
    r'^rocketbroker_longest_turn_seconds\{(?:.*?,)?work="([^"]*)".*\} (\S+)$', re.M
)


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


def descriptors(scale: Scale) -> Iterator[Figure | str]:
    """Sends to more queues than a process may have files, and starts after them."""
    # Either way there are more queues than descriptors.
    topics, limit = scale.of(10_000, 80), scale.of(1024, 256)
    cluster = Cluster()
    server, last = cluster.broker, topic(topics - 1)
    try:
        write_topics(cluster.store, topics)
        server.prefix = ["prlimit", f"--nofile={limit}:{limit}"]
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


def start(scale: Scale) -> Iterator[Figure | str]:
    """A start with many topics in which there is no message."""
    topics = scale.of(50_000, 2_000)
    seconds, used = [], []
    for _ in range(scale.of(3, 1)):
        cluster = Cluster()
        try:
            write_topics(cluster.store, topics)
            cluster.namesrv.start()
            seconds.append(first_answer(cluster.broker, topic(topics - 1)))
            # With the first registration, which carries all of them.
            wait_for_route(cluster.namesrv.port, topic(topics - 1))
            used.append(memory(target(cluster).pid))
        finally:
            cluster.stop()
    yield Figure("start to the first answer", min(seconds), "s", 3)
    yield Figure("resident memory", min(used), "MiB", 120)


def write_groups(store: Path, count: int, topics: int) -> None:
    """That many groups, each with offsets of two topics."""
    groups = {
        f"scale-of-groups-{number:05}": {"groupName": f"scale-of-groups-{number:05}"}
        for number in range(count)
    }
    offsets = {
        f"{topic(other % topics)}@{name}": dict.fromkeys(range(QUEUES), 0)
        for number, name in enumerate(groups)
        for other in (number, number * 2 + 1)
    }
    write_table(store, "subscriptionGroup.json", subscriptionGroupTable=groups)
    write_table(store, "consumerOffset.json", offsetTable=offsets)


def changes(port: int, seconds: float) -> Callable[[Stopped], list[float]]:
    """One topic more each second; how long each took."""

    def work(stopped: Stopped) -> list[float]:
        waits: list[float] = []
        begin = time.monotonic()
        while not stopped():
            before = time.monotonic()
            create_topic(port, f"one-more-{len(waits)}")
            waits.append(time.monotonic() - before)
            time.sleep(max(0.0, begin + len(waits) * seconds - time.monotonic()))
        return waits

    return work


def scrape(port: int) -> str:
    """The text of one scrape."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as page:
        text: str = page.read().decode()
    return text


def scrapes(port: int, seconds: float) -> Callable[[Stopped], list[str]]:
    """What is scraped so often."""

    def work(stopped: Stopped) -> list[str]:
        texts: list[str] = []
        begin = time.monotonic()
        while not stopped():
            if time.monotonic() - begin >= len(texts) * seconds:
                texts.append(scrape(port))
            time.sleep(0.05)
        return texts

    return work


def turns(scale: Scale) -> Iterator[Figure | str]:
    """Tables that change and are looked at, and a light client meanwhile."""
    topics, groups = scale.of(10_000, 200), scale.of(5_000, 100)
    every = scale.of(100, 10) / 100
    cluster = Cluster()
    with contextlib.ExitStack() as stack:
        stack.callback(cluster.stop)
        write_topics(cluster.store, topics)
        write_groups(cluster.store, groups, topics)
        cluster.start()
        port, metrics = cluster.broker.port, cluster.broker_metrics
        # So that there is a lag.
        send_to_all(port, topics // 10)
        # The first scrape of all loads modules, and takes longer than any other.
        scrape(metrics)
        time.sleep(scale.of(SETTLE_SECONDS, 1))
        beside = [
            stack.enter_context(Beside(work))
            for work in (
                steady(target(cluster), topic(0)),
                changes(port, CHANGE_SECONDS * every),
                scrapes(metrics, SCRAPE_SECONDS * every),
            )
        ]
        time.sleep(TURNS_SECONDS * every / scale.of(1, 3))
        waits, changed, texts = (each.end() for each in beside)
        last = scrape(metrics)
    yield from waited(waits, 20)
    yield Figure("longest change of a topic", max(changed) * 1000, "ms")
    yield Figure("size of a scrape", max(map(len, texts)) / (1 << 20), "MiB")
    found = [(float(value), name) for name, value in LONGEST_TURN.findall(last)]
    for value, name in sorted(found, reverse=True)[:SHOWN_TURNS]:
        yield Figure(f"longest turn, {name}", value * 1000, "ms", 20)
