"""Runs of an export: each message once, whatever happens."""

from __future__ import annotations

import json
import os
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.export.history import read_history
from rocketbroker.export.ledger import Ledger
from rocketbroker.export.runs import (
    DATA_LOSS,
    DONE,
    FAILED,
    NOTHING_NEW,
)
from rocketbroker.export.verify import check_manifest
from rocketbroker.sources.ranges import Queue
from tests.export.worlds import ONE, ZERO, Died, World
from tests.sources.messages import stored


class RunTests(SynchronousTestCase):
    """L{rocketbroker.export.runs.ExportRuns}."""

    def setUp(self) -> None:
        """Two queues."""
        self.world = World(self.mktemp(), {ZERO: 20, ONE: 5})

    def commit(self, number: int) -> dict[str, Any]:
        """A commit."""
        path = os.path.join(
            self.world.root, "_rocketbroker", "commits", f"{number:08d}.json"
        )
        with open(path, "rb") as file:
            tree: dict[str, Any] = json.load(file)
        return tree

    def test_first(self) -> None:
        """All messages are exported, and the row count is said."""
        self.assertEqual(self.world.run(), DONE)
        self.assertEqual(self.world.rows(), self.world.expected())
        self.assertIn(
            "event=exported rows=25 expected=25 missing=0 files=1",
            self.world.out.getvalue(),
        )
        self.assertEqual(self.commit(1)["rows"], 25)

    def test_layout(self) -> None:
        """Files lie in directories of hours and are named by their ranges."""
        self.world.run()
        name = "+00000000000000000000-00000000000000000020+1more.zstd.parquet"
        self.assertEqual(
            self.world.files()[0],
            f"T/dt=2023-11-14/hour=22/T+broker-a+0000{name}",
        )
        kept = sorted(os.listdir(os.path.join(self.world.root, "_rocketbroker")))
        self.assertEqual(kept, ["commits", "job.json", "lease.json", "plans"])

    def test_nothingNew(self) -> None:
        """A second run finds nothing, and writes neither plan nor file."""
        self.world.run()
        before = self.world.files()
        self.assertEqual(self.world.run(), NOTHING_NEW)
        self.assertEqual(self.world.files(), before)
        self.assertEqual(Ledger(self.world.storage).last_commit(), 1)

    def test_emptyTopic(self) -> None:
        """Neither is there anything new in a topic without messages."""
        world = World(self.mktemp(), {ZERO: 0})
        self.assertEqual(world.run(), NOTHING_NEW)

    def test_goesOn(self) -> None:
        """A run goes on where the last commit ended."""
        self.world.run()
        self.world.origin.ends[ZERO] = 30
        self.assertEqual(self.world.run(), DONE)
        self.assertEqual(self.world.rows(), self.world.expected())
        self.assertEqual(self.commit(2)["rows"], 10)
        self.world.origin.ends[ONE] = 6
        self.assertEqual(self.world.run(), DONE)
        self.assertEqual(self.world.rows(), self.world.expected())

    def test_target(self) -> None:
        """Files are cut at the target size."""
        self.world.run(target=len(stored(0)) * 7)
        self.assertEqual(len(self.world.files()), 3)
        self.assertEqual(self.world.rows(), self.world.expected())

    def test_dies(self) -> None:
        """A run that dies after any file is carried out again, to the same files."""
        for die_after in range(6):
            world = World(self.mktemp(), {ZERO: 20, ONE: 5})
            world.copying.die_after = die_after
            target = len(stored(0)) * 7
            self.assertRaises(Died, world.run, target)
            before = world.files()
            # What came meanwhile is for a plan of its own.
            world.origin.ends[ZERO] = 520
            world.copying.die_after = None
            self.assertEqual(world.run(10**9), DONE)
            self.assertIn("event=replaying plan=1", world.out.getvalue())
            self.assertIn("event=exporting plan=2", world.out.getvalue())
            self.assertTrue(set(before) <= set(world.files()))
            self.assertEqual(world.rows(), world.expected())
            self.assertEqual(world.run(), NOTHING_NEW)

    def test_finishedFilesStay(self) -> None:
        """Files that a run finished before it died are checked, not written again."""
        self.world.copying.die_after = 1
        self.assertRaises(Died, self.world.run)
        (path,) = self.world.files()
        before = os.stat(os.path.join(self.world.root, path)).st_ino
        self.world.copying.die_after = None
        self.assertEqual(self.world.run(), DONE)
        after = os.stat(os.path.join(self.world.root, path)).st_ino
        self.assertEqual(after, before)

    def test_damagedFilesDoNot(self) -> None:
        """A file that is damaged is written again."""
        self.world.copying.die_after = 1
        self.assertRaises(Died, self.world.run)
        (path,) = self.world.files()
        with open(os.path.join(self.world.root, path), "r+b") as file:
            file.truncate(100)
        self.world.copying.die_after = None
        self.assertEqual(self.world.run(), DONE)
        self.assertEqual(self.world.rows(), self.world.expected())

    def test_missingMessage(self) -> None:
        """A message that is missing stops the export before the commit."""
        self.world.origin.records[7] = b""
        self.assertEqual(self.world.run(), DATA_LOSS)
        self.assertIn("gave offset 8 where 7 must be", self.world.out.getvalue())
        self.assertEqual(Ledger(self.world.storage).last_commit(), 0)
        del self.world.origin.records[7]
        self.assertEqual(self.world.run(), DONE)
        self.assertEqual(self.world.rows(), self.world.expected())

    def test_deletedBefore(self) -> None:
        """Messages deleted before they were exported are data loss, unless allowed."""
        self.world.run()
        self.world.origin.ends[ZERO] = 40
        self.world.origin.first[ZERO] = 30
        self.assertEqual(self.world.run(), DATA_LOSS)
        self.assertIn("[20, 30) of queue 0", self.world.out.getvalue())
        self.assertEqual(self.world.run(fail_on_data_loss=False), DONE)
        self.assertEqual(self.commit(2)["rows"], 10)
        self.assertIn("event=lost messages=10", self.world.out.getvalue())

    def test_deletedBetween(self) -> None:
        """So are messages deleted after they were planned."""
        self.world.copying.die_after = 0
        self.assertRaises(Died, self.world.run)
        self.world.copying.die_after = None
        self.world.origin.first[ZERO] = 4
        self.assertEqual(self.world.run(), DATA_LOSS)
        self.assertEqual(self.world.run(fail_on_data_loss=False), DONE)
        (row,) = self.commit(1)["files"]
        hole = {"from": 0, "until": 4, "reason": "deleted"}
        self.assertEqual(row["ranges"][0]["holes"], [hole])
        self.assertEqual(row["rows"], 21)

    def test_recreated(self) -> None:
        """A topic that was deleted and made again is not mixed with the old one."""
        self.world.run()
        self.world.origin.ends[ZERO] = 3
        self.assertEqual(self.world.run(), DATA_LOSS)
        self.assertIn("TOPIC_RECREATED", self.world.out.getvalue())
        self.world.origin.ends[ZERO] = 25
        self.world.origin.records[19] = stored(19, b"other", store_ms=5)
        self.assertEqual(self.world.run(), DATA_LOSS)
        self.assertIn("another message 19 than", self.world.out.getvalue())

    def test_queueGone(self) -> None:
        """A queue that is not there now is named; the others are exported."""
        self.world.run()
        del self.world.origin.ends[ONE]
        self.world.origin.ends[ZERO] = 21
        self.assertEqual(self.world.run(), DONE)
        self.assertIn(
            'event=not_there_now queue="queue 1 of T on broker-a"',
            self.world.out.getvalue(),
        )

    def test_twoOrigins(self) -> None:
        """Messages of a store and of brokers meet only under the same broker's name."""
        self.world.run()
        self.assertEqual(self.world.run(store="d"), NOTHING_NEW)
        local = Queue("T", "local", 0)
        self.world.origin.ends = {local: 20}
        self.world.origin.first = {local: 0}
        self.assertEqual(self.world.run(store="d"), FAILED)
        self.assertIn("holds T of broker-a, not of local", self.world.out.getvalue())

    def test_twoOriginsTheOtherWay(self) -> None:
        """Also where the store was first."""
        local = Queue("T", "local", 0)
        world = World(self.mktemp(), {local: 20})
        world.run(store="d")
        world.origin.ends = {ZERO: 20}
        world.origin.first = {ZERO: 0}
        self.assertEqual(world.run(), FAILED)
        self.assertIn("holds T of local, not of broker-a", world.out.getvalue())

    def test_interrupted(self) -> None:
        """An interrupt leaves a plan that the next run carries out."""
        self.world.copying.interrupt = True
        self.assertRaises(KeyboardInterrupt, self.world.run)
        self.assertTrue(self.world.copying.abandoned)
        self.world.copying.interrupt = False
        self.assertEqual(self.world.run(), DONE)
        self.assertEqual(self.world.rows(), self.world.expected())

    def test_again(self) -> None:
        """A run may be begun again and again; it closes what it has opened only."""
        run = self.world.job()
        self.assertEqual(run.run(), DONE)
        self.assertTrue(self.world.origin.closed)
        self.world.origin.ends[ONE] = 9
        self.assertEqual(run.run(), DONE)
        self.assertEqual(run.statuses, {"T": DONE})
        self.assertEqual(run.run(), NOTHING_NEW)
        self.assertEqual(self.world.rows(), self.world.expected())
        self.assertEqual(self.world.copying.closed, 0)


class TopicTests(SynchronousTestCase):
    """Runs of several topics."""

    def setUp(self) -> None:
        """Three topics."""
        self.ends = {Queue(topic, "broker-a", 0): 6 for topic in "ABC"}
        self.world = World(self.mktemp(), dict(self.ends))
        self.a, self.b, self.c = self.ends

    def exported(self) -> dict[str, int]:
        """How many messages of each topic are exported."""
        ends = Ledger(self.world.storage).ends()
        return {queue.topic: end.offset for queue, end in ends.items()}

    def test_several(self) -> None:
        """Each topic has plans and commits of its own; a pattern finds them."""
        self.assertEqual(self.world.run(topics=("A", "C")), DONE)
        self.assertEqual(self.exported(), {"A": 6, "C": 6})
        self.assertEqual(self.world.run(pattern="[AB]"), DONE)
        self.assertEqual(self.exported(), {"A": 6, "B": 6, "C": 6})
        self.assertEqual(self.world.run(pattern="."), NOTHING_NEW)
        self.assertEqual(Ledger(self.world.storage).last_commit(), 3)

    def test_assigned(self) -> None:
        """Single queues are exported alone."""
        other = Queue("A", "broker-a", 1)
        self.world.origin.put(other, 4)
        self.assertEqual(self.world.run(assigned=(self.b, other)), DONE)
        self.assertEqual(Ledger(self.world.storage).ends().keys(), {self.b, other})

    def blocked(self) -> None:
        """Topic B has a plan that cannot be carried out, A and C are exported."""
        self.world.copying.die_after = 0
        self.assertRaises(Died, self.world.run, topics=("B",))
        self.world.copying.die_after = None
        self.world.origin.first[self.b] = 2
        run = self.world.job(pattern=".")
        self.assertEqual(run.run(), DATA_LOSS)
        self.assertEqual(run.statuses, {"A": DONE, "B": DATA_LOSS, "C": DONE})
        self.assertIn("event=data_loss topic=B reason=", self.world.out.getvalue())
        self.assertEqual(self.exported(), {"A": 6, "C": 6})

    def test_pendingIsOfItsTopic(self) -> None:
        """A plan that waits does so for its topic; no other one is exported by it."""
        self.blocked()
        self.world.origin.ends[self.a] = 8
        self.assertEqual(self.world.run(topics=("A",)), DONE)
        self.assertEqual(self.exported(), {"A": 8, "C": 6})
        self.assertEqual(list(Ledger(self.world.storage).pending()), ["B"])

    def test_overtaken(self) -> None:
        """A plan that others have overtaken is committed behind them."""
        self.blocked()
        words: dict[str, Any] = {"topics": ("B",), "fail_on_data_loss": False}
        self.assertEqual(self.world.run(**words), DONE)
        self.assertEqual(self.exported(), {"A": 6, "B": 6, "C": 6})
        history = read_history(self.world.storage)
        self.assertEqual([each.number for each in history.commits], [1, 2, 3, 4])
        self.assertEqual([each.rows for each in history.commits], [0, 6, 6, 4])
        self.assertEqual(history.commits[3].plan, 1)
        self.assertEqual(list(check_manifest(history)), [])
        self.assertEqual(Ledger(self.world.storage).pending(), {})

    def test_diesWhileOvertaken(self) -> None:
        """If it dies behind that commit, the next run closes the plan's number."""
        self.blocked()
        self.world.run(topics=("B",), fail_on_data_loss=False)
        os.remove(self.world.storage.where("_rocketbroker/commits/00000001.json"))
        self.assertEqual(list(check_manifest(read_history(self.world.storage))), [])
        self.assertEqual(self.world.run(topics=("B",)), NOTHING_NEW)
        self.assertEqual(len(read_history(self.world.storage).commits), 4)

    def test_oneUnknown(self) -> None:
        """A topic that does not exist is said, and the others are exported."""
        self.world.origin.put(Queue("D", "broker-a", 0), 1)
        self.assertEqual(self.world.run(pattern="nothing"), FAILED)
        self.assertIn("no topic matches", self.world.out.getvalue())
