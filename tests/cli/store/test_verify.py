"""C{rocketbroker store verify}."""

from __future__ import annotations

import json
import os

from click.testing import CliRunner
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.cli.command import command
from rocketbroker.store.index.file import HEADER, SLOT
from rocketbroker.store.message_store import Store
from tests.store.index.keyed import message
from tests.store.stores import SEGMENT, on_disk, put

SLOTS = 10
NUMBERS = 50


class VerifyTests(SynchronousTestCase):
    """A small store on the disk, with a small index."""

    def setUp(self) -> None:
        """Make it: three messages with a key each."""
        self.root = os.path.abspath(self.mktemp())
        store = self.opened()
        store.append([message(store, key) for key in ("a", "b", "c")])
        while store.dispatch(100):
            pass
        while store.build_index(100):
            pass
        self.end = store.published_position
        store.close()
        self.config: str = self.mktemp()
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(f"maxHashSlotNum={SLOTS}\nmaxIndexNum={NUMBERS}\n")

    def opened(self) -> Store:
        """The store, open."""
        return on_disk(self.root, max_hash_slot_num=SLOTS, max_index_num=NUMBERS)

    def rows(self, *words: str, status: int = 0) -> list[dict[str, object]]:
        """The rows that it prints."""
        all_words = ("store", "verify", self.root, *words, "--output", "jsonl")
        result = CliRunner().invoke(command, all_words)
        self.assertEqual(result.exit_code, status, result.output)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def test_good(self) -> None:
        """All that was looked at is told."""
        (row,) = self.rows("-c", self.config)
        self.assertEqual((row["records"], row["index_entries"]), (3, 3))
        self.assertEqual((row["bytes"], row["faults"]), (self.end, 0))
        self.assertEqual(row["index_files_of_other_size"], 0)

    def test_withoutLog(self) -> None:
        """Where queues have files a log without any is lost, and that is one fault;
        else it is that of a store without messages."""
        os.remove(os.path.join(self.root, "commitlog", "0" * 20))
        fault, row = self.rows(status=1)
        self.assertIn("The log is lost", str(fault["text"]))
        self.assertEqual((row["faults"], row["records"]), (1, 0))
        os.remove(os.path.join(self.root, "consumequeue", "T", "0", "0" * 20))
        os.remove(os.path.join(self.root, "rocketbroker.ends"))
        remark, row = self.rows("-c", self.config)
        self.assertEqual((remark["kind"], row["faults"]), ("remark", 0))

    def test_otherIndex(self) -> None:
        """An index of another size than the settings say is not looked at."""
        (row,) = self.rows()
        self.assertEqual(row["index_entries"], 0)
        self.assertEqual(row["index_files_of_other_size"], 1)

    def test_settings(self) -> None:
        """A JSON file of the broker's that cannot be read is a fault; after a crash the
        next start deals with it."""
        folder = os.path.join(self.root, "config")
        os.mkdir(folder)
        with open(os.path.join(folder, "topics.json"), "w", encoding="utf-8") as file:
            file.write('{"torn')
        fault, row = self.rows("-c", self.config, status=1)
        self.assertEqual((fault["fault"], fault["where"]), ("file", file.name))
        self.assertEqual(row["faults"], 1)
        with open(os.path.join(self.root, "abort"), "wb"):
            pass
        self.assertEqual(len(self.rows("-c", self.config)), 1)

    def test_size(self) -> None:
        """The settings tell how long the only file of the log should be."""
        log = os.path.join(self.root, "commitlog", "0" * 20)
        os.truncate(log, SEGMENT - 8192)
        self.assertEqual(len(self.rows("-c", self.config)), 1)
        with open(self.config, "a", encoding="utf-8") as file:
            file.write(f"mappedFileSizeCommitLog={SEGMENT}\n")
        fault, _ = self.rows("-c", self.config, status=1)
        self.assertEqual((fault["fault"], fault["where"]), ("file", log))

    def test_remark(self) -> None:
        """That the log began earlier when it was stopped is a remark, if nothing tells
        that its first files were lost: the exit status is that of a good store."""
        store = self.opened()
        put(store, store.queue("T", 0), *[b"x" * 30_000] * 3)
        store.close()
        os.remove(os.path.join(self.root, "commitlog", "0" * 20))
        remark, row = self.rows("-c", self.config)
        self.assertEqual(row["faults"], 0)
        self.assertEqual((remark["kind"], remark["position"]), ("remark", 0))
        self.assertIn(f"now its files begin at {SEGMENT}", str(remark["text"]))

    def test_faultInIndex(self) -> None:
        """A fault in the index is told like any other, and is in the exit status."""
        (name,) = os.listdir(os.path.join(self.root, "index"))
        with open(os.path.join(self.root, "index", name), "r+b") as file:
            file.seek(HEADER.size + SLOTS * SLOT.size + 20)
            file.write(b"\x01\x01")
        *faults, row = self.rows("-c", self.config, status=1)
        self.assertEqual({fault["fault"] for fault in faults}, {"index"})
        self.assertEqual(row["faults"], len(faults))

    def test_takeover(self) -> None:
        """What a broker does not take over yet is a remark."""
        folder = os.path.join(self.root, "config", "users")
        os.makedirs(folder)
        with open(os.path.join(folder, "CURRENT"), "w", encoding="utf-8") as file:
            file.write("x")
        remark, row = self.rows("-c", self.config)
        self.assertEqual((remark["kind"], row["faults"]), ("remark", 0))
        self.assertIn("users of ACL 2.0", str(remark["text"]))
