"""An export that 0.1.0 has begun is read, checked and gone on with."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from click.testing import CliRunner
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.cli.command import command
from rocketbroker.export.runs import DONE, NOTHING_NEW
from rocketbroker.sources.offline import StoreOrigin
from rocketbroker.sources.options import ReadOptions
from tests.export.worlds import World
from tests.written_by_0_1_0.archive import body_of, unpack

TOPIC = "Orders"
BROKER = "broker-a"


class ExportTests(SynchronousTestCase):
    """One plan is committed, one was left with its file written, and more has come."""

    def setUp(self) -> None:
        """Lay store and export on the disk."""
        folder = unpack(self.mktemp())
        self.store, self.root = str(folder / "store"), str(folder / "export")
        self.world = World(self.root, {})

    def run_once(self) -> int:
        """One run of the export; its status."""
        options = ReadOptions(store=self.store, topics=(TOPIC,), broker_name=BROKER)
        planning: Any = StoreOrigin(options)
        reading = StoreOrigin(options)
        for origin in (planning, reading):
            self.addCleanup(origin.close)
        self.world.origin, self.world.copying.origin = planning, reading
        return self.world.run(store=self.store, topics=(TOPIC,), broker_name=BROKER)

    def rows(self, verb: str, *words: str) -> list[dict[str, Any]]:
        """The rows that a verb prints."""
        all_words = ("export", verb, self.root, *words, "--output", "jsonl")
        result = CliRunner().invoke(command, all_words)
        self.assertEqual(result.exit_code, 0, result.output)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def test_statusAndVerifyReadTheLedger(self) -> None:
        """What was exported is told, and the file is what its commit says."""
        whole, *queues, plan = self.rows("status")
        self.assertEqual((plan["kind"], plan["rows"]), ("pending", 40))
        self.assertEqual((whole["rows"], whole["files"], whole["commits"]), (40, 1, 1))
        self.assertEqual((whole["pending"], whole["missing"]), (1, 0))
        self.assertEqual(whole["writer"], "")
        self.assertEqual([row["until"] for row in queues], [20, 20])
        source = ("--store", self.store, "--broker-name", BROKER)
        for words in ((), source):
            (row, *_) = self.rows("verify", *words)
            self.assertEqual((row["rows"], row["faults"]), (40, 0))

    def test_nextRunGoesOnWhereTheLastOneEnded(self) -> None:
        """The plan that was left is carried out and what came since is exported: each
        message of the store is in the files once."""
        before = self.world.files()
        self.assertEqual(self.run_once(), DONE)
        told = self.world.out.getvalue()
        self.assertIn("event=replaying plan=2", told)
        self.assertIn("event=exporting plan=3", told)
        self.assertLess(set(before), set(self.world.files()))
        rows = self.world.rows()
        places = [(queue, offset) for queue, offset, _ in rows]
        self.assertEqual(places, [(q, n) for q in (0, 1) for n in range(50)])
        bodies = Counter(body for _, _, body in rows)
        self.assertEqual(bodies, Counter(body_of(number) for number in range(100)))
        whole, *queues = self.rows("status")
        self.assertEqual((whole["rows"], whole["commits"]), (100, 3))
        self.assertEqual([row["until"] for row in queues], [50, 50])
        self.assertEqual(self.run_once(), NOTHING_NEW)
        (row, *_) = self.rows("verify")
        self.assertEqual((row["rows"], row["faults"]), (100, 0))
