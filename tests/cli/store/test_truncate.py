"""C{rocketbroker store truncate}."""

from __future__ import annotations

import json
import os

from click.testing import CliRunner, Result
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.cli.command import command
from tests.store.stores import bodies, on_disk, put


class TruncateCommandTests(SynchronousTestCase):
    """A small store on the disk."""

    def setUp(self) -> None:
        """Make it."""
        self.root = os.path.abspath(self.mktemp())
        store = on_disk(self.root)
        put(store, store.queue("T", 0), b"apple")
        self.position = put(store, store.queue("T", 0), b"pear", b"plum")[0].position
        put(store, store.queue("U", 0), b"nut")
        store.close()

    def invoke(self, *words: str, status: int = 0) -> Result:
        """Run it."""
        place = ("store", "truncate", self.root, "--to", str(self.position))
        result = CliRunner().invoke(command, (*place, *words))
        self.assertEqual(result.exit_code, status, result.output)
        return result

    def left(self) -> list[bytes]:
        """The messages that are there."""
        store = on_disk(self.root)
        found = bodies(store, store.queue("T", 0)) + bodies(store, store.queue("U", 0))
        store.close()
        return found

    def test_done(self) -> None:
        """A dry run shows what would go; then it goes, and is kept."""
        result = self.invoke("--dry-run", "--output", "jsonl")
        rows = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertEqual(
            [(row["topic"], row["messages"]) for row in rows[:-1]], [("T", 2), ("U", 1)]
        )
        self.assertEqual(rows[-1]["messages"], 3)
        self.assertEqual(len(self.left()), 4)
        result = self.invoke("--yes", "--output", "jsonl")
        summary = json.loads(result.stdout.splitlines()[-1])
        self.assertEqual(summary["ends"], self.position)
        self.assertEqual(os.path.getsize(summary["kept"]), summary["bytes"])
        self.assertEqual(self.left(), [b"apple"])

    def test_asks(self) -> None:
        """Where nobody can be asked --yes is needed."""
        result = self.invoke(status=2)
        self.assertIn("Discard 3 messages", result.output)
        self.assertEqual(len(self.left()), 4)

    def test_wrongPosition(self) -> None:
        """A position in a message is refused in one sentence."""
        self.position += 1
        result = self.invoke("--yes", status=1)
        self.assertIn("No record begins at position", str(result.exception))
        self.assertEqual(len(self.left()), 4)
