"""C{rocketbroker store repair}."""

from __future__ import annotations

import json
import os

from click.testing import CliRunner
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.command import command
from rocketbroker.config.store import StoreOptions
from rocketbroker.files.disk import Disk
from rocketbroker.store.store import Store
from tests.store.stores import SEGMENT, STORE_HOST, Wall, put


class RepairCommandTests(SynchronousTestCase):
    """A small store on the disk."""

    def setUp(self) -> None:
        """Make it, with a broker's settings."""
        self.root = os.path.abspath(self.mktemp())
        options = StoreOptions(
            store_path_root_dir=self.root, mapped_file_size_commit_log=SEGMENT
        )
        store = Store(Disk(), options, Wall(), STORE_HOST, memory_bytes=1 << 40)
        store.open()
        put(store, store.queue("T", 0), b"apple", b"pear", tags="A")
        store.close()
        self.topics = os.path.join(self.root, "config", "topics.json")
        os.makedirs(os.path.dirname(self.topics))
        self.write(self.topics, '{"topicConfigTable":{}}')

    def write(self, path: str, text: str) -> None:
        """Write a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def rows(self, *words: str, status: int = 0) -> dict[str, dict[str, object]]:
        """What it prints, by kind."""
        all_words = ("store", "repair", self.root, *words, "--output", "jsonl")
        result = CliRunner().invoke(command, all_words)
        self.assertEqual(result.exit_code, status, result.output)
        rows = [json.loads(line) for line in result.stdout.splitlines()]
        return {row["kind"]: row for row in rows}

    def damage(self) -> None:
        """Change the body of the first message."""
        with open(os.path.join(self.root, "commitlog", "0" * 20), "r+b") as file:
            file.seek(88)
            file.write(b"b")

    def test_nothingToDo(self) -> None:
        """A good store: nothing, and no directory for copies."""
        rows = self.rows()
        self.assertEqual(list(rows), ["summary"])
        self.assertEqual(rows["summary"]["copies"], None)
        names = [name for name in os.listdir(self.root) if name.startswith("repair")]
        self.assertEqual(names, [])

    def test_repaired(self) -> None:
        """A dry run says what would be done; then it is done; then there is nothing to
        do, and verify agrees."""
        self.damage()
        rows = self.rows("--dry-run")
        self.assertEqual(list(rows), ["emptied", "moved", "summary"])
        rows = self.rows()
        self.assertEqual(list(rows), ["emptied", "moved", "summary"])
        copies = str(rows["summary"]["copies"])
        self.assertTrue(os.path.exists(os.path.join(copies, "changes.jsonl")))
        self.assertEqual(list(self.rows()), ["summary"])
        result = CliRunner().invoke(command, ("store", "verify", self.root))
        self.assertEqual(result.exit_code, 0, result.output)

    def test_settings(self) -> None:
        """A file of settings that cannot be read is taken from its copy, and kept."""
        self.write(self.topics + ".bak", '{"topicConfigTable":{"T":{}}}')
        self.write(self.topics, '{"topicConf')
        rows = self.rows()
        self.assertEqual(rows["changed"]["where"], self.topics)
        with open(self.topics, encoding="utf-8") as file:
            self.assertIn('"T"', file.read())
        kept = os.path.join(str(rows["summary"]["copies"]), "config", "topics.json")
        with open(kept, encoding="utf-8") as file:
            self.assertEqual(file.read(), '{"topicConf')

    def test_settingsLost(self) -> None:
        """Without a copy that can be read it is left, and the exit status says so."""
        self.write(self.topics, '{"topicConf')
        rows = self.rows(status=1)
        self.assertEqual(rows["unrepaired"]["where"], self.topics)
        self.assertEqual(rows["summary"]["left"], 1)

    def test_inUse(self) -> None:
        """One sentence, if a broker uses it."""
        file = Disk().open(os.path.join(self.root, "lock"), create=True)
        self.assertTrue(file.lock())
        result = CliRunner().invoke(command, ("store", "repair", self.root))
        self.assertIn("used by a broker", result.output + str(result.exception))
        self.assertNotEqual(result.exit_code, 0)
        file.close()
