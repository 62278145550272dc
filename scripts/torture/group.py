#!/usr/bin/env python3
"""A group of members of two kinds: the official client, and ours.

    python3 scripts/torture/group.py [--rounds 20] [--seed 1] [--quick] [ROW ...]

Two members with RocketMQ's client for Java and two with ours, each in a process of its
own, share eight queues of our broker. A producer sends all the while. C{--rounds}
times one of them joins or leaves; one of the leaves is a kill -9.

Prints the figures of the rows that are named, or of all of them, with their bars; the
exit status is the number of bars that are missed. The row I{shared}: no queue has two
owners, or none, for longer than one rebalance, and nothing is lost. The row
I{ordered}: the same, and no queue's order is ever broken; but the queues of the member
that was killed have no owner until the broker takes its locks for void, 60 s after it
renewed them last. The bar is that and one rebalance. It is right so: Java's broker does
the same, and one that freed locks with a connection would let two members have a queue
when one has lost its connection and not yet noticed.

--quick: four changes, and none of ordered members is killed.
"""

from __future__ import annotations

import random
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.lab.inside import enter

if __name__ == "__main__":
    enter(__file__)

from rocketbroker import threads
from rocketbroker.blocking import Client, Settings
from scripts.lab.javaclient import JavaClient, Program
from scripts.lab.rows import Figure, measure_rows
from scripts.lab.servers import Cluster, environment
from scripts.torture.group_verdict import Line, Watch, counts
from scripts.torture.harness import Words, options, parsed

VERSION = "5.3.3"
QUEUES = 8
MEMBERS = ("java-0", "java-1", "ours-0", "ours-1")

#: Seconds of one rebalance, and what a busy machine may add to it.
REBALANCE = 20.0
BUSY = 5.0

#: How long a broker keeps the queue of an ordered member that said no farewell.
LOCKED = 60.0

#: Seconds between two looks at who owns what, and between two sends.
LOOK = 0.1
PAUSE = 0.005

#: How long it may take in the end until all queues have one owner, and until all
#: messages are there.
PATIENCE = 120.0


class Member:
    """A process, which is in the group or not.

    @ivar is_in: whether it is in.
    """

    def __init__(self, name: str, cluster: Cluster, topic: str) -> None:
        self._name = name
        self._cluster = cluster
        self._topic = topic
        self._lock = threading.Lock()
        self._program: Program | None = None
        self._joins = 0
        self.path = cluster.folder / f"{topic}-{name}"
        self.path.touch()
        self.is_in = False

    def _started(self) -> Program:
        folder = self._cluster.folder / f"{self._topic}-{self._name}-home"
        folder.mkdir(exist_ok=True)
        if self._name.startswith("java"):
            return JavaClient(VERSION, self._cluster.names, folder)
        program = Path(__file__).with_name("group_member.py")
        words = [sys.executable, str(program), self._cluster.names]
        return Program(words, folder, "ours.log", environment())

    def join(self) -> None:
        """Be a member."""
        with self._lock:
            self._program = self._program or self._started()
            self._joins += 1
            self._program(
                "consumer",
                name=self._name,
                group=f"{self._topic}G",
                topic=self._topic,
                orderly=self._topic == "ordered",
                # Members of one group have client ids that differ: of the official
                # client this is a part.
                instance=f"{self._name}-{self._joins}",
                file=str(self.path),
            )
            self.is_in = True

    def leave(self) -> None:
        """Be none any more."""
        with self._lock:
            assert self._program is not None
            self._program("stop", name=self._name)
            self.is_in = False

    def kill(self) -> None:
        """Be none any more, without a farewell."""
        with self._lock:
            assert self._program is not None
            self._program.send_signal(signal.SIGKILL)
            self._program.stop()
            self._program = None
            self.is_in = False

    def stop(self) -> None:
        """End the process."""
        if self._program is not None:
            self._program.stop()

    def queues(self) -> frozenset[int] | None:
        """The queues that it has; None while it joins or leaves."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            if not self.is_in or self._program is None:
                return frozenset()
            found = self._program("queues", name=self._name)
        finally:
            self._lock.release()
        places = [queue.rsplit("/", 1) for queue in found]
        return frozenset(int(n) for topic, n in places if topic == self._topic)

    def lines(self) -> list[Line]:
        """What it was given; the last line may be half, after a kill."""
        whole = self.path.read_text().rpartition("\n")[0]
        return [Line.of(line) for line in whole.splitlines()]


class Sender:
    """Sends numbers, one after the other, in a thread.

    @ivar count: how many are sent.
    """

    def __init__(self, names: str, topic: str) -> None:
        self.count = 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(names, topic))
        self._thread.start()

    def _run(self, names: str, topic: str) -> None:
        with threads.connect(names) as mq:
            while not self._end.wait(PAUSE):
                mq.send(topic, str(self.count))
                self.count += 1

    def stop(self) -> None:
        """Send no more."""
        self._end.set()
        self._thread.join()


class Group:
    """The members, and who looks at them."""

    def __init__(self, cluster: Cluster, topic: str, words: Words) -> None:
        self._longest = 1.0 if words.quick else 4.0
        self.members = [Member(name, cluster, topic) for name in MEMBERS]
        self.watch = Watch(QUEUES)
        self._dice = random.Random(words.seed)
        self._pool = ThreadPoolExecutor(len(MEMBERS))

    def close(self) -> None:
        """End all processes."""
        self._pool.shutdown()
        for member in self.members:
            member.stop()

    def look(self) -> None:
        """See who owns what, and wait a little."""
        owned = {str(n): member.queues() for n, member in enumerate(self.members)}
        self.watch.see(time.monotonic(), owned)
        time.sleep(LOOK)

    def assemble(self) -> None:
        """Let all join; then begin to watch."""
        list(self._pool.map(Member.join, self.members))
        self.settle()
        self.watch = Watch(QUEUES)

    def settle(self) -> bool:
        """Look until each queue has one owner; whether that was in time."""
        end = time.monotonic() + PATIENCE
        self.look()
        while not self.watch.all_is_well and time.monotonic() < end:
            self.look()
        return self.watch.all_is_well

    def change(self, kills: bool) -> None:
        """One joins or leaves, and the others see it for a while."""
        inside = [member for member in self.members if member.is_in]
        outside = [member for member in self.members if not member.is_in]
        if kills:
            done = self._pool.submit(self._dice.choice(inside).kill)
        elif len(inside) > 1 and (not outside or self._dice.random() < 0.5):
            done = self._pool.submit(self._dice.choice(inside).leave)
        else:
            done = self._pool.submit(self._dice.choice(outside).join)
        self._look_until(
            done, time.monotonic() + self._dice.uniform(0.5, self._longest)
        )

    def _look_until(self, done: Future[None], at_least: float) -> None:
        while not done.done() or time.monotonic() < at_least:
            self.look()
        done.result()

    def lines(self) -> list[Line]:
        """What all have been given."""
        return [line for member in self.members for line in member.lines()]


def judged(topic: str, words: Words) -> Iterator[Figure]:
    """Change the members of one group."""
    changes = words.rounds or 0
    is_ordered = topic == "ordered"
    # After one, ordered queues are left alone for longer than a short test may take.
    kills = not (words.quick and is_ordered)
    cluster = Cluster()
    group = Group(cluster, topic, words)
    sender = None
    try:
        cluster.start()
        with Client(Settings(cluster.names)) as client:
            client.create_topic(topic, QUEUES)
        group.assemble()
        sender = Sender(cluster.names, topic)
        for number in range(changes):
            is_kill = kills and number == changes // 2
            if is_kill:
                group.settle()  # so the one that is killed has queues
            group.change(is_kill)
        sender.stop()
        yield Figure("joins and leaves", changes, "")
        yield Figure("settled", group.settle(), "", 1, True, least=True)
        end = time.monotonic() + PATIENCE
        while counts(group.lines(), sender.count)["lost"] and time.monotonic() < end:
            group.look()
        yield from figures(group, sender.count, is_ordered)
    finally:
        if sender is not None:
            sender.stop()
        group.close()
        cluster.stop()


def figures(group: Group, sent: int, is_ordered: bool) -> Iterator[Figure]:
    """What has been seen."""
    most = REBALANCE + BUSY
    longest = group.watch.longest
    yield Figure("two owners", longest["two owners"], "s", most, True)
    most += LOCKED if is_ordered else 0
    yield Figure("no owner", longest["no owner"], "s", most, True)
    found = counts(group.lines(), sent)
    yield Figure("sent", sent, "")
    yield Figure("lost", found["lost"], "", 0, True)
    if is_ordered:
        yield Figure("out of order", found["out of order"], "", 0, True)
    yield Figure("handled again", found["handled again"], "")
    for member in group.members:
        yield Figure(f"handled by {member.path.name}", len(member.lines()), "")


def shared(words: Words) -> Iterator[Figure]:
    """Several messages of a queue at once."""
    yield from judged("shared", words)


def ordered(words: Words) -> Iterator[Figure]:
    """One message of a queue after the other."""
    yield from judged("ordered", words)


ROWS = {"shared": shared, "ordered": ordered}


def main() -> int:
    """Measure the rows."""
    return measure_rows(ROWS, parsed(options(__doc__), 20, 4, ROWS))


if __name__ == "__main__":
    sys.exit(main())
