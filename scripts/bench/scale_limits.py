"""Rows of scale.py: memory that clients take, and how late answers are."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Iterator
from functools import partial

from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.frames import encode
from scripts.bench.scale_tables import scrape, scrapes, write_topics
from scripts.lab.kit import Kit
from scripts.lab.peers import (
    Beside,
    Peer,
    create_topic,
    heartbeat,
    memory,
    pull_ext,
    send_frame,
    steady,
    waited,
)
from scripts.lab.rows import Figure
from scripts.lab.targets import Scale

TOPIC = "Large"

#: The longest body that brokers take is 4 MiB with all its record.
LARGE = bytes(4_000_000)

#: The steady load of the latency row.
SENDS = "-m send -c 8 -w 32 -r 5000 -b 128".split()

#: What fills the backlog of the tail row, and reads it; and what it is to show, in ms.
FULL = "-m send -c 8 -w 32 -b 128".split()
READS = "-m pull -n 32 -c 4 -w 4".split()
TAIL_MS = 20

#: How often each connection of the memory row has its turn, in seconds, and how many
#: bytes it moves then at the most; a slow reader reads less.
TICK_SECONDS = 0.02
SENT_AT_ONCE = 1 << 18
READ_AT_ONCE = 8192

#: When senders that have stopped half way go on, and when all must have ended.
PAUSE_SECONDS = 6.0
END_SECONDS = 90.0

#: It goes on for so many pauses at the least, for whoever is slow.
LEAST_PAUSES = 5


def narrow(port: int) -> Peer:
    """A connection for which the system keeps little that has come."""
    peer = Peer(port)
    peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    peer.socket.setblocking(False)
    return peer


class Sender:
    """An honest client on a bad line: its message stops half way and goes on later.

    @ivar outcome: what came of it: nothing yet, "stored", "refused" or "reset".
    """

    def __init__(self, port: int, frame: bytes) -> None:
        self._peer = narrow(port)
        self._rest = memoryview(frame)
        self._half = len(frame) // 2
        self.outcome = ""

    def turn(self, may_end: bool) -> None:
        """Move what can be moved."""
        if self.outcome:
            return
        stop = 0 if may_end else self._half
        several = self._rest[: max(0, min(SENT_AT_ONCE, len(self._rest) - stop))]
        try:
            with contextlib.suppress(BlockingIOError):
                if several:
                    self._rest = self._rest[self._peer.socket.send(several) :]
                for answer in self._peer.receive():
                    stored = answer.code == ResponseCode.SUCCESS
                    self.outcome = "stored" if stored else "refused"
        except OSError:
            self.outcome = "reset"


class Reader:
    """An honest client that pulls one message after the other and reads it slowly.

    @ivar outcome: nothing yet, or "reset".
    @ivar read: how many bytes.
    """

    def __init__(self, port: int) -> None:
        self._peer = narrow(port)
        ext = pull_ext(TOPIC, "slow", "TAG") | {"maxMsgNums": "1"}
        self._frame = encode(Command(RequestCode.PULL_MESSAGE, ext))
        self._peer.socket.sendall(self._frame)
        self._asked = 1
        self.outcome = ""
        self.read = 0

    def turn(self) -> None:
        """Read a little."""
        if self.outcome:
            return
        try:
            with contextlib.suppress(BlockingIOError):
                data = self._peer.socket.recv(READ_AT_ONCE)
                self.read += len(data)
                self.outcome = "" if data else "reset"
                if self.read > self._asked * len(LARGE):
                    self._peer.socket.sendall(self._frame)
                    self._asked += 1
        except OSError:
            self.outcome = "reset"


def outcomes(
    pid: int, senders: list[Sender], readers: list[Reader], pause: float
) -> float:
    """Let all of them go on until the senders are done; the highest resident memory
    without pages of files, in MiB."""
    begin = time.monotonic()
    highest = 0.0
    while time.monotonic() - begin < END_SECONDS:
        tick = time.monotonic()
        for sender in senders:
            sender.turn(tick - begin > pause)
        for reader in readers:
            reader.turn()
        highest = max(highest, memory(pid, "RssAnon"))
        late = time.monotonic() - begin > LEAST_PAUSES * pause
        if late and all(sender.outcome for sender in senders):
            break
        time.sleep(max(0.0, tick + TICK_SECONDS - time.monotonic()))
    return highest


def kept(scale: Scale) -> Iterator[Figure | str]:
    """Answers that nobody reads, frames that are not ended, and slow readers, at once;
    a light client beside them."""
    with scale.ours() as found:
        port = found.port
        create_topic(port, TOPIC, 1)
        create_topic(port, f"{TOPIC}-others")
        frame = send_frame(TOPIC, 0, LARGE)
        member = Peer(port)
        body = heartbeat("127.0.0.1@3", "slow", TOPIC)
        member.done(RequestCode.HEART_BEAT, {}, body)
        with contextlib.closing(Peer(port)) as peer:
            for _ in range(8):
                peer.socket.sendall(frame)
                assert peer.answer().code == ResponseCode.SUCCESS
        before = memory(found.pid, "VmHWM")
        with Beside(steady(found, f"{TOPIC}-others")) as beside:
            readers = [Reader(port) for _ in range(scale.of(40, 4))]
            # Nobody ever reads what these are answered.
            unread = [Reader(port) for _ in range(scale.of(400, 20))]
            senders = [Sender(port, frame) for _ in range(scale.of(160, 8))]
            pause = PAUSE_SECONDS if not scale.quick else 0.5
            highest = outcomes(found.pid, senders, readers, pause)
            used = memory(found.pid, "VmHWM")
            waits = beside.end()
        del unread
        honest = [each.outcome for each in senders]
        honest += [each.outcome for each in readers]
        yield Figure("highest resident memory", used, "MiB", 400)
        yield Figure("the same before", before, "MiB")
        yield Figure("without pages of files", highest, "MiB")
        yield Figure("honest clients reset", honest.count("reset"), "", 0, True)
        late = len(senders) - honest.count("stored")
        yield Figure("messages of theirs not stored", late, "", 0, True)
        starved = sum(not reader.read for reader in readers)
        yield Figure("slow readers that get nothing", starved, "")
        yield Figure("read by slow readers", sum(r.read for r in readers) / 1e6, "MB")
        yield from waited(waits)


def latency(scale: Scale) -> Iterator[Figure | str]:
    """Sends at a steady rate, ours and the Java broker's, one after the other."""
    if scale.kit is None:
        yield "left out: it needs --kit"
        return
    policy, priority = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        # The servers and the generator inherit it.
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        yield "without the scheduler's class FIFO: it is not permitted here"
    kit = Kit(scale.kit, scale.of(120, 2))
    tails = []
    try:
        for name, serving in (("", scale.ours()), ("Java: ", scale.java(scale.kit))):
            with serving as found:
                create_topic(found.port, "TopicTest")
                # Java compiles what it runs often.
                Kit(scale.kit, scale.of(30, 1)).figures(found.port, [found.pid], SENDS)
                figures = kit.figures(found.port, [found.pid], SENDS)
            tails.append(figures["p999_us"])
            for part in ("p50", "p99", "p999"):
                yield Figure(f"{name}{part}", figures[f"{part}_us"] / 1000, "ms")
            yield Figure(f"{name}sends a second", figures["messages_s"], "")
    finally:
        os.sched_setscheduler(0, policy, priority)
    yield Figure("p99.9 as a part of Java's", tails[0] / tails[1], "", 1)


def tail(scale: Scale) -> Iterator[Figure | str]:
    """Sends at a steady rate beside a backlog that is read, scrapes, and registrations
    of many topics: ours and the Java broker's."""
    if scale.kit is None:
        yield "left out: it needs --kit"
        return
    prepare = partial(write_topics, count=scale.of(10_000, 200))
    # The shortest that brokers take.
    often = {"registerNameServerPeriod": 10_000}
    kit = Kit(scale.kit, scale.of(60, 3))
    for name, serving in (
        ("", scale.ours(prepare, **often)),
        ("Java: ", scale.java(scale.kit, prepare, **often)),
    ):
        with serving as found, contextlib.ExitStack() as stack:
            create_topic(found.port, "TopicTest")
            full = Kit(scale.kit, scale.of(15, 1))
            filled = full.figures(found.port, [found.pid], FULL)["messages_s"]
            scrape(found.metrics)
            often_scraped = scrapes(found.metrics, scale.of(5, 1))
            beside = stack.enter_context(Beside(often_scraped))
            read = kit.begin(found.port, [found.pid], READS)
            figures = kit.figures(found.port, [found.pid], SENDS)
            yield Figure(f"{name}scrapes", len(beside.end()), "")
            rate = kit.end(read)["messages_s"]
        yield Figure(f"{name}to be read", filled * scale.of(15, 1), "messages")
        yield Figure(f"{name}read", rate, "/s")
        for part in ("p50", "p99", "p999"):
            bar = TAIL_MS if part == "p999" and not name else None
            yield Figure(f"{name}{part}", figures[f"{part}_us"] / 1000, "ms", bar)
        yield Figure(f"{name}sends a second", figures["messages_s"], "")
