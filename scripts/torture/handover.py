"""A store's directory that brokers use one after the other, and what was sent to it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.settings import Settings
from rocketbroker.files.disk import Disk
from rocketbroker.records.names import SCHEDULE_TOPIC
from rocketbroker.records.record import SIZE_AND_MAGIC, StoredMessage
from rocketbroker.records.record_head import MAGIC_BLANK
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.storetools import inspect
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.fastjson import loads
from scripts.lab.javabroker import JavaBroker
from scripts.lab.javaclient import JavaClient, JavaError
from scripts.lab.servers import PATIENT, Cluster, environment
from scripts.torture import corpus
from scripts.torture.corpus import Seen
from scripts.torture.harness import read_back

#: The client that goes with a broker.
CLIENTS = {"5.5.0": "5.5.0", "5.3.3": "5.3.3", "4.9.7": "4.9.8"}

#: How long delayed messages wait: those of the last level to the end.
LEVELS = "1s 10s 2h"
LAST_LEVEL = 3
LONGEST_DELAY = 10

#: A broker is killed midway when the notes have so many bytes a message; in the end
#: they have about 50.
PART_BYTES = 15

#: How long all others may take until they are delivered, in seconds, beyond which a
#: broker has forgotten them: those that wait were there 10 s before.
MAX_SECONDS = 180.0

#: Small files, so that many begin and end on both sides.
SETTINGS = {
    "mappedFileSizeCommitLog": 16 << 20,
    "mappedFileSizeConsumeQueue": 40_000,
    "maxHashSlotNum": 50_000,
    "maxIndexNum": 100_000,
    "messageDelayLevel": LEVELS,
    **PATIENT,
}


class Notes:
    """What has been sent, and what must be seen of it.

    @ivar sent: of each number, its queue, queue offset and unique key.
    @ivar delayed: the level of each number that was sent with a delay: such a message
        stands in no queue of its topic at once.
    @ivar open: numbers of messages that may be there without having been acknowledged,
        as their broker was killed.
    """

    def __init__(self) -> None:
        self.open: set[int] = set()
        self.sent: dict[int, tuple[int, int, str]] = {}
        self.delayed: dict[int, int] = {}

    def add(self, path: Path, delays: bool) -> None:
        """What Java has noted of its sends."""
        for found in path.read_text().splitlines():
            number, queue, offset, key = found.split("\t")
            self.sent[int(number)] = int(queue), int(offset), key
            if delays and (level := corpus.level(int(number))):
                self.delayed[int(number)] = level

    def problems(
        self, all_seen: Iterable[Seen], delivered: bool, twice: bool
    ) -> list[str]:
        """What is not as it must be with the messages of the topics.

        @param delivered: whether the delayed ones must have arrived, but for those of
            the last level, which must not.
        @param twice: whether a delayed one may be there more than once.
        """
        wrong: list[str] = []
        left = self.sent.keys() - self.delayed.keys()
        late = {n for n, level in self.delayed.items() if level < LAST_LEVEL}
        for seen in all_seen:
            n = seen.number
            if seen.line != corpus.line(n):
                wrong.append(f"{seen} is {corpus.line(n)!r}")
            elif n not in self.sent:
                if n not in self.open:
                    wrong.append(f"{seen} was not sent")
            elif n in left:
                left.discard(n)
                if self.sent[n][:2] != (seen.queue, seen.offset):
                    wrong.append(f"{seen} should be at {self.sent[n]}")
            elif n in late:
                late.discard(n)
            elif self.delayed.get(n) == LAST_LEVEL:
                wrong.append(f"{seen} has to wait")
            elif n not in self.delayed or not twice:
                wrong.append(f"{seen} is there twice")
        if delivered:
            left |= late
        wrong.extend(f"{n} is missing" for n in sorted(left)[:10])
        return wrong


def queue_by_queue(names: str, topics: Iterable[str]) -> Iterator[Seen]:
    """All messages of topics, read by our client; see L{read_back}."""
    for topic in topics:
        yield from map(corpus.seen, read_back(names, topic))


def are_delivered(client: Client, levels: Iterable[int]) -> bool:
    """Whether the master has delivered all delayed messages of some levels."""
    (address,) = client.masters().values()
    answer = client.ask_server(address, RequestCode.GET_ALL_DELAY_OFFSET)
    value: Any = loads(answer.body)
    offsets = {int(level): at for level, at in value["offsetTable"].items()}
    for level in levels:
        fields = {"topic": SCHEDULE_TOPIC, "queueId": str(level - 1)}
        end = client.ask_server(address, RequestCode.GET_MAX_OFFSET, fields).ext or {}
        if offsets.get(level, 0) < int(end["offset"]):
            return False
    return True


class CorpusClient:
    """The official client, which sends the corpus and reads it.

    @ivar notes: what it has sent.
    @ivar longest_delay: of those that must arrive, in seconds.
    @ivar max_seconds: how long a part of the corpus may take, and how long delayed
        messages until all are delivered.
    """

    longest_delay = LONGEST_DELAY
    max_seconds = MAX_SECONDS

    def __init__(self, version: str, names: str, folder: Path) -> None:
        """
        @param version: of the Java broker that it goes with.
        @param names: the name server.
        @param folder: for its files.
        """
        self.version = version
        self.names = names
        self.folder = folder
        self.notes = Notes()
        self.written = 0.0
        self.client: JavaClient | None = None

    def driver(self) -> JavaClient:
        """The official client, with a producer called p."""
        if self.client is None:
            version = CLIENTS[self.version]
            self.client = JavaClient(version, self.names, self.folder)
            self.client("producer", name="p", group="corpus", compressOver=4096)
        return self.client

    def write(
        self, start: int, count: int, kill: Callable[[], object] | None = None
    ) -> None:
        """Send so many messages from a number on, to the broker that is up.

        @param kill: kills it, when it has acknowledged a part of them.
        """
        note = self.folder / f"sent-{start}"
        words = {"from": start, "to": start + count, "delays": True}
        driver = self.driver()
        watch = Thread(target=self._watch, args=(note, count * PART_BYTES, kill))
        if kill is not None:
            self.notes.open |= set(range(start, start + count))
            watch.start()
        try:
            driver("writeCorpus", name="p", broker="broker-a", note=str(note), **words)
        except JavaError:
            if kill is None:
                raise
        finally:
            if kill is not None:
                watch.join()
        self.notes.add(note, delays=True)
        self.written = time.monotonic()

    def _watch(self, note: Path, size: int, kill: Callable[[], object]) -> None:
        end = time.monotonic() + self.max_seconds
        while time.monotonic() < end:
            if note.exists() and note.stat().st_size > size:
                break
            time.sleep(0.01)
        kill()

    def read_by_java(
        self, topic: str, queues: int, ends: list[int] | None = None
    ) -> Iterator[Seen]:
        """All messages of a topic, as the official client has them.

        @param ends: where the queues end, if there is no master who could say it.
        """
        folder = self.folder / "read" / topic
        folder.mkdir(parents=True, exist_ok=True)
        self.driver()(
            "readCorpus",
            topic=topic,
            broker="broker-a",
            queues=queues,
            folder=str(folder),
            **({} if ends is None else {"ends": ends}),
        )
        for queue in range(queues):
            found = corpus.noted((folder / str(queue)).read_text("utf-8"))
            for wanted, seen in enumerate(found):
                assert seen.offset == wanted, f"{topic}/{queue}: no {wanted}"
                yield seen

    def wait_until_delivered(self) -> None:
        """Let pass what delays are left, and wait for what is due then.

        The number of messages alone does not tell: after a kill some come twice.
        """
        notes = self.notes
        wanted = len(notes.sent)
        wanted -= sum(level == LAST_LEVEL for level in notes.delayed.values())
        end = time.monotonic() + self.max_seconds
        count = before = -1
        with Client(Settings(self.names, attempts=20)) as client:
            queues = [q for topic in corpus.TOPICS for q in client.queues(topic)]
            while (
                count < wanted
                or count != before
                or time.monotonic() < self.written + self.longest_delay + 1
                or not are_delivered(client, range(1, LAST_LEVEL))
            ):
                assert time.monotonic() < end, f"{count} messages of {wanted} are there"
                time.sleep(0.5)
                before, count = count, sum(map(client.max_offset, queues))


class HandOver(CorpusClient):
    """One directory, and those who use it one after the other."""

    def __init__(
        self, version: str, folder: Path | None = None, /, **more: object
    ) -> None:
        """
        @param version: of the Java broker.
        @param folder: see L{Cluster}.
        @param more: settings of both.
        """
        settings = {**SETTINGS, **more}
        self.cluster = cluster = Cluster(folder, **settings)
        super().__init__(version, cluster.names, cluster.folder)
        base = cluster.broker.port
        self.java = JavaBroker(
            version,
            cluster.folder / "java",
            {
                "brokerClusterName": "DefaultCluster",
                "brokerName": "broker-a",
                "brokerId": 0,
                "brokerIP1": "127.0.0.1",
                "brokerIP2": "127.0.0.1",
                "listenPort": base,
                "haListenPort": base + 1,
                "namesrvAddr": cluster.names,
                "storePathRootDir": cluster.store,
                "storePathCommitLog": cluster.store / "commitlog",
                **settings,
            },
        )
        cluster.namesrv.start()

    def start_java(self) -> None:
        """Start the Java broker, and let clients find it."""
        self.java.start()
        self.driver()("announce", address=self.cluster.address)

    def stop(self) -> None:
        """Leave nothing running, and no files."""
        if self.client is not None:
            self.client.stop()
        self.java.stop(signal.SIGKILL)
        self.cluster.stop()

    def waiting(self) -> dict[int, int]:
        """The level of each delayed message, as the store has them; those that were
        delivered stay there."""
        found = {}
        reader = StoreReader(Disk(), str(self.cluster.store))
        try:
            for level in range(1, LAST_LEVEL + 1):
                for message in inspect.messages(
                    reader, SCHEDULE_TOPIC, level - 1, 0, None
                ):
                    assert isinstance(message, StoredMessage), message
                    seen = corpus.seen(message)
                    assert seen.line == corpus.line(seen.number), seen
                    found[seen.number] = level
        finally:
            reader.close()
        return found

    def queues_reach_end(self) -> bool:
        """Whether the queues have all that the log has: a broker that is killed has not
        entered yet what it appended in its last millisecond, messages that were due
        then, say."""
        reader = StoreReader(Disk(), str(self.cluster.store))
        try:
            end = 0
            for topic in reader.topics():
                for queue in reader.queues(topic):
                    last = reader.max_offset(topic, queue) - 1
                    for position, size, _ in reader.entries(topic, queue, last):
                        end = max(end, position + size)
            heads = (
                segment.pread(SIZE_AND_MAGIC.size, max(0, end - segment.start))
                for segment in reader.segments
                if end < segment.end
            )
            magics = (SIZE_AND_MAGIC.unpack(head)[1] for head in heads)
            return all(magic in (0, MAGIC_BLANK) for magic in magics)
        finally:
            reader.close()

    def store(self, verb: str) -> tuple[int, str, str]:
        """C{rocketbroker store} of the directory: status, output, errors."""
        done = subprocess.run(
            [sys.executable, "-m", "rocketbroker.cli.command", "store", verb]
            + [str(self.cluster.store), "--output", "json"],
            capture_output=True,
            text=True,
            env=environment(),
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    def faults(self) -> str:
        """What C{rocketbroker store verify} finds wrong; empty if nothing."""
        status, output, errors = self.store("verify")
        return output + errors if status else ""

    def total(self, kind: str, *names: str) -> int:
        """The sum of some columns of C{rocketbroker store ls}."""
        _, output, _ = self.store("ls")
        rows = [row for row in json.loads(output) if row["kind"] == kind]
        return sum(row[name] for row in rows for name in names)
