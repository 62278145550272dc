#!/usr/bin/env python3
"""Requests and handshakes that are not in order, at a broker with access control.

    python3 scripts/torture/auth_frames.py [--frames 200000] [--handshakes 50000]
        [--workers N] [--seed 1] [--connections 8] [--turn SECONDS] [--rss MIB]

Requests that would do something, sends, commits, users, settings, come with signatures
and users that are wrong, missing, cut off, of others, or of a request that was changed
behind its signature; some one-way, in both serializations. Then come handshakes of TLS
that are broken. A client beside them that signs, the canary of frames.py, sends and
pulls all the time.

In the end each request is sent as it should be: it is not refused, and does something,
so that nothing but the signature has refused the others.

Exit status 1 if a request was let in or had no answer, if the broker has left a broken
handshake open, if topics, users, groups or messages are others in the end, or for what
frames.py says of a log, processes, the canary, --turn and --rss.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import socket
import ssl
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable, Container, Iterator
from pathlib import Path
from threading import Lock, Thread
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.lab.inside import enter

if __name__ == "__main__":
    enter(__file__)

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.settings import Settings
from rocketbroker.wire.command import ONEWAY, Command
from rocketbroker.wire.connection import Connection
from rocketbroker.wire.frames import encode
from scripts.lab.peers import wait_for
from scripts.lab.servers import Cluster
from scripts.torture.forged_requests import (
    HARMLESS,
    KINDS,
    NOBODY,
    RETIRED,
    ROOT,
    TOPIC,
    Forger,
)
from scripts.torture.frames import (
    BURST,
    PERIOD,
    STUCK_SECONDS,
    CanaryProcess,
    Watch,
)

#: How a request is refused.
NO_PERMISSION: Final = 16

#: How long answers, and the end of a connection, may take.
SECONDS: Final = 30.0


class Attack:
    """Threads that carry out pieces of work.

    @ivar done: how many pieces are done.
    @ivar wrong: what must not be.
    """

    def __init__(
        self, count: int, connections: int, work: Callable[[int], Iterator[str]]
    ) -> None:
        """
        @param count: of pieces.
        @param work: does a number of pieces; yields what is wrong.
        """
        self.done = 0
        self.wrong: list[str] = []
        self._count = count
        self._work = work
        self._lock = Lock()
        self._threads = [
            Thread(target=self._run, daemon=True) for _ in range(connections)
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def is_over(self) -> bool:
        """Whether all is done."""
        return not any(thread.is_alive() for thread in self._threads)

    def _run(self) -> None:
        while True:
            with self._lock:
                size = min(BURST, self._count - self.done)
                self.done += max(size, 0)
            if size <= 0:
                return
            try:
                self.wrong += self._work(size)
            except OSError as error:
                self.wrong.append(f"a connection ended: {error}")


@contextlib.contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    """A connection of which nothing stays: there would be no ports left."""
    with socket.create_connection(("127.0.0.1", port), SECONDS) as sock:
        yield sock
        linger = struct.pack("ii", 1, 0)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)


class Forgeries:
    """Bursts of forged requests.

    @ivar refused: how many were answered with a refusal.
    """

    def __init__(self, port: int, forger: Forger) -> None:
        self.refused = 0
        self._port = port
        self._forger = forger
        self._lock = Lock()

    def burst(self, size: int) -> Iterator[str]:
        """Send requests over a connection, and read the answers."""
        with self._lock:
            made = [self._forger.one() for _ in range(size)]
        wanted = {c.opaque: c.code for c, _ in made if not c.flag & ONEWAY}
        with connected(self._port) as sock:
            sock.sendall(b"".join(encode(each, how) for each, how in made))
            incoming = Connection()
            while wanted:
                data = sock.recv(1 << 16)
                if not data:
                    yield f"no answer to {sorted(wanted.values())}"
                    return
                for answer in incoming.receive(data):
                    code = wanted.pop(answer.opaque)
                    if answer.code != NO_PERMISSION:
                        yield f"{code} was answered {answer.code}: {answer.remark}"
                    self.refused += 1


class Handshakes:
    """Handshakes that are broken."""

    def __init__(self, port: int, seed: int) -> None:
        self._port = port
        self._random = random.Random(seed)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        out = ssl.MemoryBIO()
        with contextlib.suppress(ssl.SSLWantReadError):
            context.wrap_bio(ssl.MemoryBIO(), out).do_handshake()
        self._hello = out.read()
        self._request = encode(Command(3005, {}, opaque=1))

    def burst(self, size: int) -> Iterator[str]:
        """Begin handshakes, each over a connection of its own."""
        for _ in range(size):
            with connected(self._port) as sock:
                with contextlib.suppress(ConnectionError):
                    sock.sendall(self._broken())
                    sock.shutdown(socket.SHUT_WR)
                yield from self._ends(sock)

    def _ends(self, sock: socket.socket) -> Iterator[str]:
        """Read until the broker ends it; plain text is wrong."""
        data = b""
        try:
            while piece := sock.recv(1 << 16):
                data += piece
        except ConnectionError:
            pass
        except TimeoutError:
            yield "a broken handshake is still open"
        # A record is an alert (21) or a handshake (22), or what follows them.
        if data and data[0] not in (20, 21, 22):
            yield f"an answer to a broken handshake: {data[:100]!r}"

    def _broken(self) -> bytes:
        """The first bytes, which begin as TLS does."""
        hello, random_ = self._hello, self._random
        kind = random_.randrange(6)
        if kind == 0:
            return hello[: random_.randrange(1, len(hello))]
        if kind == 1:
            changed = bytearray(hello)
            for _ in range(random_.randrange(1, 8)):
                changed[random_.randrange(1, len(hello))] = random_.randrange(256)
            return bytes(changed)
        if kind == 2:
            return b"\x16" + random_.randbytes(random_.randrange(1, 400))
        if kind == 3:
            return hello + random_.randbytes(random_.randrange(1, 400))
        if kind == 4:
            return hello + self._request
        size = random_.randrange(1 << 16)
        return b"\x16\x03\x01" + struct.pack(">H", size) + hello[5:]


class Owner:
    """The administrator, who knows what there should be."""

    def __init__(self, cluster: Cluster) -> None:
        self._address = cluster.address
        settings = Settings(cluster.names, credentials=ROOT, seconds=SECONDS)
        self._client = Client(settings)

    def ask(self, code: int, fields: dict[str, str], body: bytes = b"") -> Command:
        """The answer to a request that is signed as it should be."""
        connection = self._client.connections.to(self._address)
        return connection.invoke(Command(code, dict(fields), body), SECONDS)

    def prepare(self, canary: str) -> None:
        """Make users and topics."""
        for topic in (canary, TOPIC):
            self._client.create_topic(topic, queues=1)
        for user in (NOBODY, RETIRED):
            body = json.dumps({"password": user.secret_key}).encode()
            self.ask(3001, {"username": user.access_key}, body)
        disabled = json.dumps({"userStatus": "disable"}).encode()
        self.ask(3002, {"username": RETIRED.access_key}, disabled)

    def lets_in(self, only: Container[int]) -> Iterator[str]:
        """What is refused although it is signed as it should be."""
        for code, fields, body in KINDS:
            if code in only:
                answer = self.ask(code, fields, body)
                if answer.code == NO_PERMISSION:
                    yield f"{code} is refused to root: {answer.remark}"

    def state(self) -> dict[str, object]:
        """What forged requests would change."""
        where = {"topic": TOPIC, "queueId": "0"}
        topics = json.loads(self.ask(21, {}).body)["topicConfigTable"]
        groups = json.loads(self.ask(201, {}).body)["subscriptionGroupTable"]
        settings = bytes(self.ask(26, {}).body).decode().splitlines()
        return {
            "users": json.loads(self.ask(3005, {}).body),
            "topics": sorted(topics),
            "thieves": "thieves" in groups,
            "messages": self.ask(30, where).ext,
            "kept": [each for each in settings if "fileReservedTime" in each],
        }

    def close(self) -> None:
        """Close its connections."""
        self._client.close()


def watched(
    attack: Attack, what: str, bird: CanaryProcess, watch: Watch
) -> Iterator[str]:
    """Carry out an attack and tell of it; what is wrong."""
    begin = told = time.monotonic()
    attack.start()
    while not attack.is_over() and bird.is_well():
        time.sleep(0.05)
        if time.monotonic() > told + PERIOD:
            told = time.monotonic()
            watch.look()
            print(f"{attack.done} {what}; {bird.now()}", flush=True)
    seconds = time.monotonic() - begin
    print(f"{attack.done} {what} in {seconds:.0f} s, {len(attack.wrong)} wrong")
    for text, count in Counter(attack.wrong).most_common(10):
        yield f"{count} times: {text}"


def run(words: argparse.Namespace) -> Iterator[str]:
    """Attack a broker; what is wrong."""
    first = {"username": ROOT.access_key, "password": ROOT.secret_key}
    inner = {"accessKey": "inner", "secretKey": "inner-secret"}
    cluster = Cluster(
        workers=words.workers,
        authenticationEnabled="true",
        authorizationEnabled="true",
        initAuthenticationUser=json.dumps(first),
        innerClientAuthenticationCredentials=json.dumps(inner),
    )
    bird = None
    try:
        cluster.start()
        owner = Owner(cluster)
        topic = f"Canary{random.Random().getrandbits(64):016x}"
        owner.prepare(topic)
        watch = Watch(cluster, cluster.broker, cluster.broker_metrics)
        bird = CanaryProcess(cluster.names, topic, cluster.folder, ROOT)
        wait_for(bird.has_begun, 6 * STUCK_SECONDS)
        before = owner.state()
        yield from owner.lets_in(HARMLESS)
        forger = Forger(words.seed)
        port = cluster.broker.port
        forgeries = Forgeries(port, forger)
        handshakes = Handshakes(port, words.seed)
        for count, what, work in (
            (words.frames, "requests", forgeries.burst),
            (words.handshakes, "handshakes", handshakes.burst),
        ):
            attack = Attack(count, words.connections, work)
            yield from watched(attack, what, bird, watch)
        print(f"{forgeries.refused} refused; {dict(sorted(forger.made.items()))}")
        if (after := owner.state()) != before:
            yield f"it was {before}, and is {after}"
        yield from owner.lets_in([code for code, _, _ in KINDS])
        if owner.state() == before:
            yield "requests that are signed as they should be change nothing"
        owner.close()
        yield from bird.end()
        watch.look()
        yield from watch.problems(words.turn, words.rss)
        print(f"longest turn {watch.turn[0]:.2f} s; {watch.rss_mib} MiB")
    finally:
        if bird is not None:
            bird.process.kill()
        cluster.stop()


def main() -> int:
    """Attack, and tell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--frames", type=int, default=200_000)
    parser.add_argument("--handshakes", type=int, default=50_000)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--turn", type=float, default=2.0)
    parser.add_argument("--rss", type=int, default=1024)
    wrong = list(run(parser.parse_args()))
    for each in wrong:
        print(f"WRONG: {each}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
