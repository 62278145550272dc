#!/usr/bin/env python3
"""kill -9 of the broker in the middle of transactions: each ends as its producer said.

    python3 scripts/torture/transactions.py [--rounds 200] [--seconds S] [--workers N]
        [--directory DIR] [--flush MODE] [--seed 1] [--quick]

Producers send half messages, note what they decide, and tell the broker, or leave it to
be asked. Every broker is killed at a random moment, one in five while it starts. At the
end each message whose half was acknowledged is there if its producer decided so, and no
other; one is there twice only if the broker died between the commit and the mark of it:
then the commit is the last record before a kill. Exit status 1 if not. What stood last
in the log at each kill is counted. --quick: 5 rounds.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from bisect import bisect_right
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.lab.inside import enter

if __name__ == "__main__":
    enter(__file__)

from rocketbroker.records.names import HALF_TOPIC, OP_HALF_TOPIC
from rocketbroker.records.properties import TRANSACTION_CHECK_TIMES
from rocketbroker.records.record import StoredMessage
from rocketbroker.wire.headers.send import (
    TRANSACTION_COMMIT,
    TRANSACTION_ROLLBACK,
    TRANSACTION_UNKNOWN,
)
from scripts.lab.servers import Cluster
from scripts.torture.harness import (
    EXAMPLES,
    Producers,
    create_topics,
    judge,
    kills,
    noted,
    options,
    parsed,
    read_back,
    running,
    stored,
)
from scripts.torture.transactional import TransactionalProducer
from scripts.torture.twice import delivered_again

MODULE = "scripts.torture.transactions"
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
MAX_SECONDS = 60.0


def produce(address: str, number: int, note: Path, stop: Path) -> None:
    """Begin and end transactions until C{stop} exists, then answer questions only.

    A line of the note is: unique key, C or R. It is written before the broker hears it.
    """
    dice = random.Random(number)
    outcomes: dict[str, int] = {}
    hesitates: set[str] = set()
    lines = open(note, "w", buffering=1)  # noqa: SIM115

    def decide(key: str) -> int | None:
        if key in hesitates:
            hesitates.discard(key)
            return dice.choice((None, TRANSACTION_UNKNOWN))
        return outcomes.get(key, TRANSACTION_ROLLBACK)

    def one(serial: int) -> None:
        key = f"K{number}N{serial}"
        half = producer.half(TOPIC, serial % QUEUES, key, key.encode() * 20)
        if half.code not in (0, 10):
            time.sleep(0.05)
            return
        kind = dice.choice("CCR")
        outcomes[key] = OUTCOMES[kind]
        lines.write(f"{key} {kind}\n")
        how = dice.random()
        if how < 0.1:
            hesitates.add(key)
        if how < 0.2:
            producer.end(TOPIC, half, TRANSACTION_UNKNOWN)
        elif how < 0.21:
            producer.serve(dice.uniform(0, 0.8))
            producer.end(TOPIC, half, outcomes[key])
        else:
            producer.end(TOPIC, half, outcomes[key])

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
    return {message.unique_key or "" for message in read_back(names, TOPIC)}


def decided(notes: list[Path], kind: str) -> set[str]:
    """The unique keys of the transactions that were decided so."""
    return {key for note in notes for key, how in noted(note, 2) if how == kind}


def kind_of(message: StoredMessage) -> str:
    """What a record of the log is for its transaction."""
    if message.topic == HALF_TOPIC:
        asked = TRANSACTION_CHECK_TIMES in message.properties
        return "copy" if asked else "half"
    return "mark" if message.topic == OP_HALF_TOPIC else "commit"


def last_before(
    messages: list[StoredMessage], killed_ms: list[int]
) -> list[StoredMessage]:
    """The last record before each kill."""
    messages = sorted(messages, key=lambda message: message.position)
    times = [message.store_ms for message in messages]
    found = [bisect_right(times, each) for each in killed_ms]
    return [messages[end - 1] for end in found if end]


def check(cluster: Cluster, notes: list[Path], killed_ms: list[int]) -> bool:
    """Whether all is as it was decided; prints the figures. The broker is stopped."""
    queues = [stored(cluster.store, TOPIC, queue) for queue in range(QUEUES)]
    halves = stored(cluster.store, HALF_TOPIC)
    marks = stored(cluster.store, OP_HALF_TOPIC)
    seen = [message for queue in queues for message in queue]
    last = last_before(halves + marks + seen, killed_ms)
    kinds = Counter(map(kind_of, last))
    print(
        f"{len(killed_ms)} kills; last in the log: "
        + ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())
    )
    committed, rolled_back = decided(notes, "C"), decided(notes, "R")
    verdict = judge(committed, (message.unique_key for message in seen))
    last_positions = {message.position for message in last}
    again = [
        (str(older.unique_key), marked or older.position not in last_positions)
        for queue in queues
        for older, marked in delivered_again(halves, marks, queue)
    ]
    wrong = [key for key, is_wrong in again if is_wrong]
    print(
        f"{len(committed)} committed, {len(verdict.missing)} of them missing; "
        f"{len(rolled_back)} rolled back, {len(verdict.strange)} others visible; "
        f"{len(again)} delivered twice, {len(wrong)} of them without a kill between "
        "commit and mark"
    )
    for what, found in (
        ("missing", verdict.missing),
        ("visible", verdict.strange),
        ("twice", wrong),
    ):
        if found:
            print(f"{what}: {found[:EXAMPLES]}")
    return not (verdict.missing or verdict.strange or wrong) and bool(committed)


def settle(cluster: Cluster, notes: list[Path]) -> None:
    """Wait until all that is committed is there."""
    end = time.monotonic() + MAX_SECONDS
    while time.monotonic() < end:
        time.sleep(1)
        if decided(notes, "C") <= delivered(cluster.names):
            break
    # What should not be there has the time to come, too.
    time.sleep(2)


def main() -> int:
    """Kill in rounds, then check."""
    parser = options(__doc__)
    parser.add_argument("--produce", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--flush", default="ASYNC_FLUSH", metavar="MODE")
    words = parsed(parser, 200, 5)
    if words.produce:
        address, stop, number, note = words.produce
        produce(address, int(number), Path(note), Path(stop))
    dice = random.Random(words.seed)
    with running(words, flushDiskType=words.flush, **SETTINGS) as cluster:
        create_topics(cluster.names, QUEUES, TOPIC)
        stop = cluster.folder / "stop"
        command = ["--inside", "--produce", cluster.address, str(stop)]
        with Producers(cluster.folder, PRODUCERS, MODULE, *command) as producers:
            killed_ms = []
            broker, pause = cluster.broker, lambda _: dice.uniform(0.05, 0.8)
            for life in kills(broker, words.numbers(), dice, pause):
                killed_ms.append(life.killed_ms)
                if len(killed_ms) % 20 == 0:
                    print(f"killed {len(killed_ms)}, up again", flush=True)
            stop.touch()
            settle(cluster, producers.notes)
        cluster.broker.stop()
        good = check(cluster, producers.notes, killed_ms)
    print(f"{len(killed_ms)} kills, every restart came up")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
