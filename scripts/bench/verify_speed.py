#!/usr/bin/env python3
"""How fast C{rocketbroker store verify} reads a store, at several sizes of records.

    python3 scripts/bench/verify_speed.py [--sizes 200,300,1024,4096] [--mib 300]
                                          [--rounds 3] [--queues 8] [--quick]

Makes a store for each size, of ordinary messages with two keys and a tag, all in the
page cache, and runs the command on it: a process of its own, from its start to its end,
that checks log, queues and index. Prints MB of the log per second of that process's CPU
time and of the clock, the best round of each, and the rate of zlib.crc32 over the same
bytes in the same run, as the machine's speed changes from hour to hour. Exit status 1
if records of 300 bytes or more are read at less than 150 MB/s of CPU time. --quick: 32
MiB, without bars.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.lab.inside import enter

if __name__ == "__main__":
    enter(__file__)

import json
from zlib import crc32

from rocketbroker.config.store import StoreOptions
from rocketbroker.files.disk import Disk
from rocketbroker.records.hashing import tag_code
from rocketbroker.store.interfaces import Draft
from rocketbroker.store.message_store import Store

#: What verify has to read on one core, in MB/s, and from which size of records on.
LEAST_RATE = 150.0
LEAST_SIZE = 300

TOPIC = "Verify"
HOST = b"\x7f\0\0\1\0\0\x2a\x9f"
TAG = "TagA"
BATCH_SIZE = 256

#: Bytes of a record beside its body, its topic and its properties.
FIXED = 91


def fill(root: Path, mib: int, size: int, queues: int) -> int:
    """Make a store of messages of one size; how many bytes its log has."""
    now_ms = time.time_ns() // 1_000_000
    options = StoreOptions(
        store_path_root_dir=str(root),
        # Small segments: nearly all that is read was written.
        mapped_file_size_commit_log=16 << 20,
    )
    store = Store(Disk(), options, lambda: now_ms, HOST)
    store.open()
    code = tag_code(TAG)
    places = [store.queue(TOPIC, number) for number in range(queues)]
    number = 0
    while store.published_position < mib << 20:
        drafts = []
        for _ in range(BATCH_SIZE):
            known = f"UNIQ_KEY\1{number:032X}\2KEYS\1k{number}\2TAGS\1{TAG}\2".encode()
            body = os.urandom(max(0, size - FIXED - len(TOPIC) - len(known)))
            place = places[number % queues]
            number += 1
            drafts.append(Draft(place, body, known, 0, 0, now_ms, HOST, 0, code, None))
        store.append(drafts)
        while store.dispatch(10_000):
            pass
        while store.build_index(10_000):
            pass
    written = store.published_position
    store.close()
    return written


def check(root: Path, megabytes: float) -> tuple[float, float]:
    """Run the command; its seconds of CPU time, and of the clock."""
    words = "-m", "rocketbroker.cli.command", "store", "verify", "--output", "jsonl"
    place = str(Path(__file__).resolve().parents[2])
    # What is installed has its bytecode.
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before = os.times()
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, *words, str(root)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**kept, "PYTHONPATH": place},
        check=False,
    )
    wall = time.monotonic() - begun
    after = os.times()
    summary = json.loads(done.stdout.splitlines()[-1])
    counted = summary["records"], summary["index_entries"] // 2, summary["bytes"] / 1e6
    if done.returncode or counted[0] != counted[1] or abs(counted[2] - megabytes) > 0.1:
        sys.exit(f"exit status {done.returncode}: {summary}")
    used = sum(after[2:4]) - sum(before[2:4])
    return used, wall


def sum_up(root: Path) -> float:
    """The least that any check has to do: a checksum of all; its seconds."""
    begun = time.process_time()
    for path in sorted((root / "commitlog").iterdir()):
        with path.open("rb") as file:
            while data := file.read(1 << 20):
                crc32(data)
    return time.process_time() - begun


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--no-install", action="store_true", help="Use this Python.")
    parser.add_argument("--sizes", default="200,300,1024,4096")
    parser.add_argument("--mib", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--queues", type=int, default=8)
    parser.add_argument("--quick", action="store_true")
    words = parser.parse_args()
    mib = 32 if words.quick else words.mib
    good = True
    print(f"{'bytes a record':16}{'CPU':>8}{'clock':>8}{'crc32':>8}", end="")
    print(f"{'CPU/crc32':>12}   MB/s")
    for size in map(int, words.sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            megabytes = fill(root, mib, size, words.queues) / 1e6
            rounds = [
                (*check(root, megabytes), sum_up(root)) for _ in range(words.rounds)
            ]
            used, wall, plain = map(min, zip(*rounds, strict=True))
            ours = megabytes / used
            print(f"{size:14}  {ours:8.0f}{megabytes / wall:8.0f}", end="")
            print(f"{megabytes / plain:8.0f}{plain / used:12.2f}", flush=True)
            if size >= LEAST_SIZE and ours < LEAST_RATE and not words.quick:
                good = False
    if not good:
        print(f"under {LEAST_RATE:.0f} MB/s")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
