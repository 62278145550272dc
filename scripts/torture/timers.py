#!/usr/bin/env python3
"""What timers promise, and what they cost.

    python3 scripts/torture/timers.py [--kit KIT] [--quick] [--realtime] [ROW ...]

Prints the figures of the rows that are named, or of all of them, with their bars; the
exit status is the number of bars that are missed, or of rows that could not be
measured.

The row I{week}: a timer for each second of three days, by a clock that the row
advances, so that it takes some minutes; each is delivered in its second. The row
I{second}: messages that are all due in the same second, the last of which is delivered
within a second; with KIT, a kit.py that runs the Java broker, what that takes, too. The
row I{pending}: the memory of a broker with as many timers as somebody may have, and its
starts. --quick: small loads, by which no times are judged.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.lab.inside import enter

if __name__ == "__main__":
    enter(__file__)

from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.frames import encode
from scripts.lab.peers import (
    BODY,
    Peer,
    Target,
    cpu,
    create_topic,
    memory,
    send_ext,
    wait_for,
)
from scripts.lab.rows import Figure, RowWords, measure_rows, row_words
from scripts.lab.servers import Cluster
from scripts.lab.targets import Scale
from scripts.torture.harness import stored

TOPIC = "Timers"
QUEUES = 4

#: How many are due in one second, how many wait, and over how many seconds.
SECOND = 100_000
PENDING = 1_000_000
DAYS_SECONDS = 250_000

#: The bars: lateness in ms, MiB, seconds.
MAX_LATE_MS = 1000
MAX_MEGABYTES = 60
MAX_START = 2.0

#: What sends so many timers a second at the least.
RATE = 1500

#: How long a broker may take for the rest of its work, in seconds.
PATIENCE = 300.0

#: Numbers in a frame that are put in place: of a send, and its time.
NUMBER = 1_000_000_000
TIME_MS = 1_000_000_000_000


def send(port: int, dues_ms: list[int]) -> int:
    """Send a message for each of these times; how many were refused."""
    ext = {
        **send_ext(TOPIC),
        "i": f"UNIQ_KEY\x01{NUMBER:032d}\x02TIMER_DELIVER_MS\x01{TIME_MS}\x02",
    }
    frames = []
    for queue in range(QUEUES):
        ext["e"] = str(queue)
        frame = encode(Command(RequestCode.SEND_MESSAGE_V2, ext, BODY))
        frames.append(frame.replace(b"%d" % TIME_MS, b"%(due)d"))
    peer = Peer(port)
    refused = 0
    number = b"%d" % NUMBER
    for start in range(0, len(dues_ms), 10_000):
        several = [
            frames[n % QUEUES]
            .replace(b"%(due)d", b"%d" % due_ms)
            .replace(number, b"%d" % (NUMBER + n))
            for n, due_ms in enumerate(dues_ms[start : start + 10_000], start)
        ]
        refused += sum(bool(answer.code) for answer in peer.ask_all(several))
    peer.close()
    return refused


def delivered(port: int) -> int:
    """How many messages the topic has."""
    peer = Peer(port)
    try:
        return sum(
            int((answer.ext or {})["offset"])
            for answer in (
                peer.done(
                    RequestCode.GET_MAX_OFFSET,
                    {"topic": TOPIC, "queueId": str(queue), "committed": "true"},
                )
                for queue in range(QUEUES)
            )
        )
    finally:
        peer.close()


def week(words: RowWords) -> Iterator[Figure | str]:
    """The test of three days, in its large form."""
    variables = {**os.environ, "ROCKETBROKER_HEAVY_TESTS": "0" if words.quick else "1"}
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "twisted.trial"]
            + [f"--temp-directory={folder}/trial", "tests.broker.timer.test_week"],
            cwd=Path(__file__).resolve().parents[2],
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        yield done.stdout[-2000:] + done.stderr[-2000:]
    yield Figure("took", time.monotonic() - begin, "s")
    yield Figure("tests that failed", int(bool(done.returncode)), "", 0, True)


def one_second(target: Target, count: int) -> Iterator[Figure | str]:
    """Load a broker with messages that are due at the same time."""
    create_topic(target.port, TOPIC, QUEUES)
    due_ms = (int(time.time() + count / RATE) + 6) * 1000
    refused = send(target.port, [due_ms] * count)
    if time.time_ns() // 1_000_000 > due_ms - 2000:
        yield "the sends took too long"
    while time.time_ns() // 1_000_000 < due_ms - 500:
        time.sleep(0.01)
    before = cpu(target.pid)

    def are_there() -> bool:
        # Seldom, as it costs the broker something, too.
        time.sleep(0.05)
        return delivered(target.port) == count - refused

    is_there = wait_for(are_there, PATIENCE)
    used = cpu(target.pid) - before
    yield Figure("refused", refused, "", 0, True)
    yield Figure("not delivered", 0 if is_there else 1, "", 0, True)
    yield Figure("CPU of the second", used, "s")
    late_ms = time.time_ns() // 1_000_000 - due_ms
    yield Figure("seen after", late_ms, "ms")


def second(words: RowWords) -> Iterator[Figure | str]:
    """Very many in one second."""
    scale = Scale(words.quick, words.kit)
    count = scale.of(SECOND, 5000)
    with scale.ours() as target:
        yield from one_second(target, count)
        assert target.cluster is not None
        target.cluster.broker.stop()
        late = [
            message.store_ms - int(message.properties["TIMER_DELIVER_MS"])
            for queue in range(QUEUES)
            for message in stored(target.cluster.store, TOPIC, queue)
        ]
    yield Figure("came", len(late), "", count, True, least=True)
    yield Figure("came early", sum(ms < 0 for ms in late), "", 0, True)
    yield Figure("the last was late by", max(late), "ms", MAX_LATE_MS)
    if words.kit is not None:
        with scale.java(words.kit) as target:
            for each in one_second(target, count):
                if isinstance(each, Figure):
                    yield each._replace(name=f"Java: {each.name}", bar=None)


def pending(words: RowWords) -> Iterator[Figure | str]:
    """Very many that wait."""
    count = 20_000 if words.quick else PENDING
    cluster = Cluster()
    broker = cluster.broker

    def resident() -> float:
        assert broker.process is not None
        return memory(broker.process.pid, "RssAnon")

    def started() -> float:
        begin = time.monotonic()
        broker.start()
        return time.monotonic() - begin

    try:
        cluster.start()
        create_topic(broker.port, TOPIC, QUEUES)
        send(broker.port, [int(time.time() * 1000) + 1000])
        empty = resident()
        begin_ms = (int(time.time()) + 3600) * 1000
        span = DAYS_SECONDS
        dues_ms = [begin_ms + n * span // count * 1000 for n in range(count)]
        yield Figure("refused", send(broker.port, dues_ms), "", 0, True)
        # All is entered, and written down.
        time.sleep(1 if words.quick else 10)
        yield Figure("memory for them", resident() - empty, "MiB", MAX_MEGABYTES)
        broker.stop()
        yield Figure("start", started(), "s", MAX_START)
        time.sleep(2)
        yield Figure("then, memory", resident() - empty, "MiB", MAX_MEGABYTES)
        broker.stop(signal.SIGKILL)
        # It looks at the end of the log, too, whatever there is in it.
        yield Figure("start after kill -9", started(), "s")
    finally:
        cluster.stop()


ROWS = {"week": week, "second": second, "pending": pending}


def main() -> int:
    """Measure the rows."""
    words = row_words(__doc__, ROWS)
    return measure_rows(ROWS, words)


if __name__ == "__main__":
    sys.exit(main())
