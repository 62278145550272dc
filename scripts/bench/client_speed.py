#!/usr/bin/env python3
"""CPU of a client for each message: ours for asyncio, beside RocketMQ's for Python.

    python3 scripts/bench/client_speed.py [--kit KIT] [--quick] [--realtime]

RocketMQ's speaks gRPC, so KIT, a kit.py, runs the Java broker and its Proxy. Both
clients use that broker, ours without the Proxy. Without KIT ours is measured alone,
with our broker. The client, C{rocketmq-python-client}, is installed into an environment
of its own, C{build/client-speed}. --quick: small loads.

The loads: sends of which 64 are under way; sends one after the other; messages that a
member of a group reads in batches of 32 and acknowledges one by one. They are measured
in rounds, one client after the other, as the speed of a machine changes from hour to
hour. Each is a process of its own that warms up first. The best round of each counts.
The ratios have no bar: CPU and rate of the other client, as multiples of ours.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.lab.inside import enter

if __name__ == "__main__":
    enter(__file__)

from rocketbroker.records.names import AUTO_CREATE_TOPIC
from scripts.lab.kit import Kit
from scripts.lab.peers import create_topic, wait_for_route
from scripts.lab.pop_load import fill
from scripts.lab.rows import Figure, RowWords, measure_rows, row_words
from scripts.lab.servers import ROOT, environment, free_base
from scripts.lab.targets import Scale

PACKAGE: Final = "rocketmq-python-client==5.1.2"
FOLDER: Final = ROOT / "build" / "client-speed"

QUEUES: Final = 8
BODY: Final = b"x" * 128

#: The loads, and how many messages each has: in full, and with --quick.
LOADS: Final = {
    "outstanding": (5_000, 300),
    "awaited": (1_000, 100),
    "consumed": (5_120, 320),
}

#: Of the messages that are there a load reads a part: what warms up has its own, and
#: the last ones may have to be waited for.
FILLED: Final = 2

#: The rounds that count, and those before: Java is slow at first.
ROUNDS: Final = 2
WARM_ROUNDS: Final = 1


class Measured(NamedTuple):
    """A round.

    @ivar us: CPU of the client for each message, in microseconds.
    @ivar rate: messages a second.
    """

    us: float
    rate: float


class Client(NamedTuple):
    """A client, as a program.

    @ivar words: what starts it; the load follows.
    """

    words: list[str]
    variables: dict[str, str]

    def measured(self, topic: str, load: str, count: int, folder: str) -> Measured:
        """One load.

        @param folder: its home, where it may write what it likes.
        @raise RuntimeError: it failed.
        """
        done = subprocess.run(
            [*self.words, topic, load, str(count)],
            env={**self.variables, "HOME": folder},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{load}: {done.stdout[-500:]}{done.stderr[-2000:]}")
        found = json.loads(done.stdout.splitlines()[-1])
        return Measured(found["cpu"] / count * 1e6, count / found["seconds"])


def ours(names: str) -> Client:
    """Ours."""
    program = Path(__file__).with_name("client_speed_ours.py")
    return Client([sys.executable, str(program), names], environment())


def official(proxy: str) -> Client:
    """RocketMQ's, which is installed when it is first asked for."""
    python, stamp = FOLDER / "bin" / "python", FOLDER / PACKAGE
    if not stamp.exists():
        venv.create(FOLDER, with_pip=True, clear=True)
        install = [str(python), "-m", "pip", "install", "--quiet", PACKAGE]
        subprocess.run(install, check=True)
        stamp.touch()
    program = Path(__file__).with_name("client_speed_official.py")
    return Client([str(python), str(program), proxy], dict(os.environ))


class Servers(NamedTuple):
    """What is up: ports of the broker and the name server, and the clients."""

    broker: int
    names: int
    clients: dict[str, Client]


@contextlib.contextmanager
def servers(scale: Scale) -> Iterator[Servers]:
    """The Java broker with its Proxy, or ours."""
    if scale.kit is None:
        with scale.ours() as target:
            assert target.cluster is not None
            port = target.cluster.namesrv.port
            yield Servers(target.port, port, {"ours": ours(target.cluster.names)})
        return
    with scale.java(scale.kit) as target, contextlib.ExitStack() as stack:
        # As the broker's is made there. The Proxy makes a topic when it starts, so
        # the name server has to know the broker.
        names, proxy = target.port - 10, free_base() + 1
        wait_for_route(names, AUTO_CREATE_TOPIC)
        words = ["proxy", f"127.0.0.1:{names}", f"--port={proxy}"]
        stack.enter_context(Kit(scale.kit, 0).serving(*words))
        both = {
            "ours": ours(f"127.0.0.1:{names}"),
            "official": official(f"127.0.0.1:{proxy}"),
        }
        yield Servers(target.port, names, both)


def cost(words: RowWords) -> Iterator[Figure | str]:
    """Measure in rounds."""
    scale = Scale(words.quick, words.kit)
    rounds = 1 if scale.quick else ROUNDS
    warm = 0 if scale.quick or scale.kit is None else WARM_ROUNDS
    found: dict[tuple[str, str], list[Measured]] = {}
    with tempfile.TemporaryDirectory() as folder, servers(scale) as up:
        for number in range(1 - warm, rounds + 1):
            for load, counts in LOADS.items():
                for name, client in up.clients.items():
                    count = scale.of(*counts)
                    topic = f"{load}-{number}-{name}"
                    create_topic(up.broker, topic, QUEUES)
                    wait_for_route(up.names, topic)
                    if load == "consumed":
                        fill(up.broker, topic, QUEUES, FILLED * count, BODY)
                    one = client.measured(topic, load, count, folder)
                    if number > 0:
                        found.setdefault((load, name), []).append(one)
                    yield (
                        f"round {number}, {load}, {name}: {one.us:.1f} us, "
                        f"{one.rate:,.0f}/s"
                    )
        yield from figures(found, [*up.clients])


def figures(
    found: dict[tuple[str, str], list[Measured]], names: list[str]
) -> Iterator[Figure]:
    """The best rounds, and what they are of each other."""
    us = {key: min(each.us for each in several) for key, several in found.items()}
    rate = {key: max(each.rate for each in several) for key, several in found.items()}
    for load in LOADS:
        for name in names:
            yield Figure(f"{load}, {name}: CPU of the client", us[load, name], "us")
            yield Figure(f"{load}, {name}", rate[load, name], "/s")
        if "official" in names:
            times = us[load, "official"] / us[load, "ours"]
            yield Figure(f"{load}: the official client's CPU, of ours", times, "times")
            times = rate[load, "official"] / rate[load, "ours"]
            yield Figure(f"{load}: its rate, of ours", times, "times")


ROWS = {"cost": cost}


def main() -> int:
    """Measure."""
    return measure_rows(ROWS, row_words(__doc__, ROWS))


if __name__ == "__main__":
    sys.exit(main())
