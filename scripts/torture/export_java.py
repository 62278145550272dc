#!/usr/bin/env python3
"""Exports of what the official client has sent to the Java broker, live and offline.

    python3 scripts/torture/export_java.py [--messages 1000000]
                                           [--transactions 2000] [--quick]

The client sends messages of all sizes, single and in batches, some of them compressed,
and commits or rolls back transactions. Each topic is exported from the Java broker, and
from its store's files. Each row is compared with what was sent; the rows and the
digests of both exports are compared with each other. The exit status is 1 if anything
differs. --quick: 20,000 messages and 100 transactions.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.lab.inside import enter

if __name__ == "__main__":
    enter(__file__)

import pyarrow.parquet as pq

from scripts.lab.javaclient import encoded
from scripts.lab.servers import environment
from scripts.torture import corpus
from scripts.torture.handover import HandOver

VERSION = "5.3.3"
TRANSACTIONS = "Transactions"
COMMAND = [sys.executable, "-m", "rocketbroker.cli.command"]

#: The columns that are compared with what was sent.
COLUMNS = ["queueId", "queueOffset", "msgId", "properties", "body", "flag", "sysFlag"]

#: The keys of a manifest row in which exports of the same messages agree.
SAME = ("rows", "queueDigest", "bodyDigest")

#: Large files, as a broker has them.
SETTINGS = {
    "mappedFileSizeCommitLog": 256 << 20,
    "mappedFileSizeConsumeQueue": 6_000_000,
    "maxHashSlotNum": 500_000,
    "maxIndexNum": 2_000_000,
}


def send_transactions(over: HandOver, count: int) -> set[bytes]:
    """Commit two of three, and roll back the others; the bodies committed."""
    driver = over.driver()
    words = {"address": over.cluster.address, "queues": 4}
    driver("createTopic", topic=TRANSACTIONS, **words)
    driver("transactionalProducer", name="tp", group="tp")
    committed = set()
    for number in range(count):
        body = b"transaction %d " % number * (1 + number % 7)
        end = "ROLLBACK_MESSAGE" if number % 3 == 2 else "COMMIT_MESSAGE"
        message = {"body": encoded(body), "properties": {"local": end}}
        driver("sendInTransaction", name="tp", topic=TRANSACTIONS, **message)
        if number % 3 != 2:
            committed.add(body)
    return committed


def export(root: Path, topic: str, *source: str) -> None:
    """Export one topic.

    @raise RuntimeError: it did not end with 0.
    """
    words = ["export", "run", topic, *source, "--to", str(root), "--cores", "2"]
    begin = time.monotonic()
    done = subprocess.run(
        [*COMMAND, *words], env=environment(), capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.returncode}: {done.stdout}")
    last = done.stdout.strip().splitlines()[-1]
    took = time.monotonic() - begin
    print(f"  {topic} {source[0]}: {took:.1f} s: {last}", flush=True)


def rows(root: Path, topic: str) -> Iterator[dict[str, Any]]:
    """The rows of a topic's files."""
    for path in sorted(root.glob(f"{topic}/**/*.parquet")):
        for batch in pq.ParquetFile(path).iter_batches(columns=COLUMNS):
            yield from batch.to_pylist()


def manifest(root: Path) -> list[tuple[object, ...]]:
    """What exports of the same messages must agree in."""
    found = []
    for path in sorted((root / "_rocketbroker" / "commits").glob("*.json")):
        for row in json.loads(path.read_bytes())["files"]:
            found.append((row["path"], *(row.get(key) for key in SAME)))
    return sorted(found)


def corpus_faults(over: HandOver, root: Path, topic: str) -> Iterator[str]:
    """What is not as it was sent."""
    left = {n for n in over.notes.sent if corpus.place(n)[0] == topic}
    for row in rows(root, topic):
        own = dict(row["properties"])
        number = int(own["n"])
        body = row["body"]
        values = (number, topic, row["flag"], len(body), crc32(body))
        names = ("TAGS", "KEYS", "p0", "p1", "p2")
        line = "\t".join((*map(str, values), *(own.get(name, "") for name in names)))
        if line != corpus.line(number):
            yield f"message {number} is {line!r}, not {corpus.line(number)!r}"
        queue, offset, key = over.notes.sent[number]
        found = (row["queueId"], row["queueOffset"], row["msgId"])
        # The client has given all messages of a batch one more key, the same one.
        wanted = (queue, offset, row["msgId"] if corpus.batched(number) else key)
        if found != wanted:
            yield f"message {number} is at {found}, not at {wanted}"
        if number not in left:
            yield f"message {number} is there twice"
        left.discard(number)
    if left:
        yield f"{len(left)} messages of {topic} are missing: {sorted(left)[:5]}"


def faults(
    over: HandOver, live: Path, offline: Path, committed: set[bytes]
) -> Iterator[str]:
    """Everything that is wrong."""
    for topic in corpus.TOPICS:
        yield from corpus_faults(over, live, topic)
    bodies = [row["body"] for row in rows(live, TRANSACTIONS)]
    if sorted(bodies) != sorted(committed):
        yield f"{len(bodies)} transactions for {len(committed)} committed"
    one, other = manifest(live), manifest(offline)
    if one != other:
        yield f"the manifests differ: {set(one) ^ set(other)}"


def main() -> int:
    """Do all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--transactions", type=int, default=2_000)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    count = 20_000 if given.quick else given.messages
    over = HandOver(VERSION, **SETTINGS)
    live, offline = over.folder / "live", over.folder / "offline"
    try:
        over.start_java()
        driver = over.driver()
        for topic in corpus.TOPICS:
            words = {"address": over.cluster.address, "queues": corpus.QUEUES}
            driver("createTopic", topic=topic, **words)
        note = over.folder / "sent"
        numbers = {"from": 0, "to": count, "delays": False, "note": str(note)}
        driver("writeCorpus", name="p", broker="broker-a", **numbers)
        over.notes.add(note, delays=False)
        committed = send_transactions(over, 100 if given.quick else given.transactions)
        print(f"{len(over.notes.sent):,} messages, {len(committed):,} transactions")
        store = ("--store", str(over.cluster.store), "--broker-name", "broker-a")
        for topic in (*corpus.TOPICS, TRANSACTIONS):
            export(live, topic, "--namesrv", over.names)
            export(offline, topic, *store)
        wrong = list(faults(over, live, offline, committed))
        total = sum(int(str(row[1])) for row in manifest(live))
    finally:
        over.stop()
    for sentence in wrong[:20]:
        print(sentence)
    print(f"{total:,} rows in each export, {len(wrong)} faults")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
