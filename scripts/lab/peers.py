"""What scripts load servers with, and how they look at them.

A connection is a plain socket; whoever has to be steady beside a load runs in a process
of its own.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import select
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rocketbroker.errors import RocketbrokerError
from rocketbroker.records.batches import encode as batch
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.connection import Connection
from rocketbroker.wire.frames import MAX_BYTES, encode
from scripts.lab.rows import Figure
from scripts.lab.servers import READY_SECONDS, Cluster

#: A light client sends so often, in seconds.
STEADY_SECONDS = 0.002

#: How many requests are under way on a connection that asks many.
WINDOW = 200

BODY = b"x" * 128

#: What a client raises without an answer.
NO_ANSWER = (OSError, RocketbrokerError)

#: Whether a process beside has to end.
Stopped = Callable[[], bool]


class Target(NamedTuple):
    """A broker that is up: where it is, and its process.

    @ivar metrics: the port of its metrics.
    """

    port: int
    pid: int
    cluster: Cluster | None = None
    metrics: int = 0


class Peer:
    """One connection.

    @ivar socket: it blocks.
    """

    def __init__(self, port: int, seconds: float = 60.0) -> None:
        """
        @param seconds: how long it waits for anything.
        """
        self.socket = socket.create_connection(("127.0.0.1", port), seconds)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._incoming = Connection(MAX_BYTES)
        self._come: deque[Command] = deque()

    def fileno(self) -> int:
        """For C{select}."""
        return self.socket.fileno()

    def receive(self) -> list[Command]:
        """What comes next: answers and requests.

        @raise OSError: the server has closed it, or is silent.
        """
        data = self.socket.recv(1 << 18)
        if not data:
            raise ConnectionResetError("the server closed it")
        return self._incoming.receive(data)

    def answer(self) -> Command:
        """The next answer; raises as L{receive}."""
        while not self._come:
            self._come.extend(c for c in self.receive() if c.is_response)
        return self._come.popleft()

    def ask(self, code: int, ext: dict[str, str], body: bytes = b"") -> Command:
        """The answer to a request."""
        self.socket.sendall(encode(Command(code, ext, body)))
        return self.answer()

    def done(self, code: int, ext: dict[str, str], body: bytes = b"") -> Command:
        """The answer to a request that has to succeed."""
        answer = self.ask(code, ext, body)
        if answer.code != ResponseCode.SUCCESS:
            raise RuntimeError(f"request {code}: {answer.code}: {answer.remark}")
        return answer

    def ask_all(self, frames: Sequence[bytes]) -> Iterator[Command]:
        """The answers to many requests, some of which are always under way."""
        for at in range(0, len(frames), WINDOW):
            several = frames[at : at + WINDOW]
            self.socket.sendall(b"".join(several))
            for _ in several:
                yield self.answer()

    def close(self) -> None:
        """Close it."""
        self.socket.close()


def send_frame(topic: str, queue: int = 0, body: bytes = BODY) -> bytes:
    """A send of one message."""
    return encode(Command(RequestCode.SEND_MESSAGE_V2, send_ext(topic, queue), body))


def send_ext(topic: str, queue: int = 0, batch: str = "false") -> dict[str, str]:
    """The fields of a send."""
    return {
        "a": "scale",
        "b": topic,
        "c": "TBW102",
        "d": "4",
        "e": str(queue),
        "f": "0",
        "g": "1700000000000",
        "h": "0",
        "i": "WAIT\x01true\x02",
        "j": "0",
        "k": "false",
        "m": batch,
    }


def pull_ext(topic: str, group: str, kind: str, offset: int = 0) -> dict[str, str]:
    """The fields of a pull of 32 messages of queue 0 that is not held.

    @param kind: of the group's subscription: TAG or SQL92.
    """
    return {
        "consumerGroup": group,
        "topic": topic,
        "queueId": "0",
        "queueOffset": str(offset),
        "maxMsgNums": "32",
        "sysFlag": "0",
        "commitOffset": "0",
        "suspendTimeoutMillis": "0",
        "subscription": "*",
        "subVersion": "7",
        "expressionType": kind,
    }


def heartbeat(client: str, group: str, topic: str, expression: str = "*") -> bytes:
    """The body of a heartbeat as the Java client sends it, with a consumer's group."""

    def subscription(topic: str, expression: str) -> dict[str, object]:
        kind = "TAG" if expression == "*" else "SQL92"
        wants: dict[str, object] = {"topic": topic, "subString": expression}
        wants |= {"subVersion": 7, "expressionType": kind, "classFilterMode": False}
        return {"codeSet": [], "tagsSet": [], **wants}

    wanted = [subscription(topic, expression), subscription(f"%RETRY%{group}", "*")]
    member = {
        "groupName": group,
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
        "subscriptionDataSet": wanted,
        "unitMode": False,
    }
    return json.dumps(
        {
            "clientID": client,
            "consumerDataSet": [member],
            "heartbeatFingerprint": 0,
            "producerDataSet": [{"groupName": "CLIENT_INNER_PRODUCER"}],
            "withoutSub": False,
        }
    ).encode()


def create_topic(port: int, topic: str, queues: int = 4) -> None:
    """Make a topic."""
    ext = {
        "topic": topic,
        "defaultTopic": "TBW102",
        "readQueueNums": str(queues),
        "writeQueueNums": str(queues),
        "perm": "6",
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": "0",
        "order": "false",
    }
    peer = Peer(port)
    peer.done(RequestCode.UPDATE_AND_CREATE_TOPIC, ext)
    peer.close()


def fill(port: int, topic: str, count: int) -> None:
    """Send messages to queue 0, each with a property C{a} of 0 to 99."""
    parts = [(0, BODY, b"a\x01%d\x02" % (number % 100)) for number in range(100)]
    ext = send_ext(topic, batch="true")
    frame = encode(Command(RequestCode.SEND_BATCH_MESSAGE, ext, batch(parts)))
    peer = Peer(port)
    stored = 0
    while stored < count // 100:
        # The Java broker refuses what has waited for 200 ms.
        for answer in peer.ask_all([frame] * (count // 100 - stored)):
            stored += answer.code == ResponseCode.SUCCESS
    peer.close()


def cpu(pid: int) -> float:
    """The CPU time of a process and its children until now, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    own = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return own + sum(cpu(child) for child in children(pid))


def children(pid: int) -> list[int]:
    """The processes that a process has started: the workers of a broker."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split()]


def memory(pid: int, field: str = "VmRSS") -> float:
    """A line of C{/proc/PID/status}, in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise KeyError(field)


def percentile(values: Sequence[float], part: float) -> float:
    """Not more than this are C{part} of the values."""
    return sorted(values)[min(int(len(values) * part), len(values) - 1)]


class Beside:
    """A function in a process of its own, until it is told to end; it is killed with
    the end of the context.
    """

    def __init__(self, work: Callable[[Stopped], Any]) -> None:
        context = multiprocessing.get_context("fork")
        self._pipe, far = context.Pipe()
        self._process = context.Process(target=self._run, args=(work, far))
        self._process.start()
        far.close()

    def _run(self, work: Callable[[Stopped], Any], far: Any) -> None:
        self._pipe.close()
        try:
            far.send(work(far.poll))
        except BaseException as error:
            far.send(error)
            sys.exit(1)

    def end(self) -> Any:
        """Tell it, and take what it has found."""
        with contextlib.suppress(OSError):
            self._pipe.send(None)
        found = self._pipe.recv()
        self._process.join()
        if isinstance(found, BaseException):
            raise found
        return found

    def __enter__(self) -> Beside:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()


class Wait(NamedTuple):
    """One send of a light client.

    @ivar seconds: until the answer was there.
    @ivar ours: of those, the ones for which neither the broker's thread nor the client
        waited for a processor that something else on the machine had.
    """

    seconds: float
    ours: float


def steady(target: Target, topic: str) -> Callable[[Stopped], list[Wait]]:
    """A light client: how long each of its sends took.

    @raise RuntimeError: a send was refused.
    """
    frame = send_frame(topic)

    def work(stopped: Stopped) -> list[Wait]:
        peer = Peer(target.port)
        waits: list[Wait] = []
        files = [
            os.open(f"/proc/{pid}/task/{pid}/schedstat", os.O_RDONLY)
            for pid in (target.pid, os.getpid())
        ]

        def runnable() -> float:
            """For how long both wanted a processor until now."""
            return sum(int(os.pread(file, 99, 0).split()[1]) for file in files) / 1e9

        while not stopped():
            before, begin = runnable(), time.monotonic()
            peer.socket.sendall(frame)
            answer = peer.answer()
            seconds = time.monotonic() - begin
            waits.append(Wait(seconds, max(0.0, seconds - runnable() + before)))
            if answer.code != ResponseCode.SUCCESS:
                raise RuntimeError(f"a send was refused: {answer.remark}")
            time.sleep(max(0.0, begin + STEADY_SECONDS - time.monotonic()))
        return waits

    return work


def waited(
    waits: Sequence[Wait], bar: float | None = None, p99: float | None = None
) -> list[Figure]:
    """The figures of a light client.

    @param bar: for the longest wait, in ms.
    @param p99: for that of 99 % of its sends.
    """
    seconds, ours = zip(*waits, strict=True)
    longest = "longest wait of a light client"
    return [
        Figure(f"{longest}, with a processor", max(ours) * 1000, "ms", bar),
        Figure(longest, max(seconds) * 1000, "ms"),
        Figure("its p99", percentile(seconds, 0.99) * 1000, "ms", p99),
    ]


def offered(port: int, topic: str, rate: float) -> Callable[[Stopped], float]:
    """Eight clients that send so often together, each one message at a time: how many
    a second were acknowledged."""
    frame = send_frame(topic)

    def work(stopped: Stopped) -> float:
        idle = deque(Peer(port) for _ in range(8))
        busy: list[Peer] = []
        begin = time.monotonic()
        sent = done = 0
        while not stopped():
            due = int((time.monotonic() - begin) * rate)
            while sent < due and idle:
                peer = idle.popleft()
                peer.socket.sendall(frame)
                busy.append(peer)
                sent += 1
            for peer in select.select(busy, [], [], 1 / rate)[0]:
                assert peer.answer().code == ResponseCode.SUCCESS
                busy.remove(peer)
                idle.append(peer)
                done += 1
        return done / (time.monotonic() - begin)

    return work


def wait_for(what: Callable[[], bool], seconds: float = READY_SECONDS) -> bool:
    """Look again and again; whether it has come."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.005)
    return False


def wait_for_route(port: int, name: str) -> None:
    """Wait until a name server has a topic's route."""
    with contextlib.closing(Peer(port)) as peer:

        def is_there() -> bool:
            answer = peer.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": name})
            return answer.code == ResponseCode.SUCCESS

        if not wait_for(is_there):
            raise RuntimeError(f"{name} is not registered in {READY_SECONDS:.0f} s")
