"""A store's directory goes from a Java broker to ours and back, with nothing lost."""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from threading import Thread

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.puller import Puller, messages
from rocketbroker.blocking.settings import Settings
from rocketbroker.files.disk import Disk
from rocketbroker.records.names import SCHEDULE_TOPIC
from rocketbroker.records.record import StoredMessage
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.storetools import inspect
from tests.integration import corpus
from tests.integration.corpus import Seen
from tests.integration.javabroker import JavaBroker
from tests.integration.javaclient import JavaClient, JavaError
from tests.integration.servers import Cluster, environment

#: So many messages each of the two brokers gets.
COUNT = 100_000

#: The client that goes with a broker.
CLIENTS = {"5.3.3": "5.3.3", "4.9.7": "4.9.8"}

#: How long delayed messages wait: those of the last level to the end.
LEVELS = "1s 10s 2h"
LAST_LEVEL = 3
LONGEST_DELAY = 10

#: The size of the notes, of about 5 MB in the end, when a broker is killed midway.
PART_BYTES = 1_500_000

#: How long all others may take until they are delivered, in seconds, beyond which a
#: broker has forgotten them: those that wait were there 10 s before.
MAX_SECONDS = 60.0

#: Small files, so that many begin and end on both sides.
SETTINGS = {
    "mappedFileSizeCommitLog": 16 << 20,
    "mappedFileSizeConsumeQueue": 40_000,
    "maxHashSlotNum": 50_000,
    "maxIndexNum": 100_000,
    "messageDelayLevel": LEVELS,
    # A machine that has other things to do is no reason to refuse a message.
    "waitTimeMillsInSendQueue": 20_000,
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


def sample(start: int, until: int) -> list[int]:
    """Some numbers, most of them at random, and the last."""
    return [*random.Random(start).sample(range(start, until), 30), until - 1]


def queue_by_queue(names: str, topics: Iterable[str]) -> Iterator[Seen]:
    """All messages of topics, read by our client; offsets without holes."""
    with Client(Settings(names, attempts=20)) as client:
        for topic in topics:
            for queue in client.queues(topic):
                wanted, until = client.min_offset(queue), client.max_offset(queue)
                assert wanted == 0, f"{queue} begins at {wanted}"
                for chunk in Puller(client).read(queue, 0, until):
                    for message in messages(chunk.data):
                        assert message.queue_offset == wanted, f"{queue}: no {wanted}"
                        wanted += 1
                        yield corpus.seen(message)
                assert wanted == until, f"{queue} ends at {wanted}, not at {until}"


class HandOver:
    """One directory, and those who use it one after the other."""

    def __init__(self, version: str, **more: object) -> None:
        """
        @param version: of the Java broker.
        @param more: settings of both.
        """
        settings = {**SETTINGS, **more}
        self.cluster = cluster = Cluster(**settings)
        self.version = version
        self.notes = Notes()
        self.written = 0.0
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
        self.client: JavaClient | None = None

    def driver(self) -> JavaClient:
        """The official client, with a producer called p."""
        if self.client is None:
            cluster = self.cluster
            version = CLIENTS[self.version]
            self.client = JavaClient(version, cluster.names, cluster.folder)
            self.client("producer", name="p", group="corpus", compressOver=4096)
        return self.client

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

    def write(self, start: int, kill: Callable[[], object] | None = None) -> None:
        """Send C{COUNT} messages from a number on, to the broker that is up.

        @param kill: kills it, when it has acknowledged a part of them.
        """
        note = self.cluster.folder / f"sent-{start}"
        words = {"from": start, "to": start + COUNT, "delays": True}
        driver = self.driver()
        watch = Thread(target=self._watch, args=(note, kill))
        if kill is not None:
            self.notes.open |= set(range(start, start + COUNT))
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

    def _watch(self, note: Path, kill: Callable[[], object]) -> None:
        end = time.monotonic() + MAX_SECONDS
        while time.monotonic() < end:
            if note.exists() and note.stat().st_size > PART_BYTES:
                break
            time.sleep(0.01)
        kill()

    def read_by_java(self, topic: str, queues: int) -> Iterator[Seen]:
        """All messages of a topic, as the official client has them."""
        folder = self.cluster.folder / "read" / topic
        folder.mkdir(parents=True, exist_ok=True)
        self.driver()(
            "readCorpus",
            topic=topic,
            broker="broker-a",
            queues=queues,
            folder=str(folder),
        )
        for queue in range(queues):
            found = corpus.noted((folder / str(queue)).read_text("utf-8"))
            for wanted, seen in enumerate(found):
                assert seen.offset == wanted, f"{topic}/{queue}: no {wanted}"
                yield seen

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

    def faults(self) -> str:
        """What C{rocketbroker store verify} finds wrong; empty if nothing."""
        done = subprocess.run(
            [sys.executable, "-m", "rocketbroker.app.command", "store", "verify"]
            + [str(self.cluster.store), "--output", "json"],
            capture_output=True,
            text=True,
            env=environment(),
            check=False,
        )
        return done.stdout + done.stderr if done.returncode else ""

    def wait_until_delivered(self) -> None:
        """Let pass what delays are left, and wait for what is due then.

        The number of messages alone does not tell: after a kill some come twice.
        """
        notes = self.notes
        wanted = len(notes.sent)
        wanted -= sum(level == LAST_LEVEL for level in notes.delayed.values())
        end = time.monotonic() + MAX_SECONDS
        count = before = -1
        with Client(Settings(self.cluster.names, attempts=20)) as client:
            queues = [q for topic in corpus.TOPICS for q in client.queues(topic)]
            while (
                count < wanted
                or count != before
                or time.monotonic() < self.written + LONGEST_DELAY + 1
            ):
                assert time.monotonic() < end, f"{count} messages of {wanted} are there"
                time.sleep(0.5)
                before, count = count, sum(map(client.max_offset, queues))


class HandOverTests(SynchronousTestCase):
    """From a Java broker to ours, and back, with 100,000 messages of each."""

    def setUp(self) -> None:
        """Times are told in the log."""
        self._begun = time.monotonic()

    def say(self, text: str) -> None:
        """Something for the log, with the time."""
        print(f"{time.monotonic() - self._begun:6.1f} s  {text}")

    def hand_over(
        self, version: str, java: int, ours: int, midway: bool = False
    ) -> None:
        """One round.

        @param java: the signal that ends the Java broker.
        @param ours: and ours.
        @param midway: send them while messages are being sent.
        """
        over = HandOver(version)
        self.addCleanup(over.stop)
        over.start_java()
        for topic in corpus.TOPICS:
            over.driver()(
                "createTopic",
                topic=topic,
                queues=corpus.QUEUES,
                address=over.cluster.address,
            )
        self.say(f"Java {version} is up")
        over.write(0, partial(over.java.stop, java) if midway else None)
        self.say(f"it has acknowledged {len(over.notes.sent)}")
        over.java.stop(java)
        self.say("it is stopped")
        twice = signal.SIGKILL in (java, ours)
        self.at_ours(over, ours, midway, twice)
        self.back_at_java(over, ours == signal.SIGKILL, midway, twice)

    def at_ours(self, over: HandOver, how: int, midway: bool, twice: bool) -> None:
        """Ours serves what Java has written, and gets as much again."""
        over.cluster.broker.start()
        self.say("ours is up")
        found = queue_by_queue(over.cluster.names, corpus.TOPICS)
        problems = over.notes.problems(found, delivered=False, twice=twice)
        self.assertEqual(problems[:20], [])
        self.say("ours has served all")
        self.query(over, sample(0, COUNT))
        self.say("ours has found all by key")
        over.write(COUNT, partial(over.cluster.broker.stop, how) if midway else None)
        self.say(f"both have acknowledged {len(over.notes.sent)}")
        over.cluster.broker.stop(how)
        log = over.cluster.broker.log.read_text()
        for word in ("Traceback", "are missing", "is removed"):
            self.assertNotIn(word, log)
        if not midway:
            # Who is killed while writing has records that are in no queue yet.
            self.assertNotIn("given up", log)
            self.all_waits(over)
        self.assertEqual(over.faults(), "")
        self.say("ours is stopped, and nothing is wrong with the store")

    def back_at_java(
        self, over: HandOver, killed: bool, midway: bool, twice: bool
    ) -> None:
        """Java serves all, and has found nothing to cut off.

        @param killed: whether ours was.
        @param twice: whether a delayed message may have come twice.
        """
        over.start_java()
        self.say("Java is up again")
        over.wait_until_delivered()
        self.say("Java has delivered all")
        found = (s for t in corpus.TOPICS for s in over.read_by_java(t, corpus.QUEUES))
        problems = over.notes.problems(found, delivered=True, twice=twice)
        self.assertEqual(problems[:20], [])
        self.say("Java has served all")
        # It drops the newest index file of a store that was not closed, whoever wrote
        # that, and makes only that again which it reads of the log: its last segment.
        end = max(over.notes.sent) + 1
        start = end - COUNT // 100 if killed else 0
        self.query(over, sample(start, end))
        self.say("Java has found all by key")
        over.java.stop(signal.SIGTERM)
        log = over.java.said()
        # It says so even if the log ends where the queues end, as it should; but not if
        # the queues are behind.
        ends = re.findall(
            r"maxPhyOffsetOfConsumeQueue\((\d+)\) >= processOffset\((\d+)\)", log
        )
        self.assertTrue(ends or midway)
        self.assertEqual([end for end in ends if end[0] != end[1]], [])
        for word in ("[BUG]", "truncate failed", "Failed to truncate"):
            self.assertNotIn(word, log)
        self.all_waits(over)
        self.assertEqual(over.faults(), "")
        self.say("Java is stopped, and nothing is wrong with the store")

    def query(self, over: HandOver, numbers: list[int]) -> None:
        """The broker that is up finds messages by key and by unique key."""
        driver = over.driver()
        for n in numbers:
            if n not in over.notes.sent or n in over.notes.delayed:
                continue
            topic, keys = corpus.place(n)[0], corpus.keys(n)
            asked: list[dict[str, object]] = [{"key": k, "most": 64} for k in keys[:2]]
            if not corpus.batched(n):
                asked.append({"uniqueKey": over.notes.sent[n][2]})
            for words in asked:
                found = driver("query", topic=topic, **words)
                self.assertIn(str(n), {m["properties"]["n"] for m in found}, words)

    def all_waits(self, over: HandOver) -> None:
        """All messages with a delay are where they wait."""
        waiting = over.waiting()
        for number, level in over.notes.delayed.items():
            self.assertEqual(waiting.pop(number, None), level)
        self.assertEqual(waiting.keys() - over.notes.open, set())

    def test_533_clean(self) -> None:
        """5.3.3, both stopped cleanly."""
        self.hand_over("5.3.3", signal.SIGTERM, signal.SIGTERM)

    def test_533_killed(self) -> None:
        """5.3.3, killed; ours makes its queues and index whole for it again."""
        self.hand_over("5.3.3", signal.SIGKILL, signal.SIGTERM)

    def test_533_killedMidway(self) -> None:
        """5.3.3, and each broker killed in the middle of writing: what was acknowledged
        is there."""
        self.hand_over("5.3.3", signal.SIGKILL, signal.SIGKILL, midway=True)

    def test_497_clean(self) -> None:
        """4.9.7, both stopped cleanly."""
        self.hand_over("4.9.7", signal.SIGTERM, signal.SIGTERM)

    def test_497_killed(self) -> None:
        """4.9.7, and ours, both killed."""
        self.hand_over("4.9.7", signal.SIGKILL, signal.SIGKILL)

    def test_497_killedOnly(self) -> None:
        """4.9.7, killed; ours, stopped cleanly, has made all whole for it again."""
        self.hand_over("4.9.7", signal.SIGKILL, signal.SIGTERM)
