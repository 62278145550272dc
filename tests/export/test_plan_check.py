"""Exports and plans are of one cluster, its brokers and their messages."""

from __future__ import annotations

import json
import os
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.export.history import read_history
from rocketbroker.export.ledger import Ledger
from rocketbroker.export.plans import file_path, queue_json
from rocketbroker.export.runs import DATA_LOSS, DONE, FAILED, NOTHING_NEW
from rocketbroker.export.verify import check_manifest
from rocketbroker.sources.ranges import Queue, Range
from tests.export.worlds import ONE, ZERO, Died, World
from tests.sources.messages import START_MS, stored


class PlanTests(SynchronousTestCase):
    """Plans that were not carried out, and what is there then."""

    def setUp(self) -> None:
        """A plan of two queues that waits."""
        self.world = World(self.mktemp(), {ZERO: 20, ONE: 5})
        self.world.origin.cluster = "east"
        self.world.copying.die_after = 1
        self.assertRaises(Died, self.world.run)
        self.world.copying.die_after = None

    def plan(self) -> dict[str, object]:
        """The plan as JSON."""
        data = self.world.storage.read("_rocketbroker/plans/00000001.json")
        tree: dict[str, object] = json.loads(data)
        return tree

    def refused(self, status: int, *sentences: str) -> None:
        """It is not carried out, and nothing is committed."""
        before = self.world.files()
        self.assertEqual(self.world.run(), status)
        said = self.world.out.getvalue()
        for sentence in sentences:
            self.assertIn(sentence, said)
        drop = f"`rocketbroker export abandon {self.world.root} T` drops the plan"
        self.assertIn(drop, said)
        self.assertEqual(Ledger(self.world.storage).last_commit(), 0)
        self.assertEqual(self.world.files(), before)

    def test_written(self) -> None:
        """A plan says where it is from, and which messages are at its borders."""
        plan = self.plan()
        self.assertEqual(
            [plan[name] for name in ("source", "clusters", "brokers")],
            ["nameServer", ["east"], ["broker-a"]],
        )
        ranges: Any = plan["ranges"]
        marks = [[mark["offset"] for mark in each["marks"]] for each in ranges]
        self.assertEqual(marks, [[0, 19], [0, 4]])
        known = json.loads(self.world.storage.read("_rocketbroker/job.json"))
        self.assertEqual(
            known["topics"],
            {
                "T": {
                    "origin": "nameServer",
                    "clusters": ["east"],
                    "brokers": ["broker-a"],
                }
            },
        )

    def test_otherCluster(self) -> None:
        """Another cluster with the same names is refused, with what to do."""
        self.world.origin.cluster = "west"
        self.refused(FAILED, "plan 1 of T is of cluster east, not of west")

    def test_otherBroker(self) -> None:
        """So is another broker, and a store under another name."""
        other = Queue("T", "broker-b", 0)
        self.world.origin.ends = {other: 20}
        self.world.origin.first = {other: 0}
        self.refused(FAILED, "plan 1 of T is of broker-a, not of broker-b")

    def test_otherMessages(self) -> None:
        """So is one whose names are all the same, and whose messages are not."""
        for number in range(20):
            self.world.origin.records[number] = stored(number, b"x", store_ms=number)
        self.refused(DATA_LOSS, "TOPIC_RECREATED: queue 0", "another message 0 than")

    def test_madeAgain(self) -> None:
        """So is a topic that was made again and has come into the plan's window."""
        self.world.origin.ends[ZERO] = 12
        self.refused(DATA_LOSS, "TOPIC_RECREATED: queue 0", "ends at 12")

    def test_queueHidden(self) -> None:
        """A plan of a queue that cannot be read now waits."""
        self.world.origin.forbidden = {ONE}
        self.refused(FAILED, "which cannot be read now")

    def test_damagedSince(self) -> None:
        """A marked message that is damaged since is loss; allowed, it is a hole."""
        self.world.origin.records[0] = b"garbage"
        # The file of queue 0 is finished.
        os.remove(os.path.join(self.world.root, self.world.files()[0]))
        self.assertEqual(self.world.run(), DATA_LOSS)
        self.assertEqual(self.world.run(fail_on_data_loss=False), DONE)
        self.assertEqual(len(self.world.rows()), 24 - 1)

    def test_otherSource(self) -> None:
        """From the same broker's store it is carried out."""
        self.assertEqual(self.world.run(store="d"), DONE)
        self.assertEqual(self.world.rows(), self.world.expected())

    def test_reading(self) -> None:
        """It has the columns with which it was made, and new plans new ones."""
        self.world.origin.ends[ONE] = 6
        self.assertEqual(self.world.run(select=("tags",)), DONE)
        first, second = read_history(self.world.storage).commits
        self.assertNotIn("columns", first.files[0].row)
        self.assertIn("columns", second.files[0].row)

    def test_newBehind(self) -> None:
        """What came behind it is exported in the same run."""
        self.world.origin.ends[ZERO] = 520
        self.assertEqual(self.world.run(), DONE)
        self.assertEqual(self.world.rows(), self.world.expected())
        self.assertEqual(self.world.run(), NOTHING_NEW)

    def test_oldPlan(self) -> None:
        """A plan of version 1, with one range in each file, is carried out."""
        made = self.plan()["made"]
        ranges = [Range(ZERO, 0, 20), Range(ONE, 0, 5)]
        old = {
            "version": 1,
            "number": 1,
            "topic": "T",
            "made": made,
            "rows": 25,
            "ranges": [queue_json(each) for each in ranges],
            "lost": [],
            "files": [
                {"path": file_path([each], START_MS), **queue_json(each)}
                for each in ranges
            ],
        }
        world = World(self.mktemp(), {ZERO: 30, ONE: 5})
        for name, tree in (
            ("plans/00000001", old),
            ("job", {"version": 1, "origin": "nameServer"}),
        ):
            text = json.dumps(tree).encode("utf-8")
            world.storage.put(f"_rocketbroker/{name}.json", text)
        self.assertEqual(world.run(), DONE)
        self.assertEqual(world.rows(), world.expected())
        self.assertEqual([len(self.parts(world, n)) for n in (0, 1)], [2, 1])
        self.assertEqual(world.run(), NOTHING_NEW)

    def parts(self, world: World, number: int) -> list[str]:
        """The files of a commit."""
        commit = read_history(world.storage).commits[number]
        return [file.path for file in commit.files]


class ExportTests(SynchronousTestCase):
    """Exports that go on."""

    def setUp(self) -> None:
        """An export."""
        self.world = World(self.mktemp(), {ZERO: 20, ONE: 5})
        self.world.origin.cluster = "east"
        self.assertEqual(self.world.run(), DONE)

    def test_otherCluster(self) -> None:
        """An export does not go on with another cluster."""
        self.world.origin.cluster = "west"
        self.assertEqual(self.world.run(), FAILED)
        text = f"{self.world.root} holds T of cluster east, not of west"
        self.assertIn(text, self.world.out.getvalue())

    def test_replacedBrokers(self) -> None:
        """It does with other brokers of the same cluster."""
        other = Queue("T", "broker-b", 0)
        self.world.origin.put(other, 3)
        del self.world.origin.ends[ZERO], self.world.origin.ends[ONE]
        self.assertEqual(self.world.run(), DONE)
        self.assertIn('queue="queue 0 of T on broker-a"', self.world.out.getvalue())

    def test_lastDamaged(self) -> None:
        """A last message that is damaged since does not stop what follows."""
        for offset in (19, 0):
            self.world.origin.records[offset] = b"garbage"
            self.world.origin.ends[ZERO] += 5
            self.assertEqual(self.world.run(), DONE)
        self.assertEqual(Ledger(self.world.storage).ends()[ZERO].offset, 30)

    def test_fewerReadQueues(self) -> None:
        """What is behind in queues without readers is named, and no success."""
        self.world.origin.ends[ONE] = 9
        self.world.origin.ends[ZERO] = 21
        self.world.origin.forbidden = {ONE}
        self.assertEqual(self.world.run(), DATA_LOSS)
        said = self.world.out.getvalue()
        self.assertIn('event=cannot_be_read messages=4 range="[5, 9) of queue 1', said)
        self.assertIn("T has 4 messages in queues that cannot be read now", said)
        self.assertEqual(Ledger(self.world.storage).ends()[ZERO].offset, 21)
        self.assertEqual(self.world.run(fail_on_data_loss=False), NOTHING_NEW)
        self.world.origin.forbidden = set()
        self.assertEqual(self.world.run(), DONE)
        self.assertEqual(self.world.rows(), self.world.expected())

    def test_fewerReadQueuesWithoutRows(self) -> None:
        """Without anything behind it is of no account."""
        self.world.origin.forbidden = {ONE}
        self.assertEqual(self.world.run(), NOTHING_NEW)

    def test_noRead(self) -> None:
        """A topic that may not be read is said to be so, and is not without news."""
        self.world.origin.forbidden = {ZERO, ONE}
        self.assertEqual(self.world.run(), FAILED)
        self.assertIn("T may not be read", self.world.out.getvalue())

    def test_allRemoved(self) -> None:
        """What was removed stands in the commit, also if nothing is left."""
        self.world.origin.ends[ZERO] = self.world.origin.first[ZERO] = 30
        self.assertEqual(self.world.run(), DATA_LOSS)
        self.assertEqual(self.world.run(fail_on_data_loss=False), DONE)
        history = read_history(self.world.storage)
        (gap,) = history.commits[1].lost
        self.assertEqual(str(gap.wanted), "[20, 30) of queue 0 of T on broker-a")
        self.assertEqual(list(check_manifest(history)), [])
        self.assertEqual(self.world.run(), NOTHING_NEW)
        self.world.origin.ends[ZERO] = 32
        self.assertEqual(self.world.run(), DONE)


class DamageTests(SynchronousTestCase):
    """Damaged and missing messages."""

    def exported(self, *damaged: int, record: bytes = b"garbage") -> None:
        """They block an export, and are holes with a reason if that is allowed."""
        world = World(self.mktemp(), {ZERO: 20, ONE: 5})
        world.origin.records = dict.fromkeys(damaged, record)
        # The messages of both queues have the same numbers here.
        world.origin.ends[ONE] = 0
        self.assertEqual(world.run(), DATA_LOSS)
        self.assertEqual(world.run(), DATA_LOSS)
        self.assertEqual(world.run(fail_on_data_loss=False), DONE)
        whole = [row for row in world.expected() if row[1] not in damaged]
        self.assertEqual(world.rows(), whole)
        history = read_history(world.storage)
        gaps = history.commits[0].gaps
        holes = [n for gap in gaps for n in range(gap.wanted.start, gap.wanted.until)]
        self.assertEqual(holes, sorted(damaged))
        self.assertTrue(all(gap.reason for gap in gaps))
        self.assertEqual(list(check_manifest(history)), [])
        # The next run goes on behind it.
        world.origin.ends[ZERO] = 25
        self.assertEqual(world.run(), DONE)

    def test_first(self) -> None:
        """The first message."""
        self.exported(0)

    def test_middle(self) -> None:
        """One in the middle."""
        self.exported(7)

    def test_last(self) -> None:
        """The last message."""
        self.exported(19)

    def test_borders(self) -> None:
        """Several, at both borders."""
        self.exported(0, 1, 8, 18, 19)

    def test_all(self) -> None:
        """All of them."""
        self.exported(*range(20))

    def test_missing(self) -> None:
        """Missing ones."""
        self.exported(0, 7, 19, record=b"")


class LightTests(SynchronousTestCase):
    """Queues that hold messages of other topics."""

    def test_light(self) -> None:
        """Their messages have offsets of their own; a file's name can hold C{%}."""
        queue = Queue("%LMQ%T", "broker-a", 0)
        world = World(self.mktemp(), {queue: 10})
        for number in range(10):
            world.origin.records[number] = stored(1000 + 3 * number, b"%d" % number)
        for end in (6, 10):
            world.origin.ends[queue] = end
            self.assertEqual(world.run(topics=(queue.topic,)), DONE)
        self.assertEqual(world.rows(), [(0, n, b"%d" % n) for n in range(10)])
        self.assertTrue(world.files()[0].startswith("~25LMQ~25T/dt="))
        self.assertEqual(list(check_manifest(read_history(world.storage))), [])
