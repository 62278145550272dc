#!/usr/bin/env python3
"""A broker on a disk that becomes full, and what it does then.

    python3 scripts/torture/full_disk.py [--rounds 10] [--seconds S] [--workers N]
        [--directory DIR] [--folder DIR] [--mebibytes 256] [--flush MODE] [--seed 1]
        [--quick]

Mounts a small tmpfs, which only root may, and starts a name server and a broker whose
store is there, with small files. With --folder, that is used instead: a directory on a
small file system, in which nothing else is. A ballast file leaves some MiB of it. Then,
in each round:

 1. messages are sent until they are refused;
 2. the ballast takes the rest, to the last page: in every other round while messages
    are still sent, so that each write may be the one for which there is no room;
 3. the broker is stopped, every third time cleanly and else by kill -9, the ballast
    takes what that has freed, and the broker starts on the full disk;
 4. all that was acknowledged and is in the queues is read and compared; sends, also one
    to a new topic, are refused with the directory and the figures;
 5. the ballast is removed, the broker must take messages again by itself, and all that
    was ever acknowledged must be there.

At last the oldest messages may go (cleanFileForciblyEnable), and twice what the disk
holds is sent, beginning when the first round of cleaning comes, after a minute.
--quick: three rounds, and without that.

Exit status 1 if the broker dies, does not come up, does not resume, or if a message
that was acknowledged is not where it was; 2 if there is no small file system.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.lab.inside import enter

if __name__ == "__main__":
    enter(__file__)

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.messages import Message
from rocketbroker.blocking.producer import Producer
from rocketbroker.blocking.settings import Settings
from rocketbroker.errors import (
    RocketbrokerError,
)
from scripts.lab.servers import Cluster
from scripts.torture.harness import Hole, create_topics, options, parsed, read_back

TOPIC = "FullDisk"
QUEUES = 8

#: Files that are small beside the disk, and a disk that is full when 90 % are used.
SMALL = {
    "mappedFileSizeCommitLog": 1 << 20,
    "mappedFileSizeConsumeQueue": 20000,
    "maxHashSlotNum": 1000,
    "maxIndexNum": 4000,
    "cleanResourceInterval": 1000,
    "cleanFileForciblyEnable": "false",
    # The least that counts: four segments.
    "diskSpaceEnoughBytes": 1,
}

#: What the ballast leaves in each round.
LEFT = 12 << 20

#: How long a broker may take to take messages again, in seconds.
RESUME_SECONDS = 10.0

FIGURES = re.compile(r"[0-9.]+( bytes| [KMGT]iB)?")

#: The first round of cleaning comes so many seconds after the start.
FIRST_ROUND_SECONDS = 60.0

#: After so many seconds without a send a disk is below its percentage.
SETTLE_SECONDS = 5.0

#: Where a message stands: queue and offset.
Place = tuple[int, int]


class NoDisk(Exception):
    """A file system for this cannot be mounted."""


class Wrong(Exception):
    """What must not be."""


@contextlib.contextmanager
def small_disk(folder: str | None, mebibytes: int) -> Iterator[Path]:
    """A directory on a small file system.

    @raise NoDisk: there is none.
    """
    if folder is not None:
        yield Path(folder)
        return
    with tempfile.TemporaryDirectory(prefix="full-disk-") as place:
        size = f"size={mebibytes}m"
        mount = ["mount", "-t", "tmpfs", "-o", size, "tmpfs", place]
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NoDisk(f"no tmpfs can be mounted: {done.stderr.strip()}")
        try:
            yield Path(place)
        finally:
            subprocess.run(["umount", "--lazy", place], check=True)


class Ballast:
    """A file that takes all the space there is."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "ballast"

    def grow(self, leave: int = 0) -> None:
        """Take what is free, to the last page, but for some bytes."""
        with open(self._path, "ab", buffering=0) as file:
            for size in (1 << 20, 4096):
                with contextlib.suppress(OSError):
                    while leave == 0 or self._free() >= leave + size:
                        file.write(bytes(size))

    def _free(self) -> int:
        found = os.statvfs(self._path)
        return found.f_bavail * found.f_frsize

    def drop(self) -> None:
        """Give it back."""
        self._path.unlink(missing_ok=True)


class Run:
    """One cluster on a small disk, and what it has acknowledged.

    @ivar acknowledged: the hash of the body of each message, by its place.
    """

    def __init__(
        self,
        disk: Path,
        flush: str,
        seed: int,
        folder: Path | None = None,
        **settings: object,
    ) -> None:
        self.disk = disk
        self.ballast = Ballast(disk)
        self.dice = random.Random(seed)
        store = disk / "store"
        self.store = store
        self.cluster = Cluster(
            folder,
            storePathRootDir=store,
            storePathCommitLog=store / "commitlog",
            flushDiskType=flush,
            **SMALL,
            **settings,
        )
        self.acknowledged: dict[Place, bytes] = {}
        self.refused = 0
        self.remarks: dict[str, str] = {}
        self.starts: list[float] = []
        self.resumes: list[float] = []
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start the broker, and note how long that takes."""
        begin = time.monotonic()
        self.cluster.broker.start()
        self.starts.append(time.monotonic() - begin)

    def check_alive(self) -> None:
        """@raise Wrong: the broker has died."""
        process = self.cluster.broker.process
        if process is None or process.poll() is not None:
            status = None if process is None else process.returncode
            raise Wrong(f"the broker died, status {status}:\n{self.cluster.logs()}")

    def note(self, error: RocketbrokerError) -> None:
        """Count a refusal, and remember the kinds of them."""
        reason = getattr(error, "remark", "") or str(error)
        with self._lock:
            self.refused += 1
            kind = f"{type(error).__name__}: {FIGURES.sub('N', reason)}"
            self.remarks.setdefault(kind, reason)

    def send(
        self, producer: Producer, dice: random.Random, size: int | None = None
    ) -> bool:
        """Send one message; whether it was acknowledged."""
        if size is None:
            size = int(dice.paretovariate(1) * 200) % 30_000
        body = dice.randbytes(size)
        try:
            result = producer.send(Message(TOPIC, body, keys=[f"k{size}"]))
        except RocketbrokerError as error:
            self.note(error)
            return False
        if result.status != 0:
            return False
        place = result.queue.queue_id, result.queue_offset
        with self._lock:
            if place in self.acknowledged:
                raise Wrong(f"{place} was given twice")
            self.acknowledged[place] = hashlib.sha256(body).digest()
        return True

    def producer(self) -> Producer:
        """One that tries once."""
        return Producer(Client(Settings(self.cluster.names, seconds=5.0, attempts=1)))

    def fill(self, and_ballast: bool, most: int = 1 << 30) -> int:
        """Send by four at once until each was refused for a while.

        @param and_ballast: whether the ballast takes the rest of the disk meanwhile.
        @return: how many were acknowledged.
        """
        before = len(self.acknowledged)
        wrong: list[BaseException] = []

        def work(seed: int) -> None:
            dice = random.Random(seed)
            producer = self.producer()
            in_a_row = 0
            try:
                while in_a_row < 30 and len(self.acknowledged) - before < most:
                    if self.send(producer, dice):
                        in_a_row = 0
                    else:
                        in_a_row += 1
                        time.sleep(0.05)
            except BaseException as error:
                wrong.append(error)

        threads = [
            threading.Thread(target=work, args=(self.dice.getrandbits(32),))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        if and_ballast:
            time.sleep(0.3)
            self.ballast.grow()
        for thread in threads:
            thread.join()
        self.check_alive()
        if wrong:
            raise wrong[0]
        return len(self.acknowledged) - before

    def check(self) -> int:
        """Read all there is.

        @return: how many messages that were acknowledged were read and equal.
        @raise Wrong: one is not where it was acknowledged.
        @raise Hole: a queue is not whole.
        """
        found = 0
        for each in read_back(self.cluster.names, TOPIC, from_zero=False):
            place = each.queue_id, each.queue_offset
            body = self.acknowledged.get(place)
            if body is None:
                continue
            if hashlib.sha256(each.plain_body()).digest() != body:
                raise Wrong(f"{place} has another body")
            found += 1
        return found

    def check_all(self) -> None:
        """@raise Wrong: something that was acknowledged is missing."""
        deadline = time.monotonic() + RESUME_SECONDS
        # What was in the log and not in the queues when the disk was full comes later.
        while (found := self.check()) < len(self.acknowledged):
            if time.monotonic() > deadline:
                raise Wrong(f"{len(self.acknowledged) - found} messages are missing")
            time.sleep(0.2)

    def resume(self) -> None:
        """Free the disk and wait until messages are taken again.

        @raise Wrong: they are not.
        """
        self.ballast.drop()
        begin = time.monotonic()
        producer = self.producer()
        while not self.send(producer, self.dice):
            self.check_alive()
            if time.monotonic() - begin > RESUME_SECONDS:
                raise Wrong(f"sends do not resume: {list(self.remarks.values())}")
            time.sleep(0.05)
        self.resumes.append(time.monotonic() - begin)


def one_round(run: Run, number: int) -> None:
    """Fill the disk, stop the broker, start it, look, and free the disk.

    @raise Wrong: something is not as it must be.
    """
    run.ballast.grow(LEFT)
    sent = run.fill(and_ballast=number % 2 == 0)
    run.ballast.grow()
    how = signal.SIGTERM if number % 3 == 1 else signal.SIGKILL
    run.cluster.broker.stop(how)
    run.ballast.grow()
    run.start()
    run.ballast.grow()
    readable = run.check()
    producer = run.producer()
    for message in (Message(TOPIC, b"x"), Message(f"{TOPIC}{number}", b"x")):
        try:
            result = producer.send(message)
        except RocketbrokerError as error:
            run.note(error)
        else:
            raise Wrong(f"a full disk took a message: {result}")
    run.resume()
    run.check_all()
    print(
        f"round {number + 1}: {sent} sent until full, then {how.name}; up on the full "
        f"disk in {run.starts[-1]:.2f} s, {readable} messages readable, sends refused; "
        f"resumed after {run.resumes[-1]:.2f} s, all {len(run.acknowledged)} there",
        flush=True,
    )


def forced(run: Run, mebibytes: int) -> None:
    """Let the oldest go, and send more than the disk holds.

    @raise Wrong: something is not as it must be.
    """
    run.cluster.broker.stop()
    # A hundred small segments are what ten of a GiB are to a disk of 250.
    run.cluster.broker.set(
        cleanFileForciblyEnable="true",
        diskSpaceEnoughBytes=0,
        deleteFileBatchMax=100,
        deleteCommitLogFilesInterval=10,
    )
    run.start()
    time.sleep(FIRST_ROUND_SECONDS)
    sent = 0
    producer = run.producer()
    most = 2 * mebibytes << 20
    begin = time.monotonic()
    refused = run.refused
    while sent < most:
        size = 30_000
        if run.send(producer, run.dice, size):
            sent += size
            begin = time.monotonic()
        elif time.monotonic() - begin > RESUME_SECONDS:
            raise Wrong("cleaning does not let sends resume")
        else:
            time.sleep(0.05)
        run.check_alive()
    # Until nothing is removed any more, so that no queue begins later than it says.
    time.sleep(SETTLE_SECONDS)
    found = run.check()
    print(
        f"{sent >> 20} MiB sent to a disk of {mebibytes} MiB whose oldest messages may "
        f"go: {run.refused - refused} sends were refused meanwhile, {found} of "
        f"{len(run.acknowledged)} messages are left, and equal",
        flush=True,
    )
    if not 0 < found < len(run.acknowledged):
        raise Wrong("nothing was removed")


def main() -> int:
    """Fill, kill, free, compare."""
    parser = options(__doc__)
    parser.add_argument("--folder")
    parser.add_argument("--mebibytes", type=int, default=256)
    parser.add_argument("--flush", default="ASYNC_FLUSH")
    words = parsed(parser, 10, 3)
    try:
        with small_disk(words.folder, words.mebibytes) as disk:
            workers = words.workers
            run = Run(disk, words.flush, words.seed, words.directory, workers=workers)
            try:
                run.cluster.start()
                create_topics(run.cluster.names, QUEUES, TOPIC)
                for number in words.numbers():
                    one_round(run, number)
                if not words.quick:
                    forced(run, words.mebibytes)
            except (Wrong, Hole) as wrong:
                print(f"WRONG: {wrong}")
                print(run.cluster.logs()[-5000:])
                return 1
            finally:
                for remark in run.remarks.values():
                    print("refused:", remark)
                run.cluster.stop()
    except NoDisk as error:
        print(error)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
