"""The producer of replication.py, and what it notes of each send."""

from __future__ import annotations

import contextlib
import os
import select
import time
from bisect import bisect_left
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.frames import encode
from scripts.lab.peers import NO_ANSWER, Peer, Stopped, send_ext

TOPIC: Final = "Episodes"
QUEUES: Final = 4
BODY_BYTES: Final = 512

#: How many connections it has, and how many messages a second it sends.
CONNECTIONS: Final = 8
RATE: Final = 300.0

#: How often it tries to connect again, in seconds.
AGAIN: Final = 0.05

#: How often it looks for how long a processor was waited for.
LOOK: Final = 0.05

#: How long it waits for the last answers.
LAST_SECONDS: Final = 8.0


class Sent(NamedTuple):
    """One send.

    @ivar begin: when it was sent, on the monotonic clock.
    @ivar end: when it was answered, or its connection was lost.
    @ivar code: of the answer; None: there was none.
    """

    begin: float
    end: float
    code: int | None

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.end - self.begin


class Noted(NamedTuple):
    """All sends of one producer.

    @ivar sent: by number.
    @ivar silent: numbers of those that were not answered on a connection that lives.
    @ivar waits: at some times, for how many seconds the broker and the producer had
        waited for a processor until then.
    """

    sent: dict[int, Sent]
    silent: list[int]
    waits: list[tuple[float, float]]

    def waited(self, begin: float, end: float) -> float:
        """For how long a processor was waited for in this time."""
        if not self.waits:
            return 0.0
        times = [at for at, _ in self.waits]
        first = max(0, bisect_left(times, begin) - 1)
        last = min(len(times) - 1, bisect_left(times, end))
        # A broker that was killed begins anew.
        return max(0.0, self.waits[last][1] - self.waits[first][1])


class Producer:
    """Sends at a steady rate over several connections, and notes each answer."""

    def __init__(self, port: int, pid: int, first: int) -> None:
        """
        @param pid: the broker's process.
        @param first: the number of the first message.
        """
        self._port = port
        self._pids = pid, os.getpid()
        self._number = first
        self._peers: dict[Peer, dict[int, float]] = {}
        self._noted = Noted({}, [], [])
        self._looked = self._tried = 0.0

    def run(self, stopped: Stopped) -> Noted:
        """Send until it is told to end."""
        begin, offered = time.monotonic(), 0
        while not stopped():
            self._connect()
            while offered < (time.monotonic() - begin) * RATE:
                self._send(offered)
                offered += 1
            self._look(0.002)
        end = time.monotonic() + LAST_SECONDS
        while any(self._peers.values()) and time.monotonic() < end:
            self._look(0.01)
        for pending in self._peers.values():
            for number, at in pending.items():
                self._noted.silent.append(number)
                self._noted.sent[number] = Sent(at, time.monotonic(), None)
        return self._noted

    def _connect(self) -> None:
        now = time.monotonic()
        if len(self._peers) == CONNECTIONS or now < self._tried + AGAIN:
            return
        self._tried = now
        with contextlib.suppress(OSError):
            while len(self._peers) < CONNECTIONS:
                self._peers[Peer(self._port, 1.0)] = {}

    def _send(self, turn: int) -> None:
        if not self._peers:
            return
        peer, pending = [*self._peers.items()][turn % len(self._peers)]
        number, self._number = self._number, self._number + 1
        body = b"%016d" % number + b"x" * (BODY_BYTES - 16)
        ext = send_ext(TOPIC, number % QUEUES)
        frame = encode(Command(RequestCode.SEND_MESSAGE_V2, ext, body, opaque=number))
        pending[number] = time.monotonic()
        try:
            peer.socket.sendall(frame)
        except OSError:
            self._lost(peer)

    def _lost(self, peer: Peer) -> None:
        now = time.monotonic()
        for number, at in self._peers.pop(peer).items():
            self._noted.sent[number] = Sent(at, now, None)
        peer.close()

    def _look(self, seconds: float) -> None:
        """Take the answers that come in this time."""
        for peer in select.select([*self._peers], [], [], seconds)[0]:
            try:
                answers = peer.receive()
            except NO_ANSWER:
                self._lost(peer)
                continue
            now = time.monotonic()
            for answer in answers:
                if answer.is_response:
                    at = self._peers[peer].pop(answer.opaque)
                    self._noted.sent[answer.opaque] = Sent(at, now, answer.code)
        now = time.monotonic()
        if now >= self._looked + LOOK:
            self._looked = now
            self._noted.waits.append((now, sum(map(waited, self._pids))))


def waited(pid: int) -> float:
    """For how many seconds the main thread of a process has waited for a processor; 0
    if it has gone."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/schedstat").read_text()
    except OSError:
        return 0.0
    return int(text.split()[1]) / 1e9


def producing(port: int, pid: int, first: int) -> Callable[[Stopped], Noted]:
    """For a process beside; see L{Producer}."""

    def work(stopped: Stopped) -> Noted:
        return Producer(port, pid, first).run(stopped)

    return work
