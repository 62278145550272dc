#!/usr/bin/env python3
"""kill -9 of the broker under load: nothing acknowledged may be missing.

    python3 scripts/torture/crash.py [--rounds 50] [--producers 8] [--flush MODE]
                                     [--quick] [--workers N [--soak SECONDS]]

Producers send messages of all sizes, single and in batches, and note what the broker
acknowledged. After the last restart every queue is read from 0 to its end: offsets must
be dense, and each acknowledged message must stand where the broker said, those of one
producer in the order in which it sent them. Exit status 1 if not, or if a restart does
not come up. --quick: 3 rounds.

With --soak the broker is left alone for so long. Each second one of its workers is
killed, and at the end no producer may have stopped.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.lab.inside import enter

if __name__ == "__main__":
    enter(__file__)

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.messages import Message
from rocketbroker.blocking.producer import Producer
from rocketbroker.blocking.puller import Puller, messages
from rocketbroker.blocking.settings import Settings
from rocketbroker.errors import RocketbrokerError
from scripts.lab.peers import wait_for
from scripts.lab.servers import Cluster, workers_of
from scripts.torture.kills import Producers, arguments, kill

TOPIC = "Crash"
QUEUES = 4

#: After so many sends a producer begins with a new connection: another worker may get
#: it, where one that came while no worker was there stays with the broker itself.
PER_CLIENT = 1000

#: So long a producer may need until it goes on after the last kill.
GO_ON_SECONDS = 30.0

#: Small files, so that many of them begin and end while the broker dies.
SMALL = {
    "mappedFileSizeCommitLog": 4 << 20,
    "mappedFileSizeConsumeQueue": 20000,
}


def produce(names: str, number: int, note: Path) -> None:
    """Send until somebody ends this process; note each acknowledged message.

    A line is: identity, queue, queue offset.
    """
    dice = random.Random(number)
    settings = Settings(names, seconds=2.0, attempts=1)
    client = Client(settings)
    producer = Producer(client)
    serial = 0

    def message() -> Message:
        nonlocal serial
        serial += 1
        identity = f"{number}.{serial}"
        filler = dice.randbytes(int(dice.paretovariate(1) * 100) % 20000)
        body = identity.encode() + b"\n" + filler
        return Message(TOPIC, body, tags=f"tag{serial % 3}", keys=[identity])

    with open(note, "w") as lines:
        for round_number in count():
            if round_number % PER_CLIENT == PER_CLIENT - 1:
                client.close()
                client = Client(settings)
                producer = Producer(client)
            several = [message() for _ in range(dice.choice((1, 1, 1, 8)))]
            try:
                if len(several) == 1:
                    results = [producer.send(several[0])]
                else:
                    results = producer.send_batch(several)
            except RocketbrokerError:
                time.sleep(0.05)
                continue
            at = iter(several)
            for result in results:
                if result.status != 0:
                    continue
                for offset, _ in enumerate(result.message_ids, result.queue_offset):
                    identity = next(at).properties["KEYS"]
                    lines.write(f"{identity} {result.queue.queue_id} {offset}\n")
            lines.flush()


def stored(names: str) -> Iterator[tuple[str, int, int]]:
    """Identity, queue and offset of each message that the broker has."""
    client = Client(Settings(names))
    for queue in client.queues(TOPIC):
        start, until = client.min_offset(queue), client.max_offset(queue)
        assert start == 0, f"{queue} begins at {start}"
        wanted = 0
        for chunk in Puller(client).read(queue, start, until):
            for found in messages(chunk.data):
                assert found.queue_offset == wanted, f"{queue}: a hole at {wanted}"
                wanted += 1
                identity = found.plain_body().split(b"\n", 1)[0].decode()
                yield identity, queue.queue_id, found.queue_offset
        assert wanted == until, f"{queue} ends at {wanted}, not at {until}"


class Compared(NamedTuple):
    """How many messages were acknowledged, are stored, are missing, and how many stand
    before one that their producer had sent before."""

    acknowledged: int
    stored: int
    missing: int
    disordered: int


def compared(names: str, notes: list[Path]) -> Compared:
    """Look for all that was acknowledged; prints what is not there."""
    places: dict[tuple[int, int], str] = {}
    for identity, queue, offset in stored(names):
        places[queue, offset] = identity
    acknowledged = wrong = disordered = 0
    for note in notes:
        last: dict[int, int] = {}
        for line in note.read_text().splitlines():
            parts = line.split()
            if len(parts) != 3:
                continue  # the process ended in the middle of a line
            acknowledged += 1
            queue, offset = int(parts[1]), int(parts[2])
            disordered += offset <= last.get(queue, -1)
            last[queue] = offset
            if places.get((queue, offset)) != parts[0]:
                wrong += 1
                print(f"not where it was acknowledged: {line}")
    return Compared(acknowledged, len(places), wrong, disordered)


def check(names: str, notes: list[Path]) -> bool:
    """Whether all that was acknowledged is there; prints the figures."""
    found = compared(names, notes)
    print(f"{found.acknowledged} acknowledged, {found.stored} stored,", end=" ")
    print(f"{found.missing} missing, {found.disordered} in another order,", end=" ")
    print("queue offsets dense")
    return not found.missing and not found.disordered and found.acknowledged > 0


def soak(cluster: Cluster, notes: list[Path], seconds: float, seed: int) -> bool:
    """Kill a worker of the broker each second; whether all producers went on."""
    dice = random.Random(seed)
    assert cluster.broker.process is not None
    owner = cluster.broker.process.pid
    kills = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(1)
        workers = workers_of(owner)
        if not workers:
            continue
        os.kill(dice.choice(workers), signal.SIGKILL)
        kills += 1
        if kills % 60 == 0:
            size = sum(note.stat().st_size for note in notes)
            print(f"killed {kills}; {size >> 10} KiB of notes", flush=True)
    sizes = [note.stat().st_size for note in notes]
    went_on = wait_for(
        lambda: all(
            note.stat().st_size > size for note, size in zip(notes, sizes, strict=True)
        ),
        GO_ON_SECONDS,
    )
    print(f"{kills} workers killed; producers {'go on' if went_on else 'have stopped'}")
    return went_on


def main() -> int:
    """Kill in rounds, then check."""
    parser = arguments(__doc__, 50)
    parser.add_argument("--producers", type=int, default=8)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--soak", type=float, default=0)
    words = parser.parse_args()
    if words.produce:
        names, number, note = words.produce
        produce(names, int(number), Path(note))
    rounds = 3 if words.quick else words.rounds
    settings = {**SMALL, "workers": words.workers, "flushDiskType": words.flush}
    cluster = Cluster(**settings).start()
    producers = None
    slowest = 0.0
    try:
        Client(Settings(cluster.names)).create_topic(TOPIC, queues=QUEUES)
        producers = Producers(__file__, cluster.names, cluster.folder, words.producers)
        time.sleep(1)
        good = True
        if words.soak:
            rounds = 0
            good = soak(cluster, producers.notes, words.soak, words.seed)
        kills = kill(cluster, rounds, random.Random(words.seed), 0.2, 1.2)
        for number, (_, seconds) in enumerate(kills):
            slowest = max(slowest, seconds)
            size = sum(p.stat().st_size for p in producers.notes if p.exists())
            print(f"killed {number + 1}, up again; {size >> 10} KiB of notes")
        time.sleep(1)
        producers.end()
        good = check(cluster.names, producers.notes) and good
        if rounds:
            print(f"{rounds} kills, every restart came up, the slowest", end=" ")
            print(f"in {slowest:.2f} s")
        return 0 if good else 1
    finally:
        if producers is not None:
            producers.end()
        cluster.stop()


if __name__ == "__main__":
    sys.exit(main())
