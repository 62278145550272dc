"""The producers of overload.py: all in one process, one connection for each."""

from __future__ import annotations

import contextlib
import select
import time
from collections.abc import Callable
from typing import NamedTuple

from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.frames import encode
from scripts.lab.peers import Peer, Stopped, send_ext

TOPIC = "Overload"
QUEUES = 4

PRODUCERS = 64
BODY_BYTES = 4096

#: So many requests of a producer are under way while it is not under pressure.
WINDOW = 8

#: How much more than the broker can take is offered.
PRESSURE = 3

#: Clients wait so long, in seconds.
TIMEOUT = 3.0


class Phase(NamedTuple):
    """A time of the load.

    @ivar rate: sends a second that are offered; None: each producer has its window.
    """

    seconds: float
    rate: float | None


class Sent(NamedTuple):
    """What became of one send.

    @ivar at: when it was offered, since the begin.
    @ivar seconds: until its answer; None: there was none.
    @ivar code: of the answer.
    @ivar stage: of a refusal: its token and the stage that was slow.
    """

    at: float
    seconds: float | None
    code: int
    stage: str


class Producer:
    """One connection, which does not wait for anything."""

    def __init__(self, port: int) -> None:
        self.peer = Peer(port)
        self.peer.socket.setblocking(False)
        self.under_way = 0
        self._out = bytearray()

    def fileno(self) -> int:
        """For C{select}."""
        return self.peer.fileno()

    def offer(self, number: int) -> None:
        """Send one message, as far as the socket takes it."""
        body = b"%016d" % number + b"x" * (BODY_BYTES - 16)
        ext = send_ext(TOPIC, number % QUEUES)
        command = Command(RequestCode.SEND_MESSAGE_V2, ext, body, opaque=number)
        self._out += encode(command)
        self.under_way += 1
        self.push()

    def push(self) -> None:
        """Give the socket what it takes."""
        with contextlib.suppress(BlockingIOError):
            while self._out:
                del self._out[: self.peer.socket.send(self._out[: 1 << 18])]


class Outcome(NamedTuple):
    """What became of all sends.

    @ivar sent: by their numbers.
    @ivar capacity: how many a second were acknowledged before the pressure.
    """

    sent: dict[int, Sent]
    capacity: float

    def acknowledged(self, begin: float, end: float) -> int:
        """How many were, in this time."""
        return acknowledged(self.sent, begin, end)


class Load:
    """The sends of all producers.

    @ivar sent: by their numbers.
    """

    def __init__(self, port: int) -> None:
        self.sent: dict[int, Sent] = {}
        self._begin = time.monotonic()
        self._producers = [Producer(port) for _ in range(PRODUCERS)]

    def run(self, phase: Phase) -> None:
        """Offer for so long."""
        begin, offered = time.monotonic(), 0
        while (now := time.monotonic()) < begin + phase.seconds:
            if phase.rate is None:
                for producer in self._producers:
                    while producer.under_way < WINDOW:
                        self._offer(producer)
            else:
                while offered < (now - begin) * phase.rate:
                    self._offer(self._producers[offered % PRODUCERS])
                    offered += 1
            self.look(0.002)

    def _offer(self, producer: Producer) -> None:
        number = len(self.sent)
        at = time.monotonic() - self._begin
        self.sent[number] = Sent(at, None, -1, "")
        producer.offer(number)

    def look(self, seconds: float) -> None:
        """Take the answers that come in this time."""
        for producer in select.select(self._producers, [], [], seconds)[0]:
            for answer in producer.peer.receive():
                if not answer.is_response:
                    continue
                producer.under_way -= 1
                at = self.sent[answer.opaque].at
                took = time.monotonic() - self._begin - at
                words = stage_of(answer.remark or "")
                self.sent[answer.opaque] = Sent(at, took, answer.code, words)
        for producer in self._producers:
            producer.push()

    def finish(self) -> None:
        """Wait for the last answers."""
        end = time.monotonic() + 3 * TIMEOUT
        while any(p.under_way for p in self._producers) and time.monotonic() < end:
            self.look(0.1)


def acknowledged(sent: dict[int, Sent], begin: float, end: float) -> int:
    """How many sends were acknowledged in this time."""
    return sum(
        each.seconds is not None
        and each.code == 0
        and begin <= each.at + each.seconds < end
        for each in sent.values()
    )


def stage_of(remark: str) -> str:
    """The token of a refusal, and the stage that was slow, if it is told."""
    token = remark.partition("]")[0].lstrip("[") if remark.startswith("[") else ""
    stage = remark.partition("slow stage: ")[2].partition(",")[0]
    return f"{token} {stage}".strip()


def pressed(port: int, seconds: float) -> Callable[[Stopped], Outcome]:
    """All three phases: half of the time, all of it, half of it."""

    def work(_: Stopped) -> Outcome:
        load = Load(port)
        load.run(Phase(seconds / 2, None))
        quarter = seconds / 4
        capacity = acknowledged(load.sent, quarter, 2 * quarter) / quarter
        load.run(Phase(seconds, capacity * PRESSURE))
        load.run(Phase(seconds / 2, None))
        load.finish()
        return Outcome(load.sent, capacity)

    return work
