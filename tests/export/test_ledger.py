"""The ledger of an export directory."""

from __future__ import annotations

import errno
import random
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import ConfigurationError, StoreError
from rocketbroker.export.history import read_history
from rocketbroker.export.ledger import Ledger
from rocketbroker.export.plans import End, FileTask, Mark, Plan, PlanSource
from rocketbroker.export.storage import DirectoryStorage
from rocketbroker.sources.ranges import Queue, Range
from rocketbroker.testing.files import MemoryDisk

QUEUE = Queue("T", "b", 0)
ENDS = {QUEUE: End(5, (Mark(4, 6, "id"),))}
SOURCE = PlanSource("store", (), ("b",))
LAST = {"offset": 4, "storeTimestamp": 6, "msgId": "id"}
PART = {"brokerName": "b", "queueId": 0, "from": 0, "until": 5, "first": None}
ROW: dict[str, Any] = {"path": "p", "rows": 5, "ranges": [{**PART, "last": LAST}]}


def plan(number: int) -> Plan:
    """A plan of five messages."""
    return Plan(number, "T", 1, (Range(QUEUE, 0, 5),), ())


class LedgerTests(SynchronousTestCase):
    """L{Ledger}."""

    def setUp(self) -> None:
        """An empty disk."""
        self.disk = MemoryDisk()
        self.storage = DirectoryStorage(self.disk, "/lake/export")

    def ledger(self) -> Ledger:
        """The ledger, with the lease taken."""
        made = Ledger(self.storage)
        made.take_lease({"pid": 1})
        self.addCleanup(made.release)
        return made

    def test_empty(self) -> None:
        """Nothing is planned, committed or known."""
        ledger = self.ledger()
        self.assertEqual(ledger.last_commit(), 0)
        self.assertEqual(ledger.pending(), {})
        self.assertEqual(ledger.ends(), {})
        self.assertIsNone(ledger.origin())

    def test_planThenCommit(self) -> None:
        """A plan is pending until it is committed; then its ends are known."""
        ledger = self.ledger()
        ledger.write_plan(plan(1))
        self.assertEqual(ledger.pending(), {"T": plan(1)})
        ledger.commit(plan(1), [ROW], 9)
        self.assertEqual(ledger.pending(), {})
        self.assertEqual(ledger.last_commit(), 1)
        self.assertEqual(ledger.ends(), ENDS)

    def test_commitOnce(self) -> None:
        """A commit is never replaced."""
        ledger = self.ledger()
        ledger.commit(plan(1), [ROW], 9)
        self.assertRaises(StoreError, ledger.commit, plan(1), [], 9)
        self.assertEqual(ledger.ends(), ENDS)

    def test_abandon(self) -> None:
        """A plan that is dropped leaves no file, and a word in the ledger."""
        ledger = self.ledger()
        ledger.write_plan(plan(1))
        ledger.commit(plan(1), [ROW], 9)
        wanted = Range(QUEUE, 5, 9)
        task = FileTask("T/dt=1/hour=2/x.zstd.parquet", (wanted,))
        dropped = Plan(2, "T", 1, (wanted,), (task,))
        ledger.write_plan(dropped)
        self.storage.put(task.path, b"whole")
        self.storage.create(task.path).write(b"half")
        ledger.abandon(dropped, 9)
        self.assertEqual(self.disk.list("/lake/export/T/dt=1/hour=2"), [])
        self.assertEqual((ledger.pending(), ledger.ends()), ({}, ENDS))
        self.assertTrue(read_history(self.storage).commits[-1].abandoned)
        self.assertEqual(ledger.next_number(), 3)
        self.assertRaises(StoreError, ledger.abandon, dropped, 9)

    def test_crash(self) -> None:
        """What was written outlives a loss of power at once."""
        for seed in range(20):
            self.disk = MemoryDisk()
            self.storage = DirectoryStorage(self.disk, "/lake/export")
            ledger = self.ledger()
            ledger.add_source("T", SOURCE)
            ledger.write_plan(plan(1))
            self.disk.crash(random.Random(seed))
            again = self.ledger()
            self.assertEqual(again.origin(), "store")
            self.assertEqual(again.sources(), {"T": SOURCE})
            self.assertEqual(again.pending(), {"T": plan(1)})
            again.commit(plan(1), [ROW], 9)
            self.disk.crash(random.Random(seed))
            self.assertEqual(self.ledger().ends(), ENDS)

    def test_fullDisk(self) -> None:
        """A disk that refuses leaves neither half a plan nor half a commit."""
        for call in ("pwrite", "datasync", "rename"):
            ledger = self.ledger()
            self.disk.fail(call, errno.ENOSPC)
            self.assertRaises(OSError, ledger.write_plan, plan(1))
            self.assertEqual(ledger.pending(), {})
            self.disk.fail(call, errno.ENOSPC)
            self.assertRaises(OSError, ledger.commit, plan(1), [ROW], 9)
            self.assertEqual(ledger.last_commit(), 0)
            ledger.release()

    def test_oneWriter(self) -> None:
        """A second writer is refused in one sentence, and may follow the first."""
        first = self.ledger()
        second = Ledger(self.storage)
        error = self.assertRaises(ConfigurationError, second.take_lease, {})
        self.assertEqual(
            str(error),
            "another export is writing here: /lake/export/_rocketbroker/lease.json",
        )
        first.release()
        second.take_lease({})
        second.release()

    def test_notWritable(self) -> None:
        """A directory that cannot be written is one sentence."""
        self.disk.fail("open", errno.EACCES)
        error = self.assertRaises(
            ConfigurationError,
            Ledger(self.storage).take_lease,
            {},
        )
        self.assertIn("cannot write /lake/export/_rocketbroker/lease.json", str(error))

    def test_damaged(self) -> None:
        """A file that cannot be read is named, not passed over."""
        ledger = self.ledger()
        for name, ask in (
            ("plans/00000001.json", ledger.pending),
            ("commits/00000001.json", ledger.ends),
            ("job.json", ledger.origin),
        ):
            self.storage.put(f"_rocketbroker/{name}", b"{")
            error = self.assertRaises(StoreError, ask)
            self.assertIn(f"/lake/export/_rocketbroker/{name}", str(error))

    def test_sources(self) -> None:
        """Where a topic comes from grows; version 1 knows only of which kind it is."""
        ledger = self.ledger()
        self.storage.put(
            "_rocketbroker/job.json", b'{"version": 1, "origin": "nameServer"}'
        )
        ledger.commit(plan(1), [ROW], 9)
        self.assertEqual(ledger.sources(), {"T": PlanSource("nameServer")})
        ledger.add_source("T", PlanSource("nameServer", ("east",), ("b",)))
        ledger.add_source("T", PlanSource("store", (), ("c",)))
        ledger.add_source("U", SOURCE)
        both = PlanSource("nameServer", ("east",), ("b", "c"))
        self.assertEqual(ledger.sources(), {"T": both, "U": SOURCE})
        self.assertEqual(ledger.origin(), "nameServer")

    def test_others(self) -> None:
        """Other files in the directories do not count."""
        ledger = self.ledger()
        for name in ("plans/x.json", "plans/00000009.json.tmp", "commits/README"):
            self.storage.put(f"_rocketbroker/{name}", b"")
        self.assertEqual(ledger.last_commit(), 0)
        self.assertEqual(ledger.pending(), {})
