#!/usr/bin/env python3
"""kill -9 of the broker in the middle of transactions: each ends as its producer said.

    python3 scripts/transactions.py [--rounds 200] [--flush MODE] [--quick]

Producers send half messages, note what they decide, and tell the broker, or leave it to
be asked. Every broker is killed at a random moment. At the end each message whose half
was acknowledged is there if its producer decided so, and no other; one is there twice
only if the broker died between the commit and the mark of it. Exit status 1 if not.
--quick: 5 rounds.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.test import environment

if __name__ == "__main__" and "--inside" not in sys.argv:
    python = environment("spark,test")
    sys.exit(subprocess.call([str(python), __file__, "--inside", *sys.argv[1:]]))

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.puller import Puller, messages
from rocketbroker.blocking.settings import Settings
from rocketbroker.wire.send_headers import (
    TRANSACTION_COMMIT,
    TRANSACTION_ROLLBACK,
    TRANSACTION_UNKNOWN,
)
from tests.integration.servers import Cluster
from tests.integration.transactional import TransactionalProducer, stored, unexcused

TOPIC = "Transactions"
QUEUES = 2
PRODUCERS = 2

#: Producers are asked soon and often, and nothing is given up.
SETTINGS = {
    "transactionTimeOut": 300,
    "transactionCheckInterval": 200,
    "transactionCheckMax": 1_000_000,
    "flushConsumerOffsetInterval": 500,
    "mappedFileSizeCommitLog": 4 << 20,
}

#: Outcomes by how they are noted.
OUTCOMES = {"C": TRANSACTION_COMMIT, "R": TRANSACTION_ROLLBACK}

#: How long the last transactions may take until they are ended.
MOST_SECONDS = 60.0


def produce(address: str, number: int, note: Path, stop: Path) -> None:
    """Begin and end transactions until C{stop} exists, then answer questions only.

    A line of the note is: unique key, C or R. It is written before the broker hears it.
    """
    dice = random.Random(number)
    decided: dict[str, int] = {}
    hesitates: set[str] = set()
    lines = open(note, "w", buffering=1)  # noqa: SIM115

    def decide(key: str) -> int | None:
        if key in hesitates:
            hesitates.discard(key)
            return dice.choice((None, TRANSACTION_UNKNOWN))
        return decided.get(key, TRANSACTION_ROLLBACK)

    def one(serial: int) -> None:
        key = f"K{number}N{serial}"
        half = producer.half(TOPIC, serial % QUEUES, key, key.encode() * 20)
        if half.code not in (0, 10):
            time.sleep(0.05)
            return
        kind = dice.choice("CCR")
        decided[key] = OUTCOMES[kind]
        lines.write(f"{key} {kind}\n")
        how = dice.random()
        if how < 0.1:
            hesitates.add(key)
        if how < 0.2:
            producer.end(TOPIC, half, TRANSACTION_UNKNOWN)
        elif how < 0.21:
            producer.serve(dice.uniform(0, 0.8))
            producer.end(TOPIC, half, decided[key])
        else:
            producer.end(TOPIC, half, decided[key])

    producer = TransactionalProducer(address, f"PG{number}", decide)
    serial = 0
    connected = False
    while True:
        try:
            if not connected:
                producer.connect()
                connected = True
            if stop.exists():
                producer.serve(0.2)
            else:
                serial += 1
                one(serial)
        except OSError:
            connected = False
            time.sleep(0.02)


def delivered(names: str) -> set[str]:
    """The unique keys of all that consumers can see."""
    client = Client(Settings(names, attempts=20))
    found: set[str] = set()
    for queue in client.queues(TOPIC):
        until = client.max_offset(queue)
        for chunk in Puller(client).read(queue, 0, until):
            found.update(message.unique_key or "" for message in messages(chunk.data))
    return found


def noted(notes: list[Path], kind: str) -> set[str]:
    """The unique keys of the transactions that were decided so."""
    lines = [line.split() for note in notes for line in note.read_text().splitlines()]
    return {line[0] for line in lines if len(line) == 2 and line[1] == kind}


def check(cluster: Cluster, notes: list[Path]) -> bool:
    """Whether all is as it was decided; prints the figures. The broker is stopped."""
    seen = [m for queue in range(QUEUES) for m in stored(cluster.store, TOPIC, queue)]
    keys = {message.unique_key for message in seen}
    committed, rolled_back = noted(notes, "C"), noted(notes, "R")
    missing = committed - keys
    visible = keys - committed
    again = list(unexcused(cluster.store, TOPIC, QUEUES))
    wrong = [key for key, marked in again if marked]
    print(
        f"{len(committed)} committed, {len(missing)} of them missing; "
        f"{len(rolled_back)} rolled back, {len(visible)} others visible; "
        f"{len(again)} delivered twice, {len(wrong)} of them marked before"
    )
    for what, found in (("missing", missing), ("visible", visible), ("twice", wrong)):
        if found:
            print(f"{what}: {sorted(map(str, found))[:10]}")
    return not missing and not visible and not wrong and len(committed) > 0


def main() -> int:
    """Kill in rounds, then check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--produce", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--flush", default="ASYNC_FLUSH")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true")
    words = parser.parse_args()
    if words.produce:
        address, number, note, stop = words.produce
        produce(address, int(number), Path(note), Path(stop))
    rounds = 5 if words.quick else words.rounds
    dice = random.Random(words.seed)
    cluster = Cluster(flushDiskType=words.flush, **SETTINGS).start()
    producers: list[subprocess.Popen[bytes]] = []
    try:
        Client(Settings(cluster.names)).create_topic(TOPIC, queues=QUEUES)
        notes = [cluster.folder / f"note{n}" for n in range(PRODUCERS)]
        stop = cluster.folder / "stop"
        for number, note in enumerate(notes):
            command = [sys.executable, __file__, "--inside", "--produce"]
            command += [cluster.address, str(number), str(note), str(stop)]
            producers.append(subprocess.Popen(command))
        for number in range(rounds):
            time.sleep(dice.uniform(0.05, 1.0))
            cluster.broker.stop(signal.SIGKILL)
            cluster.broker.start()
            if number % 20 == 19:
                print(f"killed {number + 1}, up again", flush=True)
        stop.touch()
        end = time.monotonic() + MOST_SECONDS
        while time.monotonic() < end:
            time.sleep(1)
            if noted(notes, "C") <= delivered(cluster.names):
                break
        # What should not be there has the time to come, too.
        time.sleep(2)
        for process in producers:
            process.kill()
            process.wait()
        cluster.broker.stop()
        good = check(cluster, notes)
        print(f"{rounds} kills, every restart came up")
        return 0 if good else 1
    finally:
        for process in producers:
            process.kill()
            process.wait()
        cluster.stop()


if __name__ == "__main__":
    sys.exit(main())
