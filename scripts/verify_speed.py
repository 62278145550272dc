#!/usr/bin/env python3
"""How fast C{rocketbroker store verify} reads a store, at several sizes of records.

    python3 scripts/verify_speed.py [--sizes 200,300,1024,4096] [--mib 256] [--rounds 3]
                                    [--queues 8] [--quick]

Makes a store for each size, of ordinary messages with keys and tags, all in the page
cache, and checks log, queues and index as the command does. Prints MB of the log per
second of this process's CPU time, the best round of each: of the walk through log and
queues, of the same with the index, where each message has two entries, and of
zlib.crc32 over the same bytes in the same run, as the machine's speed changes from hour
to hour. Exit status 1 if the walk reads records of 300 bytes or more at less than 150
MB/s. --quick: 32 MiB, without bars.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.test import environment

if __name__ == "__main__" and not {"--inside", "--no-install"} & set(sys.argv):
    python = environment("spark,test")
    sys.exit(subprocess.call([str(python), __file__, "--inside", *sys.argv[1:]]))

from zlib import crc32

from rocketbroker.config.store import StoreOptions
from rocketbroker.files.disk import Disk
from rocketbroker.records.hashing import tag_code
from rocketbroker.store.faults import Fault
from rocketbroker.store.indexverification import IndexVerification
from rocketbroker.store.interfaces import Draft
from rocketbroker.store.reader import StoreReader
from rocketbroker.store.store import Store
from rocketbroker.store.verification import Verification

#: What verify has to read on one core, in MB/s, and from which size of records on.
LEAST_RATE = 150.0
LEAST_SIZE = 300

TOPIC = "Verify"
HOST = b"\x7f\0\0\1\0\0\x2a\x9f"
TAG = "TagA"
AT_ONCE = 256

#: Bytes of a record beside its body, its topic and its properties.
FIXED = 91


def options(root: Path) -> StoreOptions:
    """Segments so small that nearly all that is read was written."""
    return StoreOptions(
        store_path_root_dir=str(root),
        mapped_file_size_commit_log=16 << 20,
        max_hash_slot_num=500_000,
        max_index_num=2_000_000,
    )


def fill(root: Path, mib: int, size: int, queues: int) -> int:
    """Make a store of messages of one size; how many bytes its log has."""
    now_ms = time.time_ns() // 1_000_000
    store = Store(Disk(), options(root), lambda: now_ms, HOST)
    store.open()
    code = tag_code(TAG)
    places = [store.queue(TOPIC, number) for number in range(queues)]
    number = 0
    while store.published_position < mib << 20:
        drafts = []
        for _ in range(AT_ONCE):
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


def check(root: Path) -> tuple[float, float]:
    """What the command does; the seconds of the walk, and those of the index."""
    faults: list[Fault] = []
    files = Disk()
    begun = time.process_time()
    reader = StoreReader(files, str(root))
    sizes = options(root)
    walk = Verification(files, reader, faults.append, lambda done: None)
    walk.run()
    walked = time.process_time()
    index = IndexVerification(
        files,
        reader,
        str(root),
        sizes.max_hash_slot_num,
        sizes.max_index_num,
        faults.append,
        lambda done: None,
    )
    index.run()
    reader.close()
    ended = time.process_time()
    if faults or walk.records != index.entries // 2:
        sys.exit(f"{walk.records} records, {index.entries} keys, {len(faults)} faults")
    return walked - begun, ended - walked


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
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--queues", type=int, default=8)
    parser.add_argument("--quick", action="store_true")
    words = parser.parse_args()
    mib = 32 if words.quick else words.mib
    good = True
    print(f"{'bytes a record':16}{'verify':>10}{'with index':>12}{'crc32':>8}", end="")
    print(f"{'verify/crc32':>14}   MB/s")
    for size in map(int, words.sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            megabytes = fill(root, mib, size, words.queues) / 1e6
            rounds = [(*check(root), sum_up(root)) for _ in range(words.rounds)]
            walk, index, plain = map(min, zip(*rounds, strict=True))
            ours = megabytes / walk
            print(f"{size:14}  {ours:10.0f}{megabytes / (walk + index):12.0f}", end="")
            print(f"{megabytes / plain:8.0f}{plain / walk:14.2f}")
            if size >= LEAST_SIZE and ours < LEAST_RATE and not words.quick:
                good = False
    if not good:
        print(f"under {LEAST_RATE:.0f} MB/s")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
