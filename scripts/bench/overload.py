#!/usr/bin/env python3
"""A broker that is offered more than it can take, and clients that cost without use.

    python3 scripts/bench/overload.py [--kit KIT] [--quick] [--realtime] [ROW ...]

Prints the figures of the rows that are named, or of all of them, with the bars of ours;
KIT is a kit.py that runs the Java broker, which is measured beside it. The exit status
is the number of bars that are missed; 2 without root. With --realtime, servers and
clients run under the scheduler's class FIFO, so that whatever else the machine does
counts little.

The row I{disk}: SYNC_FLUSH on a slow disk, the same for both brokers: an ext4 file
system in a file, on a loop device, for which a control group (blkio of version 1) lets
the broker's process write C{DISK_BYTES} a second. The kernel counts there what a
process writes itself by fdatasync or msync, so that flushes are slow and nothing else
is. 64 producers with a window each find out what the broker can take; then they offer
three times as much, whatever is answered; then they have their windows again. Each
answer counts by its code and by when it came, and a request is late after the three
seconds that clients wait. At last the broker is killed (-9), started again, and all
that was acknowledged must be there.

The row I{readers}: 20 consumers ask for messages and never read, beside producers. The
row I{slowloris}: 1,000 connections each begin a message of 4 MiB and send a byte a
second.
"""

from __future__ import annotations

import contextlib
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.lab.inside import enter

if __name__ == "__main__":
    enter(__file__)

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.puller import Puller, messages
from rocketbroker.blocking.settings import Settings
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.frames import encode
from scripts.bench.overload_load import (
    BODY_BYTES,
    QUEUES,
    TIMEOUT,
    TOPIC,
    Outcome,
    Sent,
    pressed,
)
from scripts.lab.kit import Kit
from scripts.lab.peers import (
    Beside,
    Peer,
    create_topic,
    heartbeat,
    memory,
    offered,
    pull_ext,
    send_frame,
)
from scripts.lab.rows import Figure, row_words, shown
from scripts.lab.servers import Cluster, free_base

#: What the slow disk takes in a second, and how large it is.
DISK_BYTES = 4 << 20
IMAGE_BYTES = 3 << 30

#: The control group that slows a disk down.
THROTTLE = Path("/sys/fs/cgroup/blkio")

#: More than eight producers get through, each of which has one send under way.
MAX_RATE = 20_000.0

#: What is as good as all of a rate.
FULL = 0.9

#: Rates are looked at in steps of so many seconds.
STEP = 0.25

#: RocketMQ's defaults, which L{Cluster} does not have.
LIMITS: dict[str, object] = {
    "waitTimeMillsInSendQueue": 200,
    "osPageCacheBusyTimeOutMills": 1000,
}

SETTINGS: dict[str, object] = {
    **LIMITS,
    "flushDiskType": "SYNC_FLUSH",
    "mappedFileSizeCommitLog": 256 << 20,
    "diskSpaceEnoughBytes": 1,
}


class SlowDisk(NamedTuple):
    """A file system that is slow for some processes."""

    folder: Path
    group: Path

    def slow_down(self, pid: int) -> None:
        """From now on it is slow for this process."""
        (self.group / "cgroup.procs").write_text(str(pid))


@contextlib.contextmanager
def slow_disk() -> Iterator[SlowDisk]:
    """A file system of its own, in a file."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        image, mounted = folder / "image", folder / "disk"
        mounted.mkdir()
        with open(image, "wb") as file:
            file.truncate(IMAGE_BYTES)
        device = run("losetup", "--find", "--show", str(image))
        stack.callback(run, "losetup", "--detach", device)
        run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", device)
        run("mount", device, str(mounted))
        stack.callback(run, "umount", str(mounted))
        group = THROTTLE / f"rocketbroker-{os.getpid()}"
        group.mkdir()
        stack.callback(group.rmdir)
        number = os.stat(device).st_rdev
        limit = f"{os.major(number)}:{os.minor(number)} {DISK_BYTES}"
        (group / "blkio.throttle.write_bps_device").write_text(limit)
        yield SlowDisk(mounted, group)


def run(*words: str) -> str:
    """What a command says."""
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


# Brokers.


class Served(NamedTuple):
    """A broker that is up.

    @ivar names: the address of its name server.
    """

    port: int
    pid: int
    names: str


#: Starts a broker with these settings on a store.
Serving = Callable[[Path, dict[str, object]], AbstractContextManager[Served]]


@contextlib.contextmanager
def ours(store: Path, settings: dict[str, object]) -> Iterator[Served]:
    """Our broker."""
    folders = {"storePathRootDir": store, "storePathCommitLog": store / "commitlog"}
    cluster = Cluster(**{**settings, **folders})
    try:
        broker = cluster.start().broker
        assert broker.process is not None
        yield Served(broker.port, broker.process.pid, cluster.names)
    finally:
        cluster.stop()


@contextlib.contextmanager
def java(kit: str, store: Path, settings: dict[str, object]) -> Iterator[Served]:
    """The Java broker."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        serving, base = Kit(kit, 0).serving, free_base()
        names = f"127.0.0.1:{base}"
        stack.enter_context(serving("namesrv", f"--port={base}", f"--home={folder}"))
        words = [f"--namesrv={names}", f"--port={base + 10}", f"--store={store}"]
        words += ["--heap=1g"]
        for key, value in settings.items():
            words += ["-s", f"{key}={value}"]
        pid = stack.enter_context(serving("broker", *words))
        yield Served(base + 10, pid, names)


# Rows.


def disk(serving: Serving, quick: bool) -> Iterator[Figure]:
    """A disk that takes a third of what is offered."""
    seconds = 4.0 if quick else 16.0
    with slow_disk() as slow:
        store = slow.folder / "store"
        with serving(store, SETTINGS) as found:
            create_topic(found.port, TOPIC, QUEUES)
            before = memory(found.pid, "RssAnon")
            slow.slow_down(found.pid)
            highest, end = before, time.monotonic() + 2 * seconds
            with Beside(pressed(found.port, seconds)) as beside:
                while time.monotonic() < end:
                    highest = max(highest, memory(found.pid, "RssAnon"))
                    time.sleep(0.1)
                load = beside.end()
            os.kill(found.pid, signal.SIGKILL)
        yield from outcomes(load, seconds)
        yield Figure("memory, without pages of files", highest, "MiB", before + 300)
        yield Figure("the same before", before, "MiB")
        with serving(store, SETTINGS) as found:
            stored = all_stored(found)
    acknowledged = {number for number, each in load.sent.items() if each.code == 0}
    yield Figure("acknowledged messages", len(acknowledged), "")
    yield Figure("of these lost", len(acknowledged - stored), "", 0, True)


def outcomes(load: Outcome, seconds: float) -> Iterator[Figure]:
    """What became of the sends under pressure, and how soon it was over."""
    yield Figure("what it can take", load.capacity, "/s")
    begin, relieved = seconds / 2, seconds * 1.5
    under = [each for each in load.sent.values() if begin <= each.at < relieved]
    yield Figure("offered then", len(under) / seconds, "/s")
    counts = Counter(map(outcome, under))
    for name, count in sorted(counts.items()):
        yield Figure(f"  {name}", count, "")
    good = sum(n for name, n in counts.items() if name.endswith(IN_TIME))
    bad = len(under) - good
    yield Figure("neither answered in time nor refused with a stage", bad, "", 0, True)
    answered = [each.seconds for each in under if each.seconds is not None]
    yield Figure("longest answer", max(answered, default=0.0), "s", TIMEOUT)
    steps = int((seconds / 2 - 2) / STEP) + 1
    for step in range(steps):
        at = relieved + step * STEP
        if load.acknowledged(at, at + 2) / 2 >= FULL * load.capacity:
            break
    yield Figure("until it takes all again", step * STEP, "s", 2)


IN_TIME = "in time"


def outcome(each: Sent) -> str:
    """What became of a send, in words."""
    if each.seconds is None:
        return "not answered"
    late = "too late" if each.seconds > TIMEOUT else IN_TIME
    if each.code == 0:
        return f"acknowledged {late}"
    name = ResponseCode(each.code).name
    if each.code == ResponseCode.SYSTEM_BUSY and each.stage:
        return f"{name} {each.stage} {late}"
    return f"{name}, {late}, not as it should be"


def all_stored(found: Served) -> set[int]:
    """The numbers of all messages."""
    stored: set[int] = set()
    with Client(Settings(found.names)) as client:
        puller = Puller(client)
        for queue in client.queues(TOPIC):
            begin, end = client.min_offset(queue), client.max_offset(queue)
            for chunk in puller.read(queue, begin, end):
                for each in messages(chunk.data):
                    stored.add(int(each.plain_body()[:16]))
    return stored


@contextlib.contextmanager
def store_of(serving: Serving) -> Iterator[Served]:
    """A broker on an ordinary disk."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        yield stack.enter_context(serving(Path(folder, "store"), LIMITS))


def readers(serving: Serving, quick: bool) -> Iterator[Figure]:
    """Consumers that never read, and producers."""
    rates: dict[bool, list[float]] = {False: [], True: []}
    with store_of(serving) as found:
        create_topic(found.port, TOPIC, 1)
        frame = send_frame(TOPIC, 0, b"x" * BODY_BYTES)
        peer = Peer(found.port)
        for _ in peer.ask_all([frame] * 64):
            pass
        measured_rate(found.port, 1 if quick else 5)
        for _ in range(1 if quick else 5):
            for with_readers, got in rates.items():
                several = [never_reads(found.port) for _ in range(20)]
                if not with_readers:
                    for each in several:
                        each.close()
                got.append(measured_rate(found.port, 1 if quick else 2))
                for each in several:
                    each.close()
        held = memory(found.pid, "RssAnon")
    without, beside = (statistics.median(rates[key]) for key in (False, True))
    yield Figure("sends without them", without, "/s")
    yield Figure("sends beside them", beside, "/s")
    yield Figure("producers lose", (1 - beside / without) * 100, "%", 5)
    yield Figure("memory at the end, without pages of files", held, "MiB")


def never_reads(port: int) -> Peer:
    """A consumer that asks and asks."""
    peer = Peer(port)
    body = heartbeat(f"127.0.0.1@{peer.fileno()}", "never", TOPIC)
    peer.done(RequestCode.HEART_BEAT, {}, body)
    ext = pull_ext(TOPIC, "never", "TAG")
    with contextlib.suppress(BlockingIOError):
        peer.socket.setblocking(False)
        for _ in range(200):
            peer.socket.send(encode(Command(RequestCode.PULL_MESSAGE, ext)))
    return peer


def measured_rate(port: int, seconds: float) -> float:
    """How many sends a second eight producers get through."""
    with Beside(offered(port, TOPIC, MAX_RATE)) as beside:
        time.sleep(seconds)
        rate: float = beside.end()
    return rate


def slowloris(serving: Serving, quick: bool) -> Iterator[Figure]:
    """Connections that begin a long message and do not go on."""
    count = 100 if quick else 1000
    frame = send_frame(TOPIC, 0, bytes(4 << 20))
    with store_of(serving) as found:
        create_topic(found.port, TOPIC, 1)
        measured_rate(found.port, 1 if quick else 5)
        before, rate = memory(found.pid, "RssAnon"), measured_rate(found.port, 2)
        peers = deque(Peer(found.port) for _ in range(count))
        for each in peers:
            each.socket.sendall(frame[:1000])
        with Beside(offered(found.port, TOPIC, MAX_RATE)) as beside:
            for at in range(1000, 1005):
                time.sleep(1)
                for each in peers:
                    each.socket.sendall(frame[at : at + 1])
            slowed: float = beside.end()
        after = memory(found.pid, "RssAnon")
        for each in peers:
            each.close()
    yield Figure("connections", count, "")
    yield Figure(
        "bytes of memory each", (after - before) * (1 << 20) / count, "", 65536
    )
    yield Figure("sends before", rate, "/s")
    yield Figure("sends beside them", slowed, "/s")


ROWS: dict[str, Callable[[Serving, bool], Iterator[Figure]]] = {
    "disk": disk,
    "readers": readers,
    "slowloris": slowloris,
}


def main() -> int:
    """Measure the rows."""
    words = row_words(__doc__, ROWS)
    if "disk" in words.rows and not os.access(THROTTLE, os.W_OK):
        print("The row disk needs root, and control groups (blkio) of version 1.")
        return 2
    brokers: dict[str, Serving] = {"rocketbroker": ours}
    if words.kit:
        brokers["Java"] = partial(java, words.kit)
    missed = 0
    for row in words.rows:
        for name, serving in brokers.items():
            print(f"{row}, {name}:", flush=True)
            for figure in ROWS[row](serving, words.quick):
                holds = name == "Java" or figure.holds(words.quick)
                missed += not holds
                print(f"  {shown(figure)}{'' if holds else '  MISSED'}", flush=True)
    return missed


if __name__ == "__main__":
    sys.exit(main())
