#!/usr/bin/env python3
"""Our proxy for gRPC and our broker are killed under official clients.

    python3 scripts/torture/proxy.py [--rounds 20] [--seconds S] [--seed 1]
        [--directory DIR] [--quick] [ROW ...]

In each of C{--rounds} rounds the proxy is killed (-9), then the broker, then both, and
started again soon. Meanwhile a producer sends, and a simple consumer and a push
consumer read all of it, each for a group of its own. They note what was acknowledged,
see C{proxy_member.py}. The row I{python}: with the official client for Python. The row
I{java}: with that for Java.

Prints the figures of the rows that are named, or of all of them, with their bars; the
exit status is the number of bars that are missed. Nothing that was acknowledged is
lost: each group has all of it in the end, what was in somebody's hands when its
invisible time is over. And after each start each client is served again within ten
seconds.

--quick: one round.
"""

from __future__ import annotations

import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple, TypeAlias

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.lab.inside import enter

if __name__ == "__main__":
    enter(__file__)

from rocketbroker.blocking import Client, Settings
from scripts.lab.grpcjava import java_client
from scripts.lab.pair import until
from scripts.lab.proxyserver import ProxyServer
from scripts.lab.rows import Figure, measure_rows
from scripts.lab.servers import Cluster
from scripts.torture.harness import Words, noted, now_ms, options, parsed
from scripts.torture.proxy_member import (
    PUSH,
    ROLES,
    SEND,
    SIMPLE,
    JavaMember,
    PythonMember,
)

TOPIC: Final = "Proxied"
QUEUES: Final = 4

#: Invisible times are short, so that a run ends soon.
PROXY_SETTINGS: Final = {
    "defaultInvisibleTimeMills": 6_000,
    "minInvisibleTimeMillsForRecv": 5_000,
    "renewAheadTimeMillis": 3_000,
    "renewSchedulePeriodMillis": 500,
}

#: Offsets are written down soon.
BROKER_SETTINGS: Final = {"flushConsumerOffsetInterval": 1000}

#: What is killed, in turn.
PROXY: Final = "proxy"
BROKER: Final = "broker"
BOTH: Final = "both"
KINDS: Final = (PROXY, BROKER, BOTH)

#: The bar: how long a client may wait after a start, in seconds.
SERVED: Final = 10.0

#: So long something is down at the most, and up after all have been served.
DOWN: Final = 2.0
UP: Final = 2.0
QUICK_SECONDS: Final = 0.5

#: One in so many rounds is followed by a longer life: a broker writes offsets down for
#: the first time after ten seconds. What is popped before comes again.
LONG: Final = 4
LONG_SECONDS: Final = 10.0

#: So long it is waited until all are served, and in the end until all have all.
PATIENCE: Final = 60.0
END_PATIENCE: Final = 180.0

Member: TypeAlias = PythonMember | JavaMember

#: Where a member notes, by its role.
Note: TypeAlias = Callable[[str], Path]


class Kill(NamedTuple):
    """One kill: what of, and the time of day in ms when that was up again."""

    kind: str
    up_ms: int


class Seen(NamedTuple):
    """What a note tells: bodies and times, in the order in which they were noted."""

    lines: list[tuple[str, int]]

    @classmethod
    def of(cls, note: Path) -> Seen:
        """What is noted by now."""
        if not note.exists():
            return cls([])
        return cls([(body, int(at)) for body, at in noted(note, 2)])

    @property
    def bodies(self) -> set[str]:
        """All messages."""
        return {body for body, _ in self.lines}

    @property
    def again(self) -> int:
        """How many lines tell of a message that was there before."""
        return len(self.lines) - len(self.bodies)

    def waited(self, kill: Kill) -> float:
        """How long the client was not served after a kill, in seconds."""
        later = [at for _, at in self.lines if at >= kill.up_ms]
        return (min(later) - kill.up_ms) / 1000 if later else float("inf")


class Scene:
    """Servers, members and their notes."""

    def __init__(self, cluster: Cluster, proxy: ProxyServer, words: Words) -> None:
        self._cluster = cluster
        self._proxy = proxy
        self._dice = random.Random(words.seed)
        self._down, self._up = (QUICK_SECONDS,) * 2 if words.quick else (DOWN, UP)
        self.kills: list[Kill] = []

    def note(self, role: str) -> Path:
        """Where a member notes."""
        return self._cluster.folder / f"note-{role}"

    def kill(self, kind: str) -> None:
        """Kill, and start again."""
        broker = self._cluster.broker
        if kind != BROKER:
            self._proxy.stop(signal.SIGKILL)
        if kind != PROXY:
            broker.stop(signal.SIGKILL)
        time.sleep(self._dice.uniform(0, self._down))
        if kind != PROXY:
            broker.start()
        if kind != BROKER:
            self._proxy.start()
        self.kills.append(Kill(kind, now_ms()))
        until(self._all_served, PATIENCE)
        time.sleep(self._dice.uniform(0, self._up))

    def _all_served(self) -> bool:
        up_ms = self.kills[-1].up_ms if self.kills else 0
        return all(last_ms(self.note(role)) >= up_ms for role in ROLES)

    def begin(self) -> None:
        """Wait until all have begun.

        @raise RuntimeError: they do not.
        """
        if not until(lambda: all(last_ms(self.note(role)) for role in ROLES), PATIENCE):
            raise RuntimeError(f"not all have begun:\n{self._cluster.logs()[-3000:]}")

    def end(self) -> None:
        """Wait until both consumers have all that was acknowledged."""

        def have_all() -> bool:
            sent = Seen.of(self.note(SEND)).bodies
            return all(sent <= Seen.of(self.note(role)).bodies for role in ROLES)

        end = time.monotonic() + END_PATIENCE
        while not have_all() and time.monotonic() < end:
            time.sleep(1)

    def figures(self) -> Iterator[Figure | str]:
        """The verdict."""
        sent = Seen.of(self.note(SEND))
        yield Figure("kills", len(self.kills), "")
        yield Figure("acknowledged sends", len(sent.bodies), "", 1, True, least=True)
        for role in (SIMPLE, PUSH):
            seen = Seen.of(self.note(role))
            lost = sent.bodies - seen.bodies
            yield Figure(f"{role}: acknowledged and lost", len(lost), "", 0, True)
            yield Figure(f"{role}: consumed again", seen.again, "")
        for role in ROLES:
            seen = Seen.of(self.note(role))
            for kind in KINDS:
                waits = [seen.waited(kill) for kill in self.kills if kill.kind == kind]
                name = f"{role}: served again after {kind}"
                if len(waits) > 1:
                    yield Figure(f"{name}, in the middle", median(waits), "s")
                yield Figure(name, max(waits, default=0), "s", SERVED, True)


def last_ms(note: Path) -> int:
    """When the newest line of a note was written, 0: there is none."""
    try:
        with open(note, "rb") as file:
            file.seek(max(0, note.stat().st_size - 100))
            lines = file.read().split(b"\n")
    except OSError:
        return 0
    return int(lines[-2].split()[-1]) if len(lines) > 1 and lines[-2] else 0


def python_members(note: Note, address: str, stack: ExitStack) -> dict[str, Member]:
    """The official client for Python, by role."""
    members: dict[str, Member] = {}
    for role in reversed(ROLES):
        members[role] = PythonMember(address, TOPIC, role, note(role))
        stack.callback(members[role].stop)
    return members


def java_members(note: Note, address: str, stack: ExitStack) -> dict[str, Member]:
    """The same for Java: two programs, as one does one command after the other."""
    members: dict[str, Member] = {}
    for roles in ((PUSH, SEND), (SIMPLE,)):
        folder = note("java-" + roles[-1])
        folder.mkdir()
        java = java_client(address, folder)
        stack.callback(java.stop)
        for role in roles:
            members[role] = JavaMember(java, TOPIC, role, note(role))
            stack.callback(members[role].stop)
    return members


#: What starts a member of each role, by the language of the client.
MEMBERS: Final = {"python": python_members, "java": java_members}


def judged(name: str, words: Words) -> Iterator[Figure | str]:
    """Kill servers under one kind of client."""
    directory = words.kept(name)
    words.begin()
    with ExitStack() as stack:
        cluster = Cluster(directory, workers=words.workers, **BROKER_SETTINGS)
        stack.callback(cluster.stop)
        cluster.start()
        with Client(Settings(cluster.names)) as client:
            client.create_topic(TOPIC, queues=QUEUES)
        proxy = ProxyServer(cluster.names, cluster.folder, **PROXY_SETTINGS)
        stack.callback(proxy.stop, signal.SIGKILL)
        proxy.start()
        scene = Scene(cluster, proxy, words)
        members = MEMBERS[name](scene.note, proxy.address, stack)
        scene.begin()
        for number in words.numbers():
            for kind in KINDS:
                scene.kill(kind)
            if number % LONG == LONG - 1:
                time.sleep(LONG_SECONDS)
        members[SEND].stop()
        scene.end()
        yield from scene.figures()


def python(words: Words) -> Iterator[Figure | str]:
    """The client for Python."""
    yield from judged("python", words)


def java(words: Words) -> Iterator[Figure | str]:
    """The client for Java."""
    yield from judged("java", words)


ROWS = {"python": python, "java": java}


def main() -> int:
    """Measure the rows."""
    return measure_rows(ROWS, parsed(options(__doc__), 20, 1, ROWS))


if __name__ == "__main__":
    sys.exit(main())
