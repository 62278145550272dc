"""A store's directory goes from a Java broker to ours and back, with nothing lost."""

from __future__ import annotations

import random
import re
import signal
import time
from functools import partial

from twisted.trial.unittest import SynchronousTestCase

from scripts.torture import corpus
from scripts.torture.handover import HandOver, queue_by_queue
from tests.heavy import HEAVY

#: So many messages each of the two brokers gets.
COUNT = 100_000 if HEAVY else 5_000

#: Files so small that many begin and end on both sides with few messages, too.
SMALL = (
    {}
    if HEAVY
    else {
        "mappedFileSizeCommitLog": 1 << 21,
        "mappedFileSizeConsumeQueue": 2_000,
        "maxHashSlotNum": 2_500,
        "maxIndexNum": 5_000,
    }
)


def sample(start: int, until: int) -> list[int]:
    """Some numbers, most of them at random, and the last."""
    return [*random.Random(start).sample(range(start, until), 30), until - 1]


class HandOverTests(SynchronousTestCase):
    """From a Java broker to ours, and back, with many messages of each."""

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
        over = HandOver(version, **SMALL)
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
        over.write(0, COUNT, partial(over.java.stop, java) if midway else None)
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
        kill = partial(over.cluster.broker.stop, how) if midway else None
        over.write(COUNT, COUNT, kill)
        self.say(f"both have acknowledged {len(over.notes.sent)}")
        over.cluster.broker.stop(how)
        log = over.cluster.broker.log.read_text()
        # An empty segment may be removed: who is killed while making one leaves it.
        for word in ("Traceback", "are missing"):
            self.assertNotIn(word, log)
        if not midway:
            # Who is killed while writing has records that are in no queue yet.
            self.assertNotIn("discarded", log)
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
        reach_end = over.queues_reach_end()
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
        log = over.java.output()
        # It says so even if the log ends where the queues end, as it should; but not if
        # the queues are behind.
        ends = re.findall(
            r"maxPhyOffsetOfConsumeQueue\((\d+)\) >= processOffset\((\d+)\)", log
        )
        self.assertTrue(ends or midway or not reach_end)
        self.assertTrue(reach_end or killed)
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

    def test_497_killed(self) -> None:
        """4.9.7, and ours, both killed."""
        self.hand_over("4.9.7", signal.SIGKILL, signal.SIGKILL)

    if HEAVY:

        def test_533_killed(self) -> None:
            """5.3.3, killed; ours makes its queues and index whole for it again."""
            self.hand_over("5.3.3", signal.SIGKILL, signal.SIGTERM)

        def test_533_killedMidway(self) -> None:
            """5.3.3, and each broker killed in the middle of writing: what was
            acknowledged is there."""
            self.hand_over("5.3.3", signal.SIGKILL, signal.SIGKILL, midway=True)

        def test_550_clean(self) -> None:
            """5.5.0, both stopped cleanly."""
            self.hand_over("5.5.0", signal.SIGTERM, signal.SIGTERM)

        def test_550_killedMidway(self) -> None:
            """5.5.0, and each broker killed in the middle of writing."""
            self.hand_over("5.5.0", signal.SIGKILL, signal.SIGKILL, midway=True)

        def test_497_clean(self) -> None:
            """4.9.7, both stopped cleanly."""
            self.hand_over("4.9.7", signal.SIGTERM, signal.SIGTERM)

        def test_497_killedOnly(self) -> None:
            """4.9.7, killed; ours, stopped cleanly, has made all whole for it again."""
            self.hand_over("4.9.7", signal.SIGKILL, signal.SIGTERM)
