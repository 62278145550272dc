"""C{rocketbroker store repair}."""

from __future__ import annotations

import json
import os
import shutil

from click.testing import CliRunner
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.cli.command import command
from rocketbroker.cli.store.repair import repair_json
from rocketbroker.files.disk import Disk
from rocketbroker.storetools.repair.backup import Backup
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import on_disk, put


class RepairCommandTests(SynchronousTestCase):
    """A small store on the disk."""

    def setUp(self) -> None:
        """Make it, with a broker's settings."""
        self.root = os.path.abspath(self.mktemp())
        store = on_disk(self.root)
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

    def test_noFile(self) -> None:
        """A directory in its place, or a link that leads nowhere, is told, and all else
        is repaired; a copy takes its place, and it is kept with all that is in it."""
        self.damage()
        os.remove(self.topics)
        os.makedirs(os.path.join(self.topics, "inner"))
        link = os.path.join(os.path.dirname(self.topics), "subscriptionGroup.json")
        os.symlink("nowhere", link)
        rows = self.rows(status=1)
        self.assertEqual(rows["summary"]["left"], 2)
        self.assertIn("emptied", rows)
        self.write(self.topics + ".bak", "{}")
        os.remove(link)
        rows = self.rows()
        self.assertEqual(rows["changed"]["where"], self.topics)
        kept = os.path.join(str(rows["summary"]["copies"]), "config", "topics.json")
        self.assertEqual(os.listdir(kept), ["inner"])
        self.assertTrue(os.path.isfile(self.topics))
        self.assertEqual(list(self.rows()), ["summary"])

    def test_inUse(self) -> None:
        """One sentence, if a broker uses it."""
        file = Disk().open(os.path.join(self.root, "lock"), create=True)
        self.assertTrue(file.lock())
        result = CliRunner().invoke(command, ("store", "repair", self.root))
        self.assertIn("used by a broker", result.output + str(result.exception))
        self.assertNotEqual(result.exit_code, 0)
        file.close()

    def fails(self, *words: str) -> str:
        """Run it; the one sentence that it ends with."""
        result = CliRunner().invoke(command, ("store", "repair", *words))
        self.assertNotEqual(result.exit_code, 0)
        return result.output + str(result.exception)

    def test_settingsOfAnother(self) -> None:
        """Of a copy, only the copy is repaired, though the settings name the log of the
        broker that it is from."""
        copy = os.path.realpath(self.mktemp())
        shutil.copytree(self.root, copy)
        log = os.path.join(self.root, "commitlog")
        settings: str = self.mktemp()
        self.write(settings, f"storePathRootDir={self.root}\nstorePathCommitLog={log}")
        for folder in (self.root, copy):
            with open(os.path.join(folder, "commitlog", "0" * 20), "r+b") as file:
                file.seek(88)
                file.write(b"b")
        path = os.path.join(log, "0" * 20)
        with open(path, "rb") as file:
            before = file.read()
        root, self.root = self.root, copy
        kinds = list(self.rows("-c", settings))
        self.assertEqual(kinds, ["emptied", "moved", "summary"])
        with open(path, "rb") as file:
            self.assertEqual(file.read(), before)
        self.assertEqual(os.listdir(os.path.join(copy, "commitlog")), ["0" * 20])
        shutil.rmtree(os.path.join(copy, "commitlog"))
        printed = self.fails(copy, "-c", settings)
        self.assertIn(f"--commit-log {log}", printed)
        result = CliRunner().invoke(command, ("store", "verify", copy, "-c", settings))
        self.assertIn(f"--commit-log {log}", str(result.exception))
        self.assertNotIn("repair-", " ".join(os.listdir(root)))

    def test_logInUse(self) -> None:
        """One sentence, if a broker uses the log that is named, also through a link."""
        copy = os.path.realpath(self.mktemp())
        shutil.copytree(self.root, copy)
        file = Disk().open(os.path.join(self.root, "lock"), create=True)
        self.assertTrue(file.lock())
        link: str = self.mktemp()
        log = os.path.join(self.root, "commitlog")
        os.symlink(log, link)
        for each in (log, link):
            printed = self.fails(copy, "--commit-log", each)
            self.assertIn(f"{self.root} is used by a broker", printed)
        printed = self.fails(copy, "--commit-log", link, "--dry-run")
        self.assertIn("used by a broker", printed)
        file.close()

    def test_noStore(self) -> None:
        """One sentence, if there is no store; nothing is left behind."""
        for folder in (self.mktemp(), os.path.join(self.root, "commitlog")):
            os.makedirs(folder, exist_ok=True)
            before = os.listdir(folder)
            self.assertIn("There is no store in", self.fails(folder))
            self.assertEqual(os.listdir(folder), before)


class SettingsTests(SynchronousTestCase):
    """The broker's JSON files on a disk that cannot be read everywhere."""

    def test_unreadable(self) -> None:
        """One that cannot be read is taken from its copy if that can be, and kept."""
        disk = MemoryDisk()
        disk.make_dirs("/s/config")
        path = "/s/config/topics.json"
        for name in (path, path + ".bak"):
            file = disk.open(name, create=True)
            file.pwrite(b"{}", 0)
            file.close()
        disk.spoil(path, 0, 1)
        copies = Backup(disk, "/s", 1)
        shown = repair_json(disk, "/s", lambda: copies)
        self.assertEqual([each.kind for each in shown], ["changed"])
        self.assertEqual(disk.read(path), b"{}")
        self.assertEqual(disk.list(copies.folder + "/config"), ["topics.json"])
        for name in (path, path + ".bak"):
            disk.spoil(name, 0, 1)
        shown = repair_json(disk, "/s", None)
        self.assertEqual([each.kind for each in shown], ["unrepaired"])
        copies.close()
