#!/usr/bin/env python3
"""kill -9 of an export, by role and by moment: every offset once, the same bytes.

    python3 scripts/torture/export_kills.py [--rounds 60] [--seconds S] [--workers N]
        [--directory DIR] [--messages 500000] [--seed 1] [--quick]

A topic of four queues is exported once undisturbed. Then each round exports it into a
new directory, and one role of it is killed at one moment:

  - roles: the driver (the command itself), its JVM, one worker, or the whole group;
  - moments: while it plans, while files are half written, when all files have their
    names but nothing is committed, and after the commit.

Commands from the broker or from the store's files, chosen anew each time, then go on
until one says that nothing is new. The exit status is the number of rounds after which
an offset is missing or there twice, or a file has other bytes than in the undisturbed
export. --quick: 4 rounds with fewer messages.
"""

from __future__ import annotations

import hashlib
import random
import shutil
import subprocess
import sys
import time
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
from scripts.torture.harness import (
    PATIENCE,
    ROLES,
    end_session,
    judge,
    kill_role,
    options,
    parsed,
    places,
    running,
)

TOPIC = "Kills"
QUEUES = 4
COMMAND = [sys.executable, "-m", "rocketbroker.cli.command"]

MOMENTS = ("planning", "half written", "before the commit", "after the commit")

#: A message has about 200 bytes in the log, so that there are four files or more.
FILE_BYTES = 50

#: So many commands at most bring an export to its end.
ATTEMPTS = 6


class Disturbed(NamedTuple):
    """One round.

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
        self._places = set(places(cluster.names, TOPIC))
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
                hit = kill_role(process.pid, role, self._dice)
                if hit:
                    break
            time.sleep(0.003)
        end_session(process)
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
        verdict = judge(self._places, offsets(root))
        if not verdict.is_good or verdict.strange:
            yield f"offsets: {verdict}"
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


def digests(root: Path) -> dict[str, str]:
    """The digest of each data file."""
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in root.glob(f"{TOPIC}/**/*.parquet")
    }


def offsets(root: Path) -> Iterator[tuple[str, int, int]]:
    """Broker, queue and offset of each row."""
    for path in root.glob(f"{TOPIC}/**/*.parquet"):
        columns = ["brokerName", "queueId", "queueOffset"]
        table = pq.ParquetFile(path).read(columns=columns).to_pydict()
        yield from zip(*(table[name] for name in columns), strict=True)


def main() -> int:
    """Do all of it; the number of rounds after which something is wrong."""
    parser = options(__doc__)
    parser.add_argument("--messages", type=int, default=500_000)
    words = parsed(parser, 60, 4)
    count = 8_000 if words.quick else words.messages
    wrong = 0
    with running(words) as cluster:
        fill(cluster.names, count)
        dice = random.Random(words.seed)
        export = Export(cluster, cluster.folder, dice, count * FILE_BYTES)
        export.undisturbed()
        print(f"{count:,} messages in {len(export.bytes)} files", flush=True)
        for number in words.numbers():
            role = ROLES[number % len(ROLES)]
            moment = MOMENTS[number // len(ROLES) % len(MOMENTS)]
            if words.quick:
                moment = MOMENTS[number % len(MOMENTS)]
            done = export.disturbed(role, moment)
            wrong += bool(done.faults)
            state = "; ".join(done.faults) or "whole"
            missed = "" if done.hit else " (was not there)"
            print(f"{number + 1:3} {role}, {moment}{missed}: {state}", flush=True)
    print(f"{wrong} rounds with faults")
    return wrong


if __name__ == "__main__":
    sys.exit(min(100, main()))
