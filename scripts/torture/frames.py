#!/usr/bin/env python3
"""Frames changed at random at a server: nothing breaks, and nobody else waits.

    python3 scripts/torture/frames.py [--server broker|namesrv] [--workers N]
        [--frames 1000000] [--seed 1] [--connections 32] [--turn SECONDS] [--rss MIB]

Real requests of all codes, with bits flipped, cut off, spliced, with other lengths,
keys and values (mutated_frames.py), come on many connections, a few on each. A
client beside them, the canary, asks for the route of its topic, sends and pulls all the
time. In the end each message that was acknowledged to it must have been read.

Exit status 1 if a log has a traceback, a process of the servers has ended, the canary
had no answer for 10 s or lost a message, one turn took longer than --turn, or a process
needs more memory than --rss.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import random
import re
import select
import socket
import struct
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from threading import Lock, Thread

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.lab.inside import enter

if __name__ == "__main__":
    enter(__file__)

from rocketbroker.auth.signatures import Credentials
from rocketbroker.blocking.client import Client
from rocketbroker.blocking.messages import Message
from rocketbroker.blocking.producer import Producer
from rocketbroker.blocking.puller import Puller, messages
from rocketbroker.blocking.settings import Settings
from rocketbroker.errors import RocketbrokerError
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.frames import decode, encode
from scripts.lab.peers import wait_for
from scripts.lab.servers import Cluster, Server, is_there, workers_of
from scripts.torture.mutated_frames import Frames

#: So many frames come on one connection at the most.
BURST = 20

#: How long the canary may be without an answer.
STUCK_SECONDS = 10.0

#: Messages the canary sends between two reads.
PER_READ = 20

#: How long the servers may take to answer a burst; the next one comes then.
BURST_SECONDS = 2.0

#: What the last request of a burst is told by.
LAST_OPAQUE = 0x5EA1ED

#: How often progress is told, in seconds.
PERIOD = 5.0

TRACEBACK = "Traceback (most recent call last)"


class Attack:
    """Threads that send frames.

    @ivar frames: what they send.
    @ivar sent: how many frames they have sent.
    @ivar closed: how often the server closed a connection before all was answered.
    """

    def __init__(self, port: int, frames: Frames, count: int, connections: int) -> None:
        self.frames = frames
        self.sent = 0
        self.closed = 0
        self._port = port
        self._count = count
        self._lock = Lock()
        self._last = encode(
            Command(RequestCode.GET_CLIENT_CONFIG, {}, opaque=LAST_OPAQUE)
        )
        self._threads = [
            Thread(target=self._run, daemon=True) for _ in range(connections)
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def is_over(self) -> bool:
        """Whether all frames have been sent."""
        return not any(thread.is_alive() for thread in self._threads)

    def stop(self) -> None:
        """Send no more."""
        with self._lock:
            self._count = 0
        for thread in self._threads:
            thread.join(2 * BURST_SECONDS)

    def _run(self) -> None:
        while True:
            with self._lock:
                if self.sent >= self._count:
                    return
                burst = self.frames.burst(min(BURST, self._count - self.sent))
                self.sent += len(burst)
            # The server may close it, or refuse it, at any time.
            with contextlib.suppress(OSError):
                self._send(burst)

    def _send(self, burst: list[bytes]) -> None:
        address = "127.0.0.1", self._port
        with socket.create_connection(address, BURST_SECONDS) as sock:
            sock.sendall(b"".join(burst) + self._last)
            mark, tail = b'"opaque":%d' % LAST_OPAQUE, b""
            end = time.monotonic() + BURST_SECONDS / 10
            while mark not in tail and time.monotonic() < end:
                sock.settimeout(BURST_SECONDS / 10)
                data = sock.recv(1 << 16)
                if not data:
                    self.closed += 1
                    break
                tail = tail[-len(mark) :] + data
            # Nothing of it stays: there would be no ports left.
            linger = struct.pack("ii", 1, 0)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)


class Canary:
    """A client that sends and reads all the time.

    @ivar acknowledged: what it has sent.
    @ivar read: what it has read.
    @ivar worst: the longest time without an answer, in seconds.
    @ivar wrong: why it does not go on.
    """

    def __init__(
        self, names: str, topic: str, login: Credentials | None = None
    ) -> None:
        """
        @param login: what it signs with.
        """
        self.acknowledged: set[str] = set()
        self.read: set[str] = set()
        self.worst = 0.0
        self.wrong = ""
        self._names = names
        self._topic = topic
        settings = Settings(names, seconds=STUCK_SECONDS, attempts=1, credentials=login)
        self._client = Client(settings)
        self._producer = Producer(self._client)
        self._puller = Puller(self._client)
        self._at = dict.fromkeys(self._client.queues(topic), 0)

    def live(self, note: Path) -> None:
        """Go on until standard input ends; tell how far it is."""
        ends = select.poll()
        ends.register(sys.stdin)
        for number in itertools.count():
            self._ask("a send", partial(self._send, f"c{number}"))
            if not number % PER_READ:
                self._ask("the route", self._route)
                self._ask("a pull", self._pull)
                self._tell(note.with_suffix(".now"))
            if ends.poll(5) or self.wrong:
                break
        if not self.wrong:
            self._ask("the last pull", self._pull)
        self._tell(note)

    def _tell(self, note: Path) -> None:
        lost = [] if self.wrong else sorted(self.acknowledged - self.read)
        found = {
            "acknowledged": len(self.acknowledged),
            "read": len(self.read),
            "lost": lost,
            "worst": self.worst,
            "wrong": self.wrong,
        }
        half = note.with_suffix(".half")
        half.write_text(json.dumps(found))
        half.replace(note)

    def _ask(self, what: str, ask: Callable[[], object]) -> None:
        """Ask until it is answered; a refusal counts as no answer."""
        begin = time.monotonic()
        while True:
            try:
                ask()
                break
            except RocketbrokerError as error:
                if time.monotonic() - begin > STUCK_SECONDS:
                    self.wrong = f"no answer to {what}: {error}"
                    break
            time.sleep(0.05)
        self.worst = max(self.worst, time.monotonic() - begin)

    def _send(self, identity: str) -> None:
        if self._producer.send(Message(self._topic, identity.encode())).status == 0:
            self.acknowledged.add(identity)

    def _pull(self) -> None:
        for queue in self._at:
            until = self._client.max_offset(queue)
            for chunk in self._puller.read(queue, self._at[queue], until):
                for message in messages(chunk.data):
                    self._at[queue] = message.queue_offset + 1
                    self.read.add(message.plain_body().decode())

    def _route(self) -> None:
        code = RequestCode.GET_ROUTEINFO_BY_TOPIC
        self._client.ask_server(self._names, code, {"topic": self._topic})


def served(port: int) -> list[int]:
    """The codes that a server does not call unknown; one-way requests have no
    answer."""
    requests = [Command(code, {}, opaque=code) for code in RequestCode]
    codes = dict.fromkeys(map(int, RequestCode), 0)
    with socket.create_connection(("127.0.0.1", port), BURST_SECONDS) as sock:
        sock.sendall(b"".join(map(encode, requests)))
        data = b""
        with contextlib.suppress(TimeoutError):
            while piece := sock.recv(1 << 16):
                data += piece
                while len(data) >= 4 + int.from_bytes(data[:4] or bytes(4), "big") > 4:
                    size = int.from_bytes(data[:4], "big")
                    answer = decode(data[4 : 4 + size])
                    codes[answer.opaque] = answer.code
                    data = data[4 + size :]
    unknown = ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    return [code for code, answer in codes.items() if answer != unknown]


class CanaryProcess:
    """A canary in a process of its own."""

    def __init__(
        self, names: str, topic: str, folder: Path, login: Credentials | None = None
    ) -> None:
        """
        @param login: what it signs with.
        """
        self._note = folder / "canary"
        words = ["--canary", names, topic, str(self._note)]
        if login is not None:
            words += ["--login", login.access_key, login.secret_key]
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--inside", *words], stdin=subprocess.PIPE
        )

    def has_begun(self) -> bool:
        """Whether it has had its first answers, or has ended."""
        return self._note.with_suffix(".now").exists() or not self.is_well()

    def is_well(self) -> bool:
        """Whether it goes on."""
        return self.process.poll() is None

    def now(self) -> str:
        """How far it is."""
        with contextlib.suppress(OSError, ValueError):
            found = json.loads(self._note.with_suffix(".now").read_text())
            return f"canary {found['acknowledged']}, worst {found['worst']:.2f} s"
        return "canary begins"

    def end(self) -> Iterator[str]:
        """Let it end; what is wrong."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(4 * STUCK_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            yield "the canary does not end"
            return
        if not self._note.exists():
            yield f"the canary ended with status {self.process.returncode}"
            return
        found = json.loads(self._note.read_text())
        print(
            f"canary: {found['acknowledged']} acknowledged, {found['read']} read, "
            f"{len(found['lost'])} lost, the longest answer {found['worst']:.2f} s"
        )
        if found["wrong"]:
            yield f"canary: {found['wrong']}"
        if found["lost"]:
            yield f"lost: {found['lost'][:10]}"


def resident_mib(process: int) -> int:
    """The memory of a process."""
    status = Path(f"/proc/{process}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    return int(found[1]) >> 10 if found else 0


def longest_turn(port: int) -> tuple[float, str]:
    """The longest turn of the last minute or two, and what took most of it."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as page:
        text = page.read().decode()
    pattern = r'rocketbroker_longest_turn_seconds\{[^}]*work="([^"]*)"[^}]*\} (\S+)'
    found = [(float(seconds), work) for work, seconds in re.findall(pattern, text)]
    return max(found, default=(0.0, "-"))


class Watch:
    """The servers' processes under attack.

    @ivar turn: the longest turn so far, and what took most of it.
    @ivar rss_mib: the most memory that one of them needed.
    """

    def __init__(self, cluster: Cluster, server: Server, metrics: int) -> None:
        self._cluster = cluster
        self._metrics = metrics
        assert server.process is not None and cluster.broker.process is not None
        self._processes = [server.process.pid, *workers_of(server.process.pid)]
        self.turn = (0.0, "-")
        self.rss_mib = 0

    def look(self) -> None:
        """Measure."""
        with contextlib.suppress(OSError):
            self.turn = max(self.turn, longest_turn(self._metrics))
        for process in self._processes:
            with contextlib.suppress(OSError):
                self.rss_mib = max(self.rss_mib, resident_mib(process))

    def problems(self, turn: float, rss_mib: int) -> Iterator[str]:
        """What is wrong.

        @param turn: how long a turn may take, in seconds.
        @param rss_mib: how much memory a process may need.
        """
        logs = self._cluster.logs()
        if count := logs.count(TRACEBACK):
            at = logs.index(TRACEBACK)
            text = logs[max(0, at - 300) : at + 3000]
            yield f"{count} tracebacks; the first:\n{text}"
        gone = [process for process in self._processes if not is_there(process)]
        if gone:
            yield f"processes that have ended: {gone}"
        if self.turn[0] > turn:
            yield f"a turn of {self.turn[0]:.2f} s, most of it {self.turn[1]}"
        if self.rss_mib > rss_mib:
            yield f"a process of {self.rss_mib} MiB"


def run(words: argparse.Namespace) -> Iterable[str]:
    """Attack a server; what is wrong."""
    cluster = Cluster(workers=words.workers).start()
    bird = None
    try:
        names = random.Random()
        topic = f"Canary{names.getrandbits(128):032x}"
        with Client(Settings(cluster.names, seconds=30.0)) as client:
            client.create_topic(topic, queues=4)
            client.create_topic(f"Frames{words.seed}", queues=4)
        is_broker = words.server == "broker"
        server = cluster.broker if is_broker else cluster.namesrv
        port = cluster.broker_metrics if is_broker else cluster.namesrv_metrics
        watch = Watch(cluster, server, port)
        bird = CanaryProcess(cluster.names, topic, cluster.folder)
        wait_for(bird.has_begun, 6 * STUCK_SECONDS)
        codes = served(server.port)
        print(f"{len(codes)} codes, {words.frames} frames, seed {words.seed}")
        own = f"Frames{words.seed}", f"frames-{words.seed}"
        frames = Frames(words.seed, *own, codes)
        attack = Attack(server.port, frames, words.frames, words.connections)
        begin = time.monotonic()
        attack.start()
        told = begin
        while not attack.is_over() and bird.is_well():
            time.sleep(0.1)
            if time.monotonic() > told + PERIOD:
                told = time.monotonic()
                watch.look()
                rate = attack.sent / (told - begin)
                print(
                    f"{attack.sent} frames, {rate:.0f}/s; {bird.now()}; "
                    f"longest turn {watch.turn[0]:.2f} s ({watch.turn[1]}), "
                    f"{watch.rss_mib} MiB",
                    flush=True,
                )
        seconds = time.monotonic() - begin
        attack.stop()
        wrong = list(bird.end())
        watch.look()
        wrong += watch.problems(words.turn, words.rss)
        print(
            f"{attack.sent} frames in {seconds:.0f} s, {attack.closed} connections "
            f"closed by the server; longest turn {watch.turn[0]:.2f} s "
            f"({watch.turn[1]}); {watch.rss_mib} MiB"
        )
        return wrong
    finally:
        if bird is not None:
            bird.process.kill()
        cluster.stop()


def main() -> int:
    """Attack, and tell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--canary", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--login", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--server", choices=("broker", "namesrv"), default="broker")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--turn", type=float, default=2.0)
    parser.add_argument("--rss", type=int, default=1024)
    words = parser.parse_args()
    if words.canary:
        names, topic, note = words.canary
        login = Credentials(*words.login) if words.login else None
        Canary(names, topic, login).live(Path(note))
        return 0
    wrong = list(run(words))
    for each in wrong:
        print(f"WRONG: {each}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
