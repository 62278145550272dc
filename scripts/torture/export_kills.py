#!/usr/bin/env python3
"""kill -9 of an export, by role and by moment: every offset once, the same bytes.

    python3 scripts/torture/export_kills.py [--runs 60] [--messages 500000]
                                            [--seed 1] [--quick]

A topic of four queues is exported once undisturbed. Then each run exports it into a new
directory, and one role of it is killed at one moment:

  - roles: the driver (the command itself), its JVM, one worker, or the whole group;
  - moments: while it plans, while files are half written, when all files have their
    names but nothing is committed, and after the commit.

Commands from the broker or from the store's files, chosen anew each time, then go on
until one says that nothing is new. The exit status is the number of runs after which an
offset is missing or there twice, or a file has other bytes than in the undisturbed
export. --quick: 4 runs of fewer messages.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.lab.inside import enter

if __name__ == "__main__":
    enter(__file__)

import pyarrow.parquet as pq

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.messages import Message
from rocketbroker.blocking.producer import Producer
from rocketbroker.blocking.settings import Settings
from scripts.lab.servers import Cluster, environment

TOPIC = "Kills"
QUEUES = 4
COMMAND = [sys.executable, "-m", "rocketbroker.cli.command"]

ROLES = ("driver", "jvm", "worker", "group")
MOMENTS = ("planning", "half written", "before the commit", "after the commit")

#: A message has about 200 bytes in the log, so that there are four files or more.
FILE_BYTES = 50

#: So many commands at most bring an export to its end.
ATTEMPTS = 6

#: A command ends within so many seconds.
PATIENCE = 900.0


class Disturbed(NamedTuple):
    """One run.

    @ivar hit: whether the process was there at that moment.
    @ivar faults: what is wrong after it, in sentences.
    """

    role: str
    moment: str
    hit: bool
    faults: list[str]


def fill(names: str, count: int) -> None:
    """Send messages; every hundredth is compressed on its way."""
    with Client(Settings(names)) as client:
        client.create_topic(TOPIC, queues=QUEUES)
        messages = (
            Message(
                TOPIC,
                b"%d," % number * (1000 if number % 100 == 0 else 12),
                f"tag{number % 3}",
                [f"k{number}"],
                {"number": str(number)},
            )
            for number in range(count)
        )
        for result in Producer(client).send_all(messages):
            assert result.status == 0


class Export:
    """One topic, exported again and again.

    @ivar bytes: of each file of the undisturbed export its digest.
    """

    def __init__(
        self, cluster: Cluster, folder: Path, dice: random.Random, file_size: int
    ) -> None:
        self._cluster = cluster
        self._file_size = file_size
        self._folder = folder
        self._dice = dice
        self.bytes: dict[str, str] = {}

    def source(self) -> list[str]:
        """Words that name the broker, or the files of its store."""
        if self._dice.random() < 0.5:
            return ["--namesrv", self._cluster.names]
        return ["--store", str(self._cluster.store), "--broker-name", "broker-a"]

    def begin(self, root: Path) -> subprocess.Popen[bytes]:
        """Start a command."""
        words = [TOPIC, *self.source(), "--to", str(root), "--cores", "2"]
        words += ["--file-size", str(self._file_size)]
        with open(self._folder / "command.log", "ab") as log:
            return subprocess.Popen(
                [*COMMAND, "export", "run", *words],
                env=environment(),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def undisturbed(self) -> None:
        """Export once, and remember the files."""
        root = self._folder / "undisturbed"
        assert self.begin(root).wait(PATIENCE) == 0
        self.bytes = digests(root)

    def disturbed(self, role: str, moment: str) -> Disturbed:
        """Export, kill, and go on until it is whole."""
        root = self._folder / "disturbed"
        process = self.begin(root)
        hit = False
        end = time.monotonic() + PATIENCE
        while process.poll() is None and time.monotonic() < end:
            if reached(moment, root, len(self.bytes)):
                hit = kill(process.pid, role, self._dice)
                if hit:
                    break
            time.sleep(0.003)
        leave(process)
        faults = [*self.go_on(root), *self.compare(root)]
        shutil.rmtree(root, ignore_errors=True)
        return Disturbed(role, moment, hit, faults)

    def go_on(self, root: Path) -> Iterator[str]:
        """Run commands until one has nothing to do."""
        codes = []
        for _ in range(ATTEMPTS):
            process = self.begin(root)
            codes.append(process.wait(PATIENCE))
            if codes[-1] == 3:
                break
        if codes not in ([3], [0, 3]):
            yield f"the commands after it ended with {codes}"

    def compare(self, root: Path) -> Iterator[str]:
        """What is not as in the undisturbed export."""
        found = digests(root)
        for path in sorted(found.keys() | self.bytes.keys()):
            if found.get(path) != self.bytes.get(path):
                yield f"{path} is not what it was"
        yield from wrong_offsets(root)
        left = [path.name for path in root.rglob("*.tmp")]
        if left:
            yield f"{len(left)} drafts are left: {left[0]}"


def reached(moment: str, root: Path, files: int) -> bool:
    """Whether an export is where it is to be killed."""
    ledger = root / "_rocketbroker"
    if moment == "planning":
        return (ledger / "lease.json").exists()
    if moment == "half written":
        return any(path.stat().st_size for path in drafts(root))
    if moment == "before the commit":
        return len(list(root.glob(f"{TOPIC}/**/*.parquet"))) == files
    return any((ledger / "commits").glob("*.json"))


def drafts(root: Path) -> Iterator[Path]:
    """The drafts of data files that are there just now."""
    for path in root.glob(f"{TOPIC}/**/.*.tmp"):
        if path.exists():
            yield path


def kill(leader: int, role: str, dice: random.Random) -> bool:
    """Kill one role; whether there was one."""
    if role == "group":
        os.killpg(leader, signal.SIGKILL)
        return True
    names = dict(members(leader))
    jvms = [pid for pid, name in names.items() if "SparkSubmit" in name]
    workers = [
        pid
        for pid, name in names.items()
        if pid != leader and ("pyspark.daemon" in name or "multiprocessing" in name)
    ]
    found = {"driver": [leader], "jvm": jvms, "worker": workers}[role]
    if not found:
        return False
    try:
        os.kill(dice.choice(found), signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def members(leader: int) -> Iterator[tuple[int, str]]:
    """Number and command of each process of a session."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            session = int((folder / "stat").read_text().rpartition(")")[2].split()[3])
            if session == leader:
                yield int(folder.name), (folder / "cmdline").read_text()
        except (OSError, ValueError):
            continue


def leave(process: subprocess.Popen[bytes]) -> None:
    """Wait for a command, and end what it has left behind."""
    process.wait(PATIENCE)
    while left := [pid for pid, _ in members(process.pid)]:
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.02)


def digests(root: Path) -> dict[str, str]:
    """The digest of each data file."""
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in root.glob(f"{TOPIC}/**/*.parquet")
    }


def wrong_offsets(root: Path) -> Iterator[str]:
    """A sentence for each queue that does not stand there whole, each offset once."""
    seen: dict[tuple[str, int], Counter[int]] = {}
    for path in root.glob(f"{TOPIC}/**/*.parquet"):
        columns = ["brokerName", "queueId", "queueOffset"]
        table = pq.ParquetFile(path).read(columns=columns).to_pydict()
        rows = zip(*(table[name] for name in columns), strict=True)
        for broker, queue, offset in rows:
            seen.setdefault((broker, queue), Counter())[offset] += 1
    if len(seen) != QUEUES:
        yield f"{len(seen)} queues are there"
    for queue, counts in sorted(seen.items()):
        if max(counts.values()) > 1:
            yield f"offsets of {queue} are there more than once"
        if counts.keys() != set(range(len(counts))):
            yield f"offsets of {queue} are missing"


def main() -> int:
    """Do all of it; the number of runs after which something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--messages", type=int, default=500_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    count = 8_000 if given.quick else given.messages
    dice = random.Random(given.seed)
    cluster = Cluster()
    wrong = 0
    try:
        cluster.start()
        fill(cluster.names, count)
        export = Export(cluster, cluster.folder, dice, count * FILE_BYTES)
        export.undisturbed()
        print(f"{count:,} messages in {len(export.bytes)} files", flush=True)
        for number in range(4 if given.quick else given.runs):
            role = ROLES[number % len(ROLES)]
            moment = MOMENTS[number // len(ROLES) % len(MOMENTS)]
            if given.quick:
                moment = MOMENTS[number]
            done = export.disturbed(role, moment)
            wrong += bool(done.faults)
            state = "; ".join(done.faults) or "whole"
            missed = "" if done.hit else " (was not there)"
            print(f"{number + 1:3} {role}, {moment}{missed}: {state}", flush=True)
    finally:
        cluster.stop()
    print(f"{wrong} runs with faults")
    return wrong


if __name__ == "__main__":
    sys.exit(min(100, main()))
