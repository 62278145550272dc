"""The verbs of C{rocketbroker store}."""

from __future__ import annotations

import json
import os

from click.testing import CliRunner, Result
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.cli.command import command
from rocketbroker.cli.store.commands import is_locked
from rocketbroker.files.disk import Disk
from tests.store.stores import SEGMENT, on_disk, put


class StoreCommandTests(SynchronousTestCase):
    """A small store on the disk."""

    def setUp(self) -> None:
        """Make it."""
        self.root = os.path.abspath(self.mktemp())
        store = on_disk(self.root)
        put(store, store.queue("T", 0), b"apple", b"pear", tags="A")
        put(store, store.queue("T", 2), b"plum", tags="B")
        put(store, store.queue("U", 0), b"nut")
        store.close()

    def call(self, *words: str) -> Result:
        """Call the command in this process."""
        return CliRunner().invoke(command, ("store", *words))

    def rows(self, *words: str, status: int = 0) -> list[dict[str, object]]:
        """The rows that it prints."""
        result = self.call(*words, "--output", "jsonl")
        self.assertEqual(result.exit_code, status, result.output)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def damage(self) -> None:
        """Change the body of the first message."""
        with open(os.path.join(self.root, "commitlog", "0" * 20), "r+b") as file:
            file.seek(88)
            file.write(b"b")

    def test_help(self) -> None:
        """The group and its verbs are listed."""
        result = CliRunner().invoke(command, ["--help"])
        self.assertIn("store", result.output)
        for verb in ("ls", "cat", "grep", "stats", "verify", "repair"):
            self.assertIn(verb, self.call("--help").output)

    def test_ls(self) -> None:
        """State, segments, queues."""
        rows = self.rows("ls", self.root)
        kinds = [row["kind"] for row in rows]
        self.assertEqual(kinds, ["store", "segment", "queue", "queue", "queue"])
        self.assertIn("cleanly", self.call("ls", self.root).output)

    def test_locked(self) -> None:
        """Whether a broker holds the store is told, and its lock left alone."""
        self.assertIs(is_locked(self.root), False)
        file = Disk().open(os.path.join(self.root, "lock"), create=True)
        self.assertTrue(file.lock())
        self.assertIs(is_locked(self.root), True)
        self.assertIs(self.rows("ls", self.root)[0]["locked"], True)
        file.close()
        self.assertIs(is_locked(self.root), False)
        self.assertIs(is_locked(self.mktemp()), False)

    def test_stats(self) -> None:
        """A line for each topic."""
        rows = self.rows("stats", self.root)
        self.assertEqual([row["messages"] for row in rows], [3, 1])

    def test_cat(self) -> None:
        """Messages of a topic, a queue, a range; bodies as wanted."""
        rows = self.rows("cat", self.root, "T")
        self.assertEqual([row["body"] for row in rows], ["apple", "pear", "plum"])
        rows = self.rows("cat", self.root, "T", "--queue", "2", "--body", "hex")
        self.assertEqual([row["body"] for row in rows], [b"plum".hex()])
        (row,) = self.rows(
            "cat", self.root, "T", "--queue", "0", "--from", "1", "--until", "2"
        )
        self.assertEqual(row["offset"], 1)
        self.assertNotIn("body", self.rows("cat", self.root, "T", "--body", "none")[0])

    def test_grep(self) -> None:
        """By pattern, topic, tag and key."""
        found = [row["body"] for row in self.rows("grep", self.root, "p[el]")]
        self.assertEqual(found, ["apple", "pear", "plum"])
        found = [row["body"] for row in self.rows("grep", self.root, "p", "--tag", "B")]
        self.assertEqual(found, ["plum"])
        rows = self.rows("grep", self.root, "", "--topic", "U", "--key", "0" * 32)
        self.assertEqual([row["body"] for row in rows], ["nut"])
        self.assertEqual(self.rows("grep", self.root, "", "--key", "other"), [])
        result = self.call("grep", self.root, "", "--topic", "Nowhere")
        self.assertIn("holds no topic Nowhere", str(result.exception))

    def test_verify(self) -> None:
        """0 for a good store, 1 and the places of what is not."""
        (summary,) = self.rows("verify", self.root)
        self.assertEqual((summary["records"], summary["faults"]), (4, 0))
        self.damage()
        fault, summary = self.rows("verify", self.root, status=1)
        self.assertEqual((fault["fault"], fault["position"]), ("body", 88))
        self.assertEqual(summary["faults"], 1)

    def test_damaged(self) -> None:
        """What cannot be read is said, the rest is shown, and the status is 1."""
        self.damage()
        for words in (("cat", self.root, "T"), ("grep", self.root, "p")):
            result = self.call(*words)
            self.assertEqual(result.exit_code, 1)
            self.assertIn("cannot be read", result.stderr)
            self.assertIn("plum", result.stdout)

    def test_gap(self) -> None:
        """Files that are missing between others are said, by all; the status is 1."""
        log = os.path.join(self.root, "commitlog")
        with open(os.path.join(log, f"{2 * SEGMENT:020d}"), "wb") as file:
            file.truncate(SEGMENT)
        for verb in ("ls", "stats"):
            result = self.call(verb, self.root)
            self.assertEqual(result.exit_code, 1)
            self.assertIn(f"{log}/{SEGMENT:020d} is missing", result.stderr)
            self.assertIn("U", result.stdout)
        self.assertEqual(len(self.rows("cat", self.root, "T")), 3)

    def test_wrongUse(self) -> None:
        """What makes no sense ends with 2."""
        for words in (
            ("ls", os.path.join(self.root, "nowhere")),
            ("ls", self.root, "--output", "xml"),
            ("grep", self.root, "("),
            ("cat", self.root),
        ):
            self.assertEqual(self.call(*words).exit_code, 2)
