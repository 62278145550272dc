"""A store made by the Java broker, damaged, and repaired by ours."""

from __future__ import annotations

import contextlib
import json
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.files.disk import Disk
from rocketbroker.records.record import StoredMessage, decode
from rocketbroker.store.commitlog.checkpoint import Checkpoint
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.storetools import inspect
from rocketbroker.storetools.repair.filler_records import LOST
from scripts.lab.javaclient import JavaError
from scripts.lab.servers import environment
from scripts.torture import corpus
from scripts.torture.handover import HandOver, queue_by_queue
from tests.heavy import HEAVY
from tests.integration.javacase import until

#: So many messages the Java broker writes.
MESSAGES = 20_000 if HEAVY else 2_500


class RepairTests(SynchronousTestCase):
    """All that is not lost is served, by the Java broker and by ours."""

    def command(
        self, verb: str, store: Path, *words: str, status: int = 0
    ) -> list[dict[str, object]]:
        """Call C{rocketbroker store}; its rows."""
        done = subprocess.run(
            [sys.executable, "-m", "rocketbroker.cli.command", "store", verb]
            + [str(store), *words, "--output", "jsonl"],
            capture_output=True,
            text=True,
            env=environment(),
            check=False,
        )
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(done.returncode, status, f"{rows[-30:]}{done.stderr}")
        return rows

    def damage(self, store: Path) -> tuple[set[int], set[int]]:
        """Flip bits.

        @return: the numbers of the messages whose body is lost, and of those of which
            only the head is wrong.
        """
        luck = random.Random(7)
        reader = StoreReader(Disk(), str(store))
        lost: set[int] = set()
        heads: set[int] = set()
        changes: list[tuple[str, int]] = []
        for topic in corpus.TOPICS:
            for queue in range(corpus.QUEUES):
                end = reader.max_offset(topic, queue)
                for turn, offset in enumerate(luck.sample(range(end), 6)):
                    piece = reader.read(topic, queue, offset, offset + 1)
                    message = decode(piece.records[0])
                    number = corpus.seen(message.decompressed()).number
                    segment = next(
                        each
                        for each in reader.segments
                        if each.start <= message.position < each.end
                    )
                    at = message.position - segment.start
                    # The entries of the other one are lost, too.
                    if turn % 3 == 2 and (topic, queue) != (corpus.TOPICS[0], 1):
                        heads.add(number)
                        changes.append((segment.path, at + luck.choice((1, 5, 24, 30))))
                    else:
                        lost.add(number)
                        body = at + 88 + luck.randrange(len(message.body))
                        changes.append((segment.path, body))
        reader.close()
        for path, position in changes:
            with open(path, "r+b") as file:
                file.seek(position)
                old = file.read(1)[0]
                file.seek(position)
                file.write(bytes([old ^ (1 << luck.randrange(8))]))
        with open(store / "config" / "topics.json", "r+b") as file:
            file.truncate(100)
        queue_files = store / "consumequeue" / corpus.TOPICS[0] / "1"
        for each in queue_files.iterdir():
            each.write_bytes(bytes(each.stat().st_size))
        return lost, heads

    def compare(self, over: HandOver, lost: set[int]) -> None:
        """Who runs now serves all messages, the lost ones without a body."""
        found = {}
        empty = set()
        for seen in queue_by_queue(over.cluster.names, corpus.TOPICS):
            found[seen.number] = (seen.queue, seen.offset)
            if seen.number in lost:
                self.assertEqual(seen.line.split("\t")[3], "0")
                empty.add(seen.number)
            else:
                self.assertEqual(seen.line, corpus.line(seen.number))
        self.assertEqual(empty, lost)
        self.assertEqual(found, {n: w[:2] for n, w in over.notes.sent.items()})

    def written(self, how: int | None, count: int, **settings: object) -> HandOver:
        """A store that the Java broker has written.

        @param how: by which signal that was stopped; None: it was not.
        @param count: how many messages it has.
        """
        over = HandOver("5.3.3", **settings)
        self.addCleanup(over.stop)
        over.start_java()
        driver = over.driver()
        address = over.cluster.address
        for topic in corpus.TOPICS:
            driver("createTopic", topic=topic, queues=corpus.QUEUES, address=address)
        note = over.cluster.folder / "sent"
        words = {"from": 0, "to": count, "delays": False}
        driver("writeCorpus", name="p", broker="broker-a", note=str(note), **words)
        over.notes.add(note, False)
        if how is not None:
            over.java.stop(how)
        return over

    def unused(self, version: str) -> None:
        """A Java broker to which no message comes is stopped, and killed: nothing is
        wrong with what it leaves, and ours goes on with it."""
        over = HandOver(version)
        self.addCleanup(over.stop)
        store = over.cluster.store
        for how in (signal.SIGTERM, signal.SIGKILL):
            over.java.start()
            over.java.stop(how)
            self.assertEqual(list((store / "commitlog").iterdir()), [])
            for verb in ("verify", "repair"):
                (row,) = self.command(verb, store)
                self.assertEqual(row["faults"], 0)
            self.assertEqual(self.command("stats", store), [])
        over.cluster.broker.start()
        over.cluster.broker.stop()
        self.assertEqual(self.command("verify", store)[-1]["faults"], 0)

    def test_unused_533(self) -> None:
        """That of 5.3.3."""
        self.unused("5.3.3")

    def found(self, over: HandOver, numbers: Iterable[int]) -> set[int]:
        """Those messages that the broker that is up finds by a key of theirs alone."""
        found = set()
        for n in numbers:
            words = {"key": f"k{n}", "most": 64}
            with contextlib.suppress(JavaError):
                over.driver()("query", topic=corpus.place(n)[0], **words)
                found.add(n)
        return found

    def with_keys(self, store: Path) -> dict[int, int]:
        """The numbers of all messages with keys, by their positions."""
        numbers = {}
        reader = StoreReader(Disk(), str(store))
        for topic in corpus.TOPICS:
            for queue in range(corpus.QUEUES):
                for each in inspect.messages(reader, topic, queue, 0, None):
                    assert isinstance(each, StoredMessage)
                    number = corpus.seen(each.decompressed()).number
                    if corpus.keys(number):
                        numbers[each.position] = number
        reader.close()
        return numbers

    def make_again(self, over: HandOver, topic: str) -> None:
        """The broker that is up deletes a topic, and makes it again."""
        address = over.cluster.address
        over.driver()("deleteTopic", topic=topic, address=address)
        over.driver()("createTopic", topic=topic, queues=corpus.QUEUES, address=address)

    def test_repaired(self) -> None:
        """Bodies, heads, a queue and the topics' file are damaged; after the repair
        nothing is wrong, and all but the lost bodies are there."""
        over = self.written(signal.SIGTERM, MESSAGES, mappedFileSizeCommitLog=1 << 21)
        store = over.cluster.store
        lost, heads = self.damage(store)
        rows = self.command("repair", store)
        kinds = [row["kind"] for row in rows]
        self.assertEqual(kinds.count("emptied"), len(lost))
        self.assertEqual(kinds.count("mended"), len(heads))
        self.assertEqual(kinds.count("discarded"), 0)
        self.assertEqual(self.command("verify", store)[-1]["faults"], 0)
        over.start_java()
        self.compare(over, lost)
        over.java.stop(signal.SIGKILL)
        over.cluster.broker.start()
        self.compare(over, lost)
        over.cluster.broker.stop(signal.SIGTERM)
        rows = self.command("cat", store, corpus.TOPICS[0], "--body", "none")
        self.assertTrue(rows)
        log = over.cluster.broker.log.read_text()
        for word in ("discarded", "Traceback", LOST):
            self.assertNotIn(word, log)

    if HEAVY:

        def test_unused_550(self) -> None:
            """That of 5.5.0."""
            self.unused("5.5.0")

        def test_unused_497(self) -> None:
            """That of 4.9.7."""
            self.unused("4.9.7")

        def test_madeAgain(self) -> None:
            """Topics that were deleted and made again, one after Java's own stop, one
            after ours: nothing is wrong with the store, and what was deleted stays
            away."""
            over = self.written(signal.SIGTERM, 100)
            store = over.cluster.store
            for count, topic in enumerate(corpus.TOPICS[:2], 1):
                over.start_java()
                self.make_again(over, topic)
                if count == 1:
                    # What stands behind the last entry of all is entered again, by
                    # Java's, too.
                    over.driver()(
                        "createTopic",
                        topic="Last",
                        queues=1,
                        address=over.cluster.address,
                    )
                    over.driver().send("p", "Last", b"last")
                over.java.stop(signal.SIGTERM)
                rows = self.command("verify", store)
                self.assertEqual(rows[-1]["faults"], 0)
                self.assertEqual(self.command("repair", store)[-1]["faults"], 0)
                over.cluster.broker.start()
                log = over.cluster.broker.log.read_text()
                self.assertNotIn("All queues are made again", log)
                deleted = corpus.TOPICS[:count]
                self.assertEqual(list(queue_by_queue(over.cluster.names, deleted)), [])
                others = corpus.TOPICS[count:]
                rest = list(queue_by_queue(over.cluster.names, others))
                sent = [corpus.place(number)[0] for number in over.notes.sent]
                self.assertEqual(len(rest), sum(each in others for each in sent))
                over.cluster.broker.stop(signal.SIGTERM)

        def test_lostKeys(self) -> None:
            """The Java broker was killed and started again: verify tells exactly the
            messages that it does not find by key any more; after the repair it does."""
            sizes = {"maxHashSlotNum": 500, "maxIndexNum": 2000}
            over = self.written(None, 1900, mappedFileSizeCommitLog=1 << 16, **sizes)
            # Much of the log follows the last full file of the index, and then a
            # little, after more than the 3 s by which the recovery goes back from the
            # times that the broker has noted.
            time.sleep(4)
            behind_ms = time.time() * 1000
            note = str(over.cluster.folder / "more")
            words = {"from": 1900, "to": 1930, "delays": False}
            over.driver()(
                "writeCorpus", name="p", broker="broker-a", note=note, **words
            )
            noted = Checkpoint(Disk(), str(over.cluster.store))

            def is_noted() -> bool:
                noted.load()
                return min(noted.physic_ms, noted.logics_ms) >= behind_ms

            self.assertTrue(until(is_noted, 60))
            over.java.stop(signal.SIGKILL)
            over.start_java()
            over.java.stop()
            store = over.cluster.store
            config = str(over.java.home / "broker.conf")
            (fault, _) = self.command("verify", store, "-c", config, status=1)
            matched = re.search(
                r"messages from position (\d+) to (\d+);", str(fault["text"])
            )
            assert matched is not None, fault
            first, end = map(int, matched.groups())
            numbers = self.with_keys(store)
            lost = {n for position, n in numbers.items() if first <= position < end}
            self.assertGreater(len(lost), 50)
            edges = [n for position, n in sorted(numbers.items()) if n in lost]
            some = {
                *edges[::20],
                edges[-1],
                *random.Random(1).sample([*numbers.values()], 60),
            }
            over.start_java()
            self.assertEqual(self.found(over, some), some - lost)
            over.java.stop()
            rows = self.command("repair", store, "-c", config)
            self.assertEqual((rows[-1]["faults"], rows[-1]["left"]), (1, 0))
            over.start_java()
            self.assertEqual(self.found(over, some), some)
            over.java.stop()
            (_,) = self.command("verify", store, "-c", config)
