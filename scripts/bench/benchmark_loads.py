"""The loads of benchmark.py."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

from rocketbroker.records.batches import encode as batch
from rocketbroker.records.record import decode_all
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.frames import encode
from scripts.lab.kit import SEND, Kit
from scripts.lab.peers import (
    BODY,
    Peer,
    create_topic,
    percentile,
    pull_ext,
    send_ext,
    wait_for,
)

#: The topic of the load generator.
TOPIC = "TopicTest"

#: How many topics, idle connections and messages to filter there are.
TOPICS = 1000
IDLE = 10_000
FILTERED = 320_000

#: One message of so many passes a filter.
PASSING = 100
FILTERS = ("TAG", "yes"), ("SQL92", "a = 0")

#: So many messages a pull goes through at most, as in RocketMQ.
SCANNED = 800
FOUND = SCANNED // PASSING

#: How many requests of one connection are under way in a load of Python.
WINDOW = 32
CONNECTIONS = 8

#: The rate of sends beside which a backlog is read, a second.
STEADY = 5000


class Sample(NamedTuple):
    """What one load showed of one server.

    @ivar cost: microseconds of CPU a message, of all processes of the server.
    @ivar rate: messages a second.
    @ivar latencies: of requests, in ms: what half of them took at most, 99 of 100, and
        999 of 1000.
    """

    cost: float
    rate: float
    latencies: tuple[float, float, float]


class Bench(NamedTuple):
    """One server under load.

    @ivar pid: its first process.
    """

    kit: Kit
    seconds: float
    port: int
    pid: int

    def load(self, words: Sequence[str]) -> Sample:
        """A load of the generator."""
        return sample(self.kit.figures(self.port, family(self.pid), list(words)))

    def begin(self, words: Sequence[str]) -> subprocess.Popen[str]:
        """Start such a load."""
        return self.kit.begin(self.port, family(self.pid), list(words))

    def volleys(self, blocks: Sequence[bytes], messages: int) -> Sample:
        """Blocks of L{WINDOW} requests each, over some connections, again and again.

        @param messages: how many the answers to one block are of.
        """
        peers = [Peer(self.port) for _ in range(CONNECTIONS)]
        try:
            shots = cycle(blocks)
            shoot(peers, shots, 1.0)
            before, begun = cpu_seconds(self.pid), time.monotonic()
            took = shoot(peers, shots, self.seconds)
            passed = time.monotonic() - begun
            count = len(took) * messages
            cost = (cpu_seconds(self.pid) - before) / count * 1e6
        finally:
            for peer in peers:
                peer.close()
        parts = [percentile(took, part) * 1000 for part in (0.5, 0.99, 0.999)]
        return Sample(cost, count / passed, (parts[0], parts[1], parts[2]))


class Load(NamedTuple):
    """One row.

    @ivar server: how messages reach the disk, and of ours the workers.
    @ivar bars: the most it may cost, pure and compiled, as multiples of the yardstick
        at C{against}; that is the load itself if the yardstick bears it.
    """

    name: str
    measure: Callable[[Bench], Sample]
    server: str = "ASYNC_FLUSH"
    bars: tuple[float, float] | None = None
    against: str = ""
    prepare: Callable[[Bench], None] | None = None


def sample(found: dict[str, Any]) -> Sample:
    """What the load generator printed."""
    p50, p99, p999 = (found[f"{name}_us"] / 1000 for name in ("p50", "p99", "p999"))
    cost = found["server_us_per_message"]
    return Sample(cost, found["messages_s"], (p50, p99, p999))


def family(pid: int) -> list[int]:
    """A process and all that it has started."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            for child in (task / "children").read_text().split():
                found += family(int(child))
    return found


def cpu_seconds(pid: int) -> float:
    """The CPU that a process and all that it has started have used."""
    total = 0
    for each in family(pid):
        for task in Path(f"/proc/{each}/task").iterdir():
            with contextlib.suppress(OSError):
                total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def shoot(peers: list[Peer], blocks: Iterator[bytes], seconds: float) -> list[float]:
    """Send a block over each connection, and the next when it is answered.

    @return: how long each block took, in seconds.
    """
    took, end = [], time.monotonic() + seconds
    waiting = {peer.fileno(): Volley(peer) for peer in peers}
    for volley in waiting.values():
        volley.fire(next(blocks))
    while waiting:
        for descriptor in select.select(list(waiting), [], [], 20.0)[0]:
            volley = waiting[descriptor]
            if not volley.receive():
                continue
            now = time.monotonic()
            took.append(now - volley.fired)
            if now < end:
                volley.fire(next(blocks))
            else:
                del waiting[descriptor]
    return took


class Volley:
    """The answers that one connection still waits for.

    @ivar fired: when the block was sent.
    """

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._buffer = b""
        self._left = 0
        self.fired = 0.0

    def fire(self, block: bytes) -> None:
        """Send a block."""
        self.fired = time.monotonic()
        self._left = WINDOW
        self._peer.socket.sendall(block)

    def receive(self) -> bool:
        """Count what has come; whether it was the last of the block.

        @raise ConnectionResetError: the server has closed it.
        @raise RuntimeError: it refuses a request.
        """
        data = self._peer.socket.recv(1 << 18)
        if not data:
            raise ConnectionResetError("the server closed it")
        data, at = self._buffer + data, 0
        while at + 4 <= len(data):
            end = at + 4 + int.from_bytes(data[at : at + 4], "big")
            if end > len(data):
                break
            header = data[
                at + 8 : at + 8 + int.from_bytes(data[at + 5 : at + 8], "big")
            ]
            if b'"code":0,' not in header:
                raise RuntimeError(header)
            at = end
            self._left -= 1
        self._buffer = data[at:]
        return self._left == 0


def mixed(bench: Bench) -> Sample:
    """Sends and pulls at once, each as in a row of its own."""
    send, pull = bench.begin(SENDS["8x32"]), bench.begin(PULL)
    sent, pulled = bench.kit.end(send), bench.kit.end(pull)
    rate = sent["messages_s"] + pulled["messages_s"]
    return Sample(sent["server_cpus"] / rate * 1e6, rate, sample(sent).latencies)


def many_topics(bench: Bench) -> Sample:
    """Sends to a thousand topics in turn."""
    frames = []
    for number in range(TOPICS):
        # Official clients give each message a key.
        ext = send_ext(f"Many{number}")
        ext["i"] = f"UNIQ_KEY\x01{number:032X}\x02{ext['i']}"
        frames.append(encode(Command(RequestCode.SEND_MESSAGE_V2, ext, BODY)))
    frames += frames[: WINDOW - TOPICS % WINDOW]
    starts = range(0, len(frames), WINDOW)
    blocks = [b"".join(frames[start : start + WINDOW]) for start in starts]
    return bench.volleys(blocks, WINDOW)


def make_topics(bench: Bench) -> None:
    """Make them."""
    for number in range(TOPICS):
        create_topic(bench.port, f"Many{number}")


def idle(bench: Bench) -> Sample:
    """Sends beside ten thousand connections over which nothing comes."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, IDLE * 2), hard))
    with contextlib.ExitStack() as stack:
        for _ in range(IDLE):
            address = ("127.0.0.1", bench.port)
            stack.enter_context(socket.create_connection(address, 20.0))
        return bench.load(SENDS["8x32"])


def backlog(bench: Bench) -> Sample:
    """Steady sends beside a read of what is not in memory, as far as that can be."""
    with contextlib.suppress(OSError):
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("1")
    read = bench.begin(PULL)
    send = bench.begin([*SENDS["8x32"], "-r", str(STEADY)])
    sent, pulled = bench.kit.end(send), bench.kit.end(read)
    rate = sent["messages_s"] + pulled["messages_s"]
    return Sample(sent["server_cpus"] / rate * 1e6, rate, sample(sent).latencies)


def end_of(peer: Peer, topic: str) -> int:
    """How many messages queue 0 of a topic has had."""
    queue = {"topic": topic, "queueId": "0"}
    answer = peer.done(RequestCode.GET_MAX_OFFSET, queue)
    return int((answer.ext or {})["offset"])


def fill(bench: Bench) -> None:
    """Messages of the load generator, unless there are some."""
    create_topic(bench.port, TOPIC)
    peer = Peer(bench.port)
    is_empty = not end_of(peer, TOPIC)
    peer.close()
    if is_empty:
        bench.load(SENDS["8x32"])


def fill_filtered(bench: Bench) -> None:
    """Messages of which one in a hundred has the tag and the number, unless they are
    there."""
    create_topic(bench.port, "Filtered")
    own = [b"TAGS\x01%s\x02a\x01%d\x02" % (b"no", n) for n in range(1, PASSING)]
    own.insert(0, b"TAGS\x01yes\x02a\x010\x02")
    body = batch([(0, BODY, each) for each in own])
    ext = send_ext("Filtered", batch="true")
    frame = encode(Command(RequestCode.SEND_BATCH_MESSAGE, ext, body))
    peer = Peer(bench.port)

    def there() -> int:
        return end_of(peer, "Filtered")

    for answer in peer.ask_all([frame] * ((FILTERED - there()) // PASSING)):
        if answer.code:
            raise RuntimeError(f"{answer.code}: {answer.remark}")
    if not wait_for(lambda: there() == FILTERED):
        raise RuntimeError(f"{there()} of {FILTERED} messages can be pulled")
    for kind, expression in FILTERS:
        answer = peer.done(RequestCode.PULL_MESSAGE, filter_ext(kind, expression, 0))
        found = len([*decode_all(answer.body)])
        if found != FOUND:
            raise RuntimeError(f"{found} messages pass {expression}")
    peer.close()


def filter_ext(kind: str, expression: str, start: int) -> dict[str, str]:
    """The fields of a pull that brings its subscription along."""
    ext = pull_ext("Filtered", "Filtering", kind, start)
    return {**ext, "subscription": expression, "sysFlag": "4"}


def filtered(kind: str, expression: str) -> Callable[[Bench], Sample]:
    """Pulls with a filter; what counts are the messages that it lets through."""

    def measure(bench: Bench) -> Sample:
        frames = []
        for start in range(0, FILTERED, SCANNED):
            ext = filter_ext(kind, expression, start)
            frames.append(encode(Command(RequestCode.PULL_MESSAGE, ext)))
        shots = cycle(frames)
        blocks = [b"".join(next(shots) for _ in range(WINDOW)) for _ in frames]
        return bench.volleys(blocks, WINDOW * FOUND)

    return measure


def generator(words: Sequence[str]) -> Callable[[Bench], Sample]:
    """A load of the generator."""
    return lambda bench: bench.load(words)


SENDS = {
    f"{shape}{'' if size == 128 else f' of {size} bytes'}": [
        *SEND[:-1],
        str(size),
        *("-c", shape.partition("x")[0], "-w", shape.partition("x")[2]),
    ]
    for size in (128, 1024)
    for shape in ("8x32", "64x1", "1x1", "32x32")
}
PULL = "-m pull -n 32 -c 4 -w 4 -M 50000".split()
BATCH = "-m batch -n 32 -c 4 -w 8 -b 128".split()

#: Servers of ours with workers, from one on.
WORKERS = "ASYNC_FLUSH, workers 1", "ASYNC_FLUSH, workers 2"


def with_workers(name: str, server: str) -> list[Load]:
    """The loads of a server with workers."""
    tags, sql = (filtered(*each) for each in FILTERS)
    return [
        Load(f"send 8x32, {name}", generator(SENDS["8x32"]), server),
        Load(f"send 64x1, {name}", generator(SENDS["64x1"]), server),
        Load(f"batch of 32, {name}", generator(BATCH), server),
        Load(f"pull of 32, {name}", generator(PULL), server, prepare=fill),
        Load(f"tag filter, {name}", tags, server, prepare=fill_filtered),
        Load(f"SQL filter, {name}", sql, server, prepare=fill_filtered),
    ]


FAST, SLOW = "send 8x32", "send 64x1"
LOADS: list[Load] = [
    Load(FAST, generator(SENDS["8x32"]), bars=(5.0, 3.3), against=FAST),
    Load(SLOW, generator(SENDS["64x1"]), bars=(2.4, 2.0), against=SLOW),
    *(
        Load(f"send {shape}", generator(SENDS[shape]), against=f"send {shape}")
        for shape in (
            *("1x1", "8x32 of 1024 bytes", "64x1 of 1024 bytes"),
            "1x1 of 1024 bytes",
        )
    ),
    Load("batch of 32", generator(BATCH), bars=(2.5, 1.5), against=FAST),
    Load(
        "pull of 32",
        generator(PULL),
        bars=(0.38, 0.3),
        against=FAST,
        prepare=fill,
    ),
    Load("send 8x32 and pull", mixed),
    Load("1,000 topics", many_topics, prepare=make_topics),
    Load("10,000 idle, send 8x32", idle),
    Load("backlog, 5,000 sends/s", backlog),
    Load("tag filter, 1 % passes", filtered(*FILTERS[0]), prepare=fill_filtered),
    Load("SQL filter, 1 % passes", filtered(*FILTERS[1]), prepare=fill_filtered),
    *(
        Load(f"send {shape}, SYNC_FLUSH", generator(SENDS[shape]), "SYNC_FLUSH")
        for shape in ("1x1", "64x1", "32x32")
    ),
    *(
        load
        for number, server in enumerate(WORKERS, 1)
        for load in with_workers(f"workers {number}", server)
    ),
]
