"""What scripts that kill have in common: options, a load, kills, and the verdict.

A broker is up, and a load runs beside it: processes that send and write down what was
acknowledged, each in a I{note} of its own. The broker is killed (-9) again and again, a
part of the times while it starts. In the end all there is is read back and held against
the notes: nothing that was acknowledged may be missing, nothing may be there twice, and
the messages of one producer stand in the order in which they were sent. What was sent
and not acknowledged may be there or not.

A script that kills something else (an export, a stream, a master and its slave) has its
own load and takes the rest from here.

As a program, C{python -m scripts.torture.harness NAMES TOPIC NUMBER NOTE}, this is one
producer of the load.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.messages import Message
from rocketbroker.blocking.producer import Producer
from rocketbroker.blocking.puller import Puller, messages
from rocketbroker.blocking.settings import Settings
from rocketbroker.errors import RocketbrokerError
from rocketbroker.files.disk import Disk
from rocketbroker.records import record
from rocketbroker.records.record import StoredMessage
from rocketbroker.store.reader.directory import StoreReader
from scripts.lab.javabroker import JavaServer
from scripts.lab.rows import RowWords, add_rows, choose
from scripts.lab.servers import WORKERS, Cluster, Server, environment

# Options.


class Words(RowWords):
    """The words of a command line.

    @ivar rounds: how often something is done; None: until the time is over.
    @ivar seconds: after so many seconds no round begins any more; 0: that is no reason.
    @ivar workers: of each broker.
    @ivar directory: for stores, logs and notes, which are kept there; None: they are
        removed.
    """

    rounds: int | None
    seconds: float
    workers: int
    directory: Path | None
    seed: int

    def begin(self) -> None:
        """Count the time from now on."""
        self._end = time.monotonic() + self.seconds if self.seconds else float("inf")

    def has_time(self) -> bool:
        """Whether another round may begin."""
        return time.monotonic() < self._end

    def numbers(self) -> Iterator[int]:
        """The numbers of the rounds."""
        for number in count() if self.rounds is None else range(self.rounds):
            if not self.has_time():
                return
            yield number

    def kept(self, name: str) -> Path | None:
        """A directory of its own for a part of the run, if they are kept."""
        return None if self.directory is None else self.directory / name


def options(description: str | None) -> argparse.ArgumentParser:
    """What all such scripts understand."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for hidden in ("--inside", "--compiled"):
        parser.add_argument(hidden, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, metavar="N", help="how often it is done")
    parser.add_argument(
        "--seconds", type=float, default=0, metavar="S", help="begin no round after S"
    )
    parser.add_argument(
        "--workers", type=int, default=WORKERS, metavar="N", help="of each broker"
    )
    parser.add_argument(
        "--directory", type=Path, metavar="DIR", help="a new one, in which all is kept"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="a few rounds")
    return parser


def parsed(
    parser: argparse.ArgumentParser,
    rounds: int,
    quick: int,
    rows: Iterable[str] = (),
    line: Sequence[str] | None = None,
) -> Words:
    """Read the command line.

    @param rounds: how many rounds there are if neither they nor a time are given.
    @param quick: the same with C{--quick}.
    @param rows: the rows that it may name, if the script has some.
    @param line: its words, if they are not those of this program.
    """
    if rows:
        add_rows(parser)
    words = parser.parse_args(line, namespace=Words())
    if rows:
        choose(parser, words, rows)
    if words.directory is not None:
        if words.directory.exists() and any(words.directory.iterdir()):
            parser.error(f"{words.directory} is not empty")
        words.directory = words.directory.resolve()
        words.directory.mkdir(parents=True, exist_ok=True)
    if words.rounds is None and words.quick:
        words.rounds = quick
    elif words.rounds is None and not words.seconds:
        words.rounds = rounds
    words.begin()
    return words


@contextlib.contextmanager
def running(words: Words, **settings: object) -> Iterator[Cluster]:
    """A name server and a broker that are up, until the end of the context.

    @param settings: of the broker.
    """
    cluster = Cluster(words.directory, workers=words.workers, **settings)
    try:
        yield cluster.start()
    finally:
        cluster.stop()


def create_topics(names: str, queues: int, *topics: str) -> None:
    """Make topics."""
    with Client(Settings(names)) as client:
        for topic in topics:
            client.create_topic(topic, queues=queues)


# The load.

#: After so many sends a producer begins with a new connection: another worker may get
#: it, where one that came while no worker was there stays with the broker itself.
PER_CLIENT: Final = 1000


def produce(names: str, topic: str, number: int, note: Path) -> None:
    """Send until somebody ends this process; note each acknowledged message.

    They have all sizes, and come alone and in batches. A line is: identity, queue,
    queue offset.
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
        return Message(topic, body, tags=f"tag{serial % 3}", keys=[identity])

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


class Producers:
    """Processes that send, each with a note.

    @ivar notes: the note of each.
    """

    def __init__(self, folder: Path, number: int, module: str, *words: str) -> None:
        """
        @param folder: for their notes.
        @param number: how many.
        @param module: the program of each.
        @param words: what it is told before its own number and its note.
        """
        self.notes = [folder / f"note{each}" for each in range(number)]
        self._processes = [
            subprocess.Popen(
                [sys.executable, "-m", module, *words, str(each), str(note)],
                env=environment(),
            )
            for each, note in enumerate(self.notes)
        ]

    @classmethod
    def of_load(cls, cluster: Cluster, topic: str, number: int) -> Producers:
        """So many of L{produce}."""
        module = "scripts.torture.harness"
        return cls(cluster.folder, number, module, cluster.names, topic)

    def end(self) -> None:
        """Kill them."""
        for process in self._processes:
            process.kill()
            process.wait()

    def sizes(self) -> list[int]:
        """How much each has noted, in bytes."""
        return [note.stat().st_size if note.exists() else 0 for note in self.notes]

    def __enter__(self) -> Producers:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


# Kills.

#: One in so many kills falls into the start that comes after another one.
IN_START: Final = 5

#: How long a start takes at the most, for kills in the middle of it.
START_SECONDS: Final = 0.4


class Life(NamedTuple):
    """How long a broker was up.

    @ivar up_ms: the time of day when it was ready.
    @ivar killed_ms: and when it is killed.
    @ivar start_seconds: how long the start after that took.
    """

    up_ms: int
    killed_ms: int
    start_seconds: float = 0.0


def now_ms() -> int:
    """The time of day."""
    return time.time_ns() // 1_000_000


def kills(
    broker: Server | JavaServer,
    numbers: Iterable[int],
    dice: random.Random,
    pause: Callable[[int], float],
) -> Iterator[Life]:
    """Kill a broker that is up again and again, and start it anew each time.

    @param numbers: of the kills.
    @param pause: for so many seconds it is up before each; one of ours is killed in its
        start now and then instead.
    """
    up_ms = now_ms()
    for number in numbers:
        if isinstance(broker, Server) and number % IN_START == IN_START - 1:
            broker.stop(signal.SIGKILL)
            broker.launch()
            time.sleep(dice.uniform(0.0, START_SECONDS))
        else:
            time.sleep(pause(number))
        killed_ms = now_ms()
        broker.stop(signal.SIGKILL)
        begin = time.monotonic()
        broker.start()
        yield Life(up_ms, killed_ms, time.monotonic() - begin)
        up_ms = now_ms()


#: Of a job of Spark's: its program, the JVM of that, a worker, or all of them.
ROLES: Final = ("driver", "jvm", "worker", "group")

#: How long a job may take until it ends, in seconds.
PATIENCE: Final = 900.0


def kill_role(leader: int, role: str, dice: random.Random) -> bool:
    """Kill one role of a job; whether there was one.

    @param leader: the process of its program, which leads a session.
    """
    if role == "group":
        os.killpg(leader, signal.SIGKILL)
        return True
    names = dict(members(leader))
    jvms = [pid for pid, name in names.items() if "SparkSubmit" in name]
    workers = [
        pid
        for pid, name in names.items()
        if pid != leader and ("pyspark.daemon" in name or "multiprocessing" in name)
    ]
    found = {"driver": [leader], "jvm": jvms, "worker": workers}[role]
    if not found:
        return False
    try:
        os.kill(dice.choice(found), signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def members(leader: int) -> Iterator[tuple[int, str]]:
    """Number and command of each process of a session."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            session = int((folder / "stat").read_text().rpartition(")")[2].split()[3])
            if session == leader:
                yield int(folder.name), (folder / "cmdline").read_text()
        except (OSError, ValueError):
            continue


def end_session(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
    """Wait for a job, and end what it has left behind."""
    process.wait(PATIENCE)
    while left := [pid for pid, _ in members(process.pid)]:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


# Reading back.


class Hole(Exception):
    """A queue has not all offsets from 0 to its end."""


def read_back(
    names: str, topic: str, from_zero: bool = True
) -> Iterator[StoredMessage]:
    """All messages of a topic, queue by queue. A slave will do, if there is no master.

    @param from_zero: whether each queue must have its first message.
    @raise Hole: an offset is missing.
    """
    with Client(Settings(names, attempts=20)) as client:
        puller = Puller(client)
        for queue in client.queues(topic):
            first = puller.pull(queue, 0, 1)
            wanted, until = first.min_offset, first.max_offset
            if wanted and from_zero:
                raise Hole(f"{queue} begins at {wanted}")
            for chunk in puller.read(queue, wanted, until):
                for message in messages(chunk.data):
                    if message.queue_offset != wanted:
                        raise Hole(f"{queue} has no {wanted}")
                    wanted += 1
                    yield message
            if wanted != until:
                raise Hole(f"{queue} ends at {wanted}, not at {until}")


def places(names: str, topic: str) -> Iterator[tuple[str, int, int]]:
    """Broker, queue and offset of each message that a topic has."""
    with Client(Settings(names)) as client:
        for queue in client.queues(topic):
            for offset in range(client.max_offset(queue)):
                yield queue.broker, queue.queue_id, offset


def stored(store: Path, topic: str, queue_id: int = 0) -> list[StoredMessage]:
    """All that a queue of a stopped broker's store holds."""
    reader = StoreReader(Disk(), str(store))
    try:
        if queue_id not in reader.queues(topic):
            return []
        at = reader.min_offset(topic, queue_id)
        until = reader.max_offset(topic, queue_id)
        found: list[StoredMessage] = []
        while at < until:
            piece = reader.read(topic, queue_id, at, until)
            found.extend(record.decode(data) for data in piece.records)
            at = piece.next_offset
        return found
    finally:
        reader.close()


# The verdict.

#: So many of what is wrong are told.
EXAMPLES: Final = 10


class Verdict(NamedTuple):
    """What became of what was acknowledged.

    @ivar acknowledged: how much that was.
    @ivar stored: how much is there.
    @ivar missing: what is not there, or not where it was acknowledged.
    @ivar twice: what is there more than once.
    @ivar strange: what is there and was not acknowledged, which may be.
    @ivar disordered: how many stand before one that their producer had sent before.
    """

    acknowledged: int
    stored: int
    missing: list[str]
    twice: list[str]
    strange: list[str]
    disordered: int = 0

    @property
    def is_good(self) -> bool:
        """Whether something was acknowledged, and all of it is there once, in order."""
        wrong = self.missing or self.twice or self.disordered
        return not wrong and self.acknowledged > 0

    def __str__(self) -> str:
        return (
            f"{self.acknowledged} acknowledged, {self.stored} stored, "
            f"{len(self.missing)} missing, {len(self.twice)} twice, "
            f"{self.disordered} in another order"
        )

    def examples(self) -> Iterator[str]:
        """Some of what is wrong, a line each."""
        for what, found in (("missing", self.missing), ("twice", self.twice)):
            yield from (f"{what}: {each}" for each in found[:EXAMPLES])


def judge(acknowledged: Collection[Hashable], found: Iterable[Hashable]) -> Verdict:
    """Hold what is there against what was acknowledged.

    @param acknowledged: what each message is known by, and C{found} likewise.
    """
    expected, counts = set(acknowledged), Counter(found)
    return Verdict(
        len(expected),
        counts.total(),
        sorted(map(str, expected - counts.keys())),
        sorted(str(each) for each, number in counts.items() if number > 1),
        sorted(map(str, counts.keys() - expected)),
    )


def noted(note: Path, words: int) -> Iterator[list[str]]:
    """The lines of a note, as so many words each."""
    for line in note.read_text().splitlines():
        parts = line.split()
        # A process that was killed has ended in the middle of a line.
        if len(parts) == words:
            yield parts


def compare(names: str, topic: str, notes: Iterable[Path]) -> Verdict:
    """Read back a topic of L{produce}, and judge it.

    @raise Hole: a queue is not whole.
    """
    there: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for message in read_back(names, topic):
        identity = message.plain_body().split(b"\n", 1)[0].decode()
        there[identity].append((message.queue_id, message.queue_offset))
    acknowledged: set[str] = set()
    missing = []
    disordered = 0
    for note in notes:
        last: dict[int, int] = {}
        for identity, *numbers in noted(note, 3):
            queue, offset = map(int, numbers)
            acknowledged.add(identity)
            disordered += offset <= last.get(queue, -1)
            last[queue] = offset
            if (queue, offset) not in there.get(identity, ()):
                missing.append(f"{identity} at {queue}:{offset}")
    verdict = judge(acknowledged, (i for i, found in there.items() for _ in found))
    return verdict._replace(missing=missing, disordered=disordered)


if __name__ == "__main__":
    produce(sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
