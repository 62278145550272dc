#!/usr/bin/env python3
"""kill -9 of the broker under load: nothing acknowledged may be missing.

    python3 scripts/torture/crash.py [--rounds 50] [--seconds S] [--workers N]
        [--directory DIR] [--producers 8] [--kill broker|worker] [--flush MODE]
        [--seed 1] [--quick]

Producers send messages of all sizes, single and in batches, and note what the broker
acknowledged. After the last restart every queue is read from 0 to its end: offsets must
be dense, and each acknowledged message must stand where the broker said, once, those of
one producer in the order in which it sent them. Exit status 1 if not, or if a restart
does not come up. --quick: 3 rounds.

With --kill worker the broker is left alone. In each round, a second after the one
before, one of its workers is killed, and at the end no producer may have stopped.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.lab.inside import enter

if __name__ == "__main__":
    enter(__file__)

from scripts.lab.peers import wait_for
from scripts.lab.servers import Server, workers_of
from scripts.torture.harness import (
    Producers,
    Words,
    compare,
    create_topics,
    kills,
    options,
    parsed,
    running,
)

TOPIC = "Crash"
QUEUES = 4

#: So long a producer may need until it goes on after the last kill.
GO_ON_SECONDS = 30.0

#: Small files, so that many of them begin and end while the broker dies.
SMALL = {
    "mappedFileSizeCommitLog": 4 << 20,
    "mappedFileSizeConsumeQueue": 20000,
}


def kill_broker(words: Words, broker: Server, producers: Producers) -> bool:
    """Kill it in rounds; every restart comes up, or raises."""
    dice = random.Random(words.seed)
    lives = kills(broker, words.numbers(), dice, lambda _: dice.uniform(0.2, 1.2))
    done, slowest = 0, 0.0
    for done, life in enumerate(lives, 1):
        slowest = max(slowest, life.start_seconds)
        size = sum(producers.sizes())
        print(f"killed {done}, up again; {size >> 10} KiB of notes", flush=True)
    print(f"{done} kills, every restart came up, the slowest in {slowest:.2f} s")
    return True


def kill_workers(words: Words, broker: Server, producers: Producers) -> bool:
    """Kill a worker of it each second; whether all producers went on."""
    dice = random.Random(words.seed)
    assert broker.process is not None
    killed = 0
    for _ in words.numbers():
        time.sleep(1)
        if workers := workers_of(broker.process.pid):
            os.kill(dice.choice(workers), signal.SIGKILL)
            killed += 1
            if killed % 60 == 0:
                size = sum(producers.sizes())
                print(f"killed {killed}; {size >> 10} KiB of notes", flush=True)
    sizes = producers.sizes()

    def all_grow() -> bool:
        return all(
            now > then for now, then in zip(producers.sizes(), sizes, strict=True)
        )

    went_on = wait_for(all_grow, GO_ON_SECONDS)
    print(
        f"{killed} workers killed; producers {'go on' if went_on else 'have stopped'}"
    )
    return went_on


VICTIMS = {"broker": kill_broker, "worker": kill_workers}


def main() -> int:
    """Kill in rounds, then look."""
    parser = options(__doc__)
    parser.add_argument("--producers", type=int, default=8)
    parser.add_argument("--kill", choices=[*VICTIMS], default="broker")
    parser.add_argument("--flush", default="ASYNC_FLUSH", metavar="MODE")
    words = parsed(parser, 50, 3)
    with running(words, flushDiskType=words.flush, **SMALL) as cluster:
        create_topics(cluster.names, QUEUES, TOPIC)
        with Producers.of_load(cluster, TOPIC, words.producers) as producers:
            time.sleep(1)
            good = VICTIMS[words.kill](words, cluster.broker, producers)
            time.sleep(1)
        verdict = compare(cluster.names, TOPIC, producers.notes)
    print(*verdict.examples(), f"{verdict}; queue offsets dense", sep="\n")
    return 0 if good and verdict.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
