#!/usr/bin/env python3
"""kill -9 of streams of Spark, by role: what comes twice, and that nothing is missing.

    python3 scripts/torture/stream_kills.py [--rounds 30] [--seconds S] [--workers N]
        [--directory DIR] [--lane LANE] [--seed 1] [--quick]

Lanes are C{source}, a topic into Parquet files, and C{sink}, a topic into another one;
both in turn unless one is named, each for so many rounds or seconds. While messages
come, a program streams them; in each round one role of it is killed at a random moment:
the driver, its JVM, one worker, or the whole group; one in five while it starts. The
next round goes on from the same checkpoint. At the end a last run reads to the end of
the topic.

In the files that the stream's own log lists each offset has to be once. In the other
topic each message has to be at least once; those that are there more often are counted,
and have to carry the same stamp. The exit status is the number of lanes that fail.
--quick: 3 rounds.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.lab.inside import enter

if __name__ == "__main__":
    enter(__file__)

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.messages import Message
from rocketbroker.blocking.producer import Producer
from rocketbroker.blocking.settings import Settings
from rocketbroker.spark.sessions import local_session
from rocketbroker.spark.sink import STAMP
from scripts.lab.servers import Cluster, environment
from scripts.torture.harness import (
    IN_START,
    ROLES,
    create_topics,
    end_session,
    judge,
    kill_role,
    options,
    parsed,
    places,
    read_back,
    running,
)

QUEUES = 4

#: Messages of one send, and the pause behind it, in seconds.
PORTION = 50
PAUSE = 0.1

#: A start takes so many seconds at most; after a micro-batch, kills come within AFTER.
START_SECONDS = 6.0
AFTER = 1.5

#: A program has done something within so many seconds.
PROGRESS_SECONDS = 300.0


def topic(lane: str) -> str:
    """Where a lane's messages come from."""
    return f"Streamed-{lane}"


def target(lane: str) -> str:
    """Where those of C{sink} go."""
    return f"{topic(lane)}-again"


class Feeder(threading.Thread):
    """Sends numbered messages until it is told to stop.

    @ivar sent: how many were acknowledged.
    """

    def __init__(self, names: str, lane: str) -> None:
        super().__init__(daemon=True)
        self._names = names
        self._topic = topic(lane)
        self._ends = threading.Event()
        self.sent = 0

    def run(self) -> None:
        """Send."""
        with Client(Settings(self._names)) as client:
            producer = Producer(client)
            while not self._ends.wait(PAUSE):
                numbers = range(self.sent, self.sent + PORTION)
                batch = (Message(self._topic, b"%d" % each) for each in numbers)
                for result in producer.send_all(batch):
                    assert result.status == 0
                self.sent += PORTION

    def stop(self) -> int:
        """End; how many messages there are."""
        self._ends.set()
        self.join()
        return self.sent


def drive(lane: str, names: str, folder: str, finish: bool) -> None:
    """The program that is killed.

    @param finish: read to the end, and print what is in the files.
    """
    spark = local_session("stream kills", 2, f"{folder}/spark.log")
    rows = (
        spark.readStream.format("rocketmq")
        .option("nameServer", names)
        .option("subscribe", topic(lane))
        .option("startingOffsets", "earliest")
        .load()
    )
    if lane == "source":
        writer = rows.writeStream.format("parquet").option("path", f"{folder}/rows")
    else:
        writer = rows.select("body").writeStream.format("rocketmq")
        writer = writer.option("nameServer", names).option("topic", target(lane))
        writer = writer.option("idempotent", "true")
    writer = writer.option("checkpointLocation", f"{folder}/checkpoint")
    if finish:
        writer = writer.trigger(availableNow=True)
    writer.start().awaitTermination()
    if lane == "source":
        found = spark.read.parquet(f"{folder}/rows")
        places = found.select("brokerName", "queueId", "queueOffset").collect()
        counts = Counter(tuple(place) for place in places)
        print(json.dumps(sorted([*place, n] for place, n in counts.items())))
    spark.stop()


def start(lane: str, names: str, folder: Path, *more: str) -> subprocess.Popen[str]:
    """Start the program."""
    words = ["--drive", lane, names, str(folder), *more]
    with open(folder / "driver.log", "a") as log:
        return subprocess.Popen(
            [sys.executable, __file__, "--inside", *words],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )


def batches(folder: Path) -> int:
    """How many micro-batches are done."""
    return len([*(folder / "checkpoint" / "commits").glob("[0-9]*")])


def disturb(lane: str, names: str, folder: Path, role: str, dice: random.Random) -> str:
    """Run the program and kill a role of it; when that was."""
    process = start(lane, names, folder)
    began, done = time.monotonic(), batches(folder)
    at_start = dice.randrange(IN_START) == 0
    if at_start:
        role = "group"
        time.sleep(dice.uniform(0, START_SECONDS))
    else:
        while batches(folder) == done and process.poll() is None:
            if time.monotonic() - began > PROGRESS_SECONDS:
                break
            time.sleep(0.01)
        time.sleep(dice.uniform(0, AFTER))
    hit = kill_role(process.pid, role, dice)
    if not hit or role == "worker":
        # A query may live on without a worker.
        time.sleep(AFTER)
        if process.poll() is None:
            kill_role(process.pid, "group", dice)
    end_session(process)
    place = "while it starts" if at_start else f"{batches(folder) - done} batches done"
    return f"{role}, {place}" + ("" if hit else " (was not there)")


def result(lane: str, names: str, folder: Path, sent: int) -> Iterator[str]:
    """Read to the end; what is wrong, in sentences, and what is there, printed."""
    process = start(lane, names, folder, "--finish")
    output, _ = process.communicate(timeout=2 * PROGRESS_SECONDS)
    if process.returncode:
        yield f"the last run ended with {process.returncode}"
        return
    if lane == "source":
        rows = json.loads(output.splitlines()[-1])
        there = [tuple(place) for *place, count in rows for _ in range(count)]
        verdict = judge({*places(names, topic(lane))}, there)
        stamps = 0
    else:
        found = [
            (each.body, each.properties.get(STAMP))
            for each in read_back(names, target(lane))
        ]
        bodies = [body for body, _ in found]
        verdict = judge({b"%d" % number for number in range(sent)}, bodies)
        stamps = len(set(found)) - len(set(bodies))
    print(f"{lane}: {sent} sent, {verdict}, {batches(folder)} batches", flush=True)
    if verdict.missing or verdict.strange:
        yield f"{len(verdict.missing)} messages are missing"
    if lane == "source" and verdict.twice:
        yield f"{len(verdict.twice)} rows are there more than once"
    if stamps:
        yield f"{stamps} messages came again with another stamp"


def run_lane(
    lane: str, cluster: Cluster, numbers: Iterable[int], dice: random.Random
) -> list[str]:
    """All rounds of a lane; what is wrong at the end."""
    folder = cluster.folder / lane
    folder.mkdir()
    create_topics(cluster.names, QUEUES, topic(lane), target(lane))
    feeder = Feeder(cluster.names, lane)
    feeder.start()
    for number in numbers:
        role = ROLES[number % len(ROLES)]
        told = disturb(lane, cluster.names, folder, role, dice)
        print(f"{lane} {number + 1:3} {told}", flush=True)
    faults = [*result(lane, cluster.names, folder, feeder.stop())]
    print(f"{lane}: {'; '.join(faults) or 'whole'}", flush=True)
    return faults


def main() -> int:
    """Do all of it; the number of lanes in which something is wrong."""
    parser = options(__doc__)
    parser.add_argument("--drive", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--finish", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--lane", choices=("source", "sink"))
    words = parsed(parser, 30, 3)
    if words.drive:
        lane, names, folder = words.drive
        drive(lane, names, folder, words.finish)
        return 0
    lanes = [words.lane] if words.lane else ["source", "sink"]
    dice = random.Random(words.seed)
    with running(words) as cluster:
        wrong = 0
        for lane in lanes:
            words.begin()
            wrong += bool(run_lane(lane, cluster, words.numbers(), dice))
    return wrong


if __name__ == "__main__":
    sys.exit(main())
