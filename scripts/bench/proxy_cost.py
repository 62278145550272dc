#!/usr/bin/env python3
"""CPU of a proxy for each message: ours, beside RocketMQ's Proxy.

    python3 scripts/bench/proxy_cost.py [--kit KIT] [--quick] [--realtime]

KIT is a kit.py that runs RocketMQ's Proxy 5.3.3. Both proxies are up at the same time
before one broker, which is ours, and are measured in rounds, one after the other, as
the speed of a machine changes from hour to hour. Without KIT ours is measured alone.

A load is C{proxy_load.py}, a client of gRPC in a process of its own that warms up
first: messages of 128 bytes that are sent, and messages that are received in batches of
32 and acknowledged one by one; each with 1, 16 and 256 calls under way. The best round
of each counts. There is no bar. --quick: small loads.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.lab.inside import enter

if __name__ == "__main__":
    enter(__file__)

from rocketbroker.records.names import AUTO_CREATE_TOPIC
from scripts.lab.kit import Kit
from scripts.lab.peers import Target, cpu, create_topic, memory, wait_for_route
from scripts.lab.pop_load import fill
from scripts.lab.proxyserver import ProxyServer
from scripts.lab.rows import Figure, RowWords, measure_rows, row_words
from scripts.lab.servers import environment, free_base
from scripts.lab.targets import Scale

QUEUES: Final = 8
BODY: Final = b"x" * 128

LOADS: Final = "sent", "consumed"

#: How many calls are under way, and how many messages there are then: in full, and with
#: --quick.
STREAMS: Final = {1: (1_000, 50), 16: (5_000, 200), 256: (5_000, 300)}

#: Of the messages that are there a load reads a part: what warms up has its own, and
#: both end with a batch for each call.
FILLED: Final = 2
MORE: Final = 2 * 256 * 32

#: The rounds that count, and those before: Java is slow at first.
ROUNDS: Final = 2
WARM_ROUNDS: Final = 1


class Measured(NamedTuple):
    """A round.

    @ivar us: CPU of the proxy for each message, in microseconds.
    @ivar rate: messages a second.
    """

    us: float
    rate: float


class Proxy(NamedTuple):
    """A proxy that is up.

    @ivar address: for clients.
    @ivar pid: its process.
    @ivar ready: how long it took until it was ready, in seconds.
    """

    address: str
    pid: int
    ready: float

    def measured(self, topic: str, load: str, streams: int, count: int) -> Measured:
        """One load.

        @raise RuntimeError: it failed.
        """
        program = Path(__file__).with_name("proxy_load.py")
        words = [self.address, topic, load, str(streams), str(count)]
        process = subprocess.Popen(
            [sys.executable, str(program), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        assert process.stdout is not None
        if process.stdout.readline() == "warm\n":
            begin = cpu(self.pid)
            output, errors = process.communicate("\n")
            used = cpu(self.pid) - begin
        else:
            output, errors = process.communicate()
        if process.returncode:
            raise RuntimeError(f"{load}, {streams}: {errors[-2000:]}")
        done, seconds = map(float, output.split())
        return Measured(used / done * 1e6, done / seconds)


@contextlib.contextmanager
def proxies(scale: Scale, broker: Target) -> Iterator[dict[str, Proxy]]:
    """Ours, and RocketMQ's if there is a kit."""
    assert broker.cluster is not None
    names = broker.cluster.names
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        server = ProxyServer(names, Path(folder))
        stack.callback(server.stop)
        ready = server.start()
        found = {"ours": Proxy(server.address, server.pid, ready)}
        if scale.kit is not None:
            wait_for_route(broker.cluster.namesrv.port, AUTO_CREATE_TOPIC)
            port = free_base() + 1
            words = ["proxy", names, f"--port={port}"]
            begin = time.monotonic()
            pid = stack.enter_context(Kit(scale.kit, 0).serving(*words))
            ready = time.monotonic() - begin
            found["Java"] = Proxy(f"127.0.0.1:{port}", pid, ready)
        yield found


class Run:
    """The rounds of one broker with its proxies."""

    def __init__(self, scale: Scale, broker: Target, up: dict[str, Proxy]) -> None:
        assert broker.cluster is not None
        self._scale = scale
        self._broker = broker
        self._names = broker.cluster.namesrv.port
        self._up = up
        self._found: dict[tuple[str, int, str], list[Measured]] = {}

    def round(self, number: int) -> Iterator[str]:
        """All loads; one without a positive number only warms up."""
        for load in LOADS:
            for streams, counts in STREAMS.items():
                for name, proxy in self._up.items():
                    count = self._scale.of(*counts)
                    # The numbers of rounds that warm up are negative, or 0.
                    topic = f"{load}-{streams}-{number + WARM_ROUNDS}-{name}"
                    create_topic(self._broker.port, topic, QUEUES)
                    wait_for_route(self._names, topic)
                    if load == "consumed":
                        filled = FILLED * count + MORE
                        fill(self._broker.port, topic, QUEUES, filled, BODY)
                    one = proxy.measured(topic, load, streams, count)
                    if number > 0:
                        self._found.setdefault((load, streams, name), []).append(one)
                    yield (
                        f"round {number}, {load}, {streams} under way, {name}: "
                        f"{one.us:.0f} us, {one.rate:,.0f}/s"
                    )

    def figures(self) -> Iterator[Figure]:
        """The best rounds, and what they are of each other."""
        for load in LOADS:
            for streams in STREAMS:
                us: dict[str, float] = {}
                rate: dict[str, float] = {}
                for name in self._up:
                    several = self._found[load, streams, name]
                    us[name] = min(each.us for each in several)
                    rate[name] = max(each.rate for each in several)
                    title = f"{load}, {streams} under way, {name}"
                    yield Figure(f"{title}: CPU of the proxy", us[name], "us")
                    yield Figure(title, rate[name], "/s")
                if "Java" in us:
                    title = f"{load}, {streams} under way"
                    part = us["ours"] / us["Java"]
                    yield Figure(f"{title}: part of Java's CPU", part, "")
                    part = rate["ours"] / rate["Java"]
                    yield Figure(f"{title}: part of Java's rate", part, "")


def cost(words: RowWords) -> Iterator[Figure | str]:
    """Measure in rounds."""
    scale = Scale(words.quick, words.kit)
    rounds = 1 if scale.quick else ROUNDS
    warm = 0 if scale.quick or scale.kit is None else WARM_ROUNDS
    with scale.ours() as broker, proxies(scale, broker) as up:
        begun = {name: memory(proxy.pid) for name, proxy in up.items()}
        run = Run(scale, broker, up)
        for number in range(1 - warm, rounds + 1):
            yield from run.round(number)
        yield from run.figures()
        for name, proxy in up.items():
            yield Figure(f"{name}: ready after", proxy.ready, "s")
            yield Figure(f"{name}: memory when it is ready", begun[name], "MiB")
            yield Figure(f"{name}: memory after all", memory(proxy.pid), "MiB")


ROWS = {"cost": cost}


def main() -> int:
    """Measure."""
    return measure_rows(ROWS, row_words(__doc__, ROWS))


if __name__ == "__main__":
    sys.exit(main())
