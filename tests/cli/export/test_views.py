"""C{rocketbroker export status}, C{lag} and C{verify}."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.cli.command import command
from rocketbroker.export.ledger import Ledger
from rocketbroker.sources.offline import StoreOrigin
from rocketbroker.sources.options import ReadOptions
from tests.export.worlds import Died, World
from tests.store.index.keyed import message
from tests.store.stores import on_disk


class ExportViewsTests(SynchronousTestCase):
    """An export of a small store."""

    def setUp(self) -> None:
        """Three messages, exported, and one that came later."""
        self.store = os.path.abspath(self.mktemp())
        self.fill("a", "b", "c")
        self.root = os.path.abspath(self.mktemp())
        self.world = World(self.root, {})
        self.open()
        self.assertEqual(self.world.run(store=self.store), 0)

    def open(self) -> None:
        """Let the export see the store as it is now.

        A run closes its own origin before the tasks read from theirs.
        """
        options = ReadOptions(store=self.store, topics=("T",), broker_name="b")
        planning: Any = StoreOrigin(options)
        reading = StoreOrigin(options)
        for origin in (planning, reading):
            self.addCleanup(origin.close)
        self.world.origin, self.world.copying.origin = planning, reading

    def fill(self, *keys: str) -> None:
        """Put messages into the store."""
        store = on_disk(self.store)
        store.append([message(store, key) for key in keys])
        while store.dispatch(100):
            pass
        store.close()

    def rows(self, verb: str, *words: str, status: int = 0) -> list[dict[str, Any]]:
        """The rows that a verb prints."""
        all_words = ("export", verb, self.root, *words, "--output", "jsonl")
        result = CliRunner().invoke(command, all_words)
        self.assertEqual(result.exit_code, status, result.output)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def source(self) -> tuple[str, ...]:
        """The words that name the store."""
        return ("--store", self.store, "--broker-name", "b")

    def test_status(self) -> None:
        """What is exported, and by whom nothing is written now."""
        whole, queue = self.rows("status")
        self.assertEqual(whole["address"], self.root)
        self.assertEqual((whole["rows"], whole["files"], whole["commits"]), (3, 1, 1))
        self.assertEqual((whole["pending"], whole["missing"]), (0, 0))
        self.assertEqual((whole["origin"], whole["writer"]), ("store", ""))
        self.assertEqual(whole["committed"], 1_700_000_000_000)
        self.assertEqual((queue["topic"], queue["broker"]), ("T", "b"))
        self.assertEqual((queue["from"], queue["until"], queue["rows"]), (0, 3, 3))

    def test_abandon(self) -> None:
        """A plan that waits is dropped, and what it covers is planned anew."""
        self.fill("d")
        self.open()
        self.world.copying.die_after = 1
        self.assertRaises(Died, self.world.run, store=self.store)
        self.assertEqual(len(self.world.files()), 2)
        words = ("export", "abandon", self.root, "T")
        result = CliRunner().invoke(command, words)
        self.assertEqual(result.output, "plan 2 of T, 1 message, is dropped\n")
        self.assertEqual(len(self.world.files()), 1)
        self.assertEqual(Ledger(self.world.storage).pending(), {})
        self.open()
        self.world.copying.die_after = None
        self.assertEqual(self.world.run(store=self.store), 0)
        whole, _ = self.rows("status")
        self.assertEqual((whole["rows"], whole["commits"]), (4, 3))
        self.rows("verify")

    def test_statusOfPlans(self) -> None:
        """A plan that waits is named, and so is who writes."""
        self.fill("d")
        self.open()
        self.world.copying.die_after = 0
        self.assertRaises(Died, self.world.run, store=self.store)
        ledger = Ledger(self.world.storage)
        ledger.take_lease({"pid": 1})
        self.addCleanup(ledger.release)
        whole, _, plan = self.rows("status", "T")
        self.assertEqual((whole["pending"], whole["writer"]), (1, '{"pid": 1}'))
        self.assertEqual(
            (plan["kind"], plan["topic"], plan["rows"]), ("pending", "T", 1)
        )

    def test_statusOfDamage(self) -> None:
        """A commit that cannot be read is named, and all others are shown."""
        self.world.storage.put("_rocketbroker/commits/00000002.json", b"{")
        rows = self.rows("status", status=1)
        self.assertEqual(rows[0]["rows"], 3)

    def test_nothing(self) -> None:
        """A place without an export is a sentence, and so is a topic without one."""
        empty = os.path.abspath(self.mktemp())
        for words, text in (
            (("status", empty), f"{empty} holds no export"),
            (("verify", self.root, "U"), f"{self.root} holds nothing of U"),
        ):
            result = CliRunner().invoke(command, ("export", *words))
            self.assertEqual(result.exit_code, 1)
            self.assertEqual(str(result.exception), text)

    def test_lag(self) -> None:
        """What came since is behind."""
        (row,) = self.rows("lag", *self.source())
        self.assertEqual((row["exported"], row["latest"], row["behind"]), (3, 3, 0))
        self.assertEqual(row["behind_ms"], 0)
        self.fill("d", "e")
        (row,) = self.rows("lag", *self.source())
        self.assertEqual((row["exported"], row["latest"], row["behind"]), (3, 5, 2))
        self.assertGreater(row["behind_ms"], 0)
        self.rows("lag", status=2)

    def test_verify(self) -> None:
        """A whole export has no fault, also beside its source."""
        (row,) = self.rows("verify")
        self.assertEqual((row["level"], row["files"], row["rows"]), ("digests", 1, 3))
        self.assertEqual((row["faults"], row["compared"]), (0, 0))
        (row,) = self.rows("verify", *self.source())
        self.assertEqual((row["level"], row["faults"]), ("source", 0))
        self.assertEqual((row["compared"], row["removed_at_source"]), (3, 0))
        tree = json.loads(self.world.storage.read("_rocketbroker/report/verified.json"))
        self.assertEqual((tree["level"], tree["lastCommit"]), ("source", 1))

    def test_report(self) -> None:
        """A page stands beside the ledger, or where it is wanted; it knows of checks,
        and of the source if that is named."""
        result = CliRunner().invoke(command, ("export", "report", self.root))
        self.assertEqual(result.exit_code, 0, result.output)
        path = self.world.storage.where("_rocketbroker/report/report.html")
        self.assertEqual(result.stdout, f"{path}\n")
        text = Path(path).read_text("utf-8")
        self.assertIn("Files: never checked", text)
        self.assertIn("The source was not asked", text)
        self.rows("verify")
        self.fill("d", "e")
        out = os.path.abspath(self.mktemp())
        words = ("export", "report", self.root, "--out", out, *self.source())
        self.assertEqual(CliRunner().invoke(command, words).exit_code, 0)
        text = Path(out).read_text("utf-8")
        self.assertIn("(digests), 1 file, 3 rows, 0 faults", text)
        self.assertIn(f"Compared with {self.store}", text)
        self.world.storage.put("_rocketbroker/report/verified.json", b"{}")
        words = ("export", "report", self.root, "--out", out)
        self.assertEqual(CliRunner().invoke(command, words).exit_code, 0)
        self.assertIn("Files: never checked", Path(out).read_text("utf-8"))

    def test_verifyFaults(self) -> None:
        """A file that is gone is one line and status 5; the ledger is whole."""
        (path,) = self.world.files()
        os.remove(self.world.storage.where(path))
        self.assertEqual(self.rows("verify", "--level", "manifest")[0]["faults"], 0)
        fault, row = self.rows("verify", "--level", "files", status=5)
        self.assertEqual((fault["fault"], fault["where"]), ("files", path))
        self.assertEqual(row["faults"], 1)
