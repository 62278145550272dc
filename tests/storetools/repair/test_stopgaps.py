"""Files of a log that are given up."""

from __future__ import annotations

import contextlib
import errno
import json
import os

from rocketbroker.errors import StoreError
from rocketbroker.records.record import decode
from rocketbroker.store.commitlog.loading import MAX_MISSING
from rocketbroker.store.file_names import segment_name
from rocketbroker.storetools.repair.filler_records import LOST
from rocketbroker.storetools.repair.stopgaps import UNFINISHED
from tests.store.repairs import DamagedStore, repair_of
from tests.store.stores import ROOT, SEGMENT, opened, options, put

FOLDER = os.path.join(ROOT, "commitlog")


class StopGapTests(DamagedStore):
    """A store of some files, of which some are missing, repaired without them."""

    def setUp(self) -> None:
        """Fill it."""
        super().setUp()
        store = opened(self.disk)
        for number in range(40, 240):
            put(store, store.queue("T", 0), b"%03d" % number * 400, tags="A")
            put(store, store.queue("T", 1), b"x" * 300)
        while store.build_index(1000):
            pass
        store.close()
        self.before = {queue_id: self.messages(queue_id) for queue_id in (0, 1)}
        self.files = self.disk.list(FOLDER)
        self.assertGreater(len(self.files), 4)

    def remove(self, *numbers: int) -> None:
        """Remove files of the log."""
        for number in numbers:
            self.disk.remove(os.path.join(FOLDER, self.files[number]))

    def expect_rest(self, *numbers: int) -> None:
        """All is there, in its place, but what was in those files has no body."""
        self.assertEqual(self.faults(), [])
        self.assertEqual(self.disk.list(FOLDER), self.files)
        last_ms = 0
        for queue_id, before in self.before.items():
            found = self.messages(queue_id)
            self.assertEqual(len(found), len(before))
            for old, new in zip(before, found, strict=True):
                if old.position // SEGMENT in numbers:
                    self.assertEqual(new.body, b"")
                    self.assertEqual(new.properties[LOST], str(old.size))
                else:
                    self.assertEqual((new.body, new.tags), (old.body, old.tags))
                self.assertGreaterEqual(new.store_ms, last_ms)
                last_ms = new.store_ms
            last_ms = 0
        again = self.repair()
        self.assertEqual((self.told, again.copies), ([], ""))

    def texts(self, kind: str) -> list[str]:
        """What was told of a kind."""
        return [f"{each.where}: {each.text}" for each in self.told if each.kind == kind]

    def test_middle(self) -> None:
        """Those in the middle are replaced; what was in them is told, and what was
        made is noted."""
        self.remove(1, 2, 4)
        repair = self.repair(left=None)
        self.assertEqual(self.kinds(), ["unrepaired"])
        self.assertEqual((repair.faults, repair.left), (len(self.told),) * 2)
        self.assertIn("--give-up-missing", self.told[0].text)
        calls = dict(self.disk.calls)
        self.repair(dry=True, left=None, give_up=True)
        for call in ("pwrite", "truncate", "allocate", "make_dirs"):
            self.assertEqual(self.disk.calls[call], calls[call], call)
        wanted = [text for text in self.texts("given-up") if "/commitlog:" in text]
        self.assertEqual(len(wanted), 2)
        self.assertIn(f"from position {SEGMENT} to {3 * SEGMENT} are given", wanted[0])
        self.assertEqual(len(self.disk.list(FOLDER)), len(self.files) - 3)
        repair = self.repair(give_up=True)
        self.assertEqual(self.kinds(), ["emptied", "given-up", "moved"])
        told = self.texts("given-up")
        self.assertEqual([text for text in told if "/commitlog:" in text], wanted)
        first = min(
            each.queue_offset for each in self.before[0] if each.position >= SEGMENT
        )
        self.assertIn(f"T/0 offsets {first} to ", told[1])
        lines = self.disk.read(os.path.join(repair.copies, "changes.jsonl"))
        rows = [json.loads(line) for line in lines.splitlines()]
        made = [row for row in rows if "made" in row]
        paths = [os.path.join(FOLDER, self.files[number]) for number in (1, 2, 4)]
        self.assertEqual(made, [{"path": path, "made": SEGMENT} for path in paths])
        self.assertFalse([row for row in rows if UNFINISHED in row["path"]])
        self.expect_rest(1, 2, 4)

    def test_end(self) -> None:
        """So are those at the end of a store that was stopped cleanly, also if only
        queues tell of them; what comes then goes behind what was there."""
        last = len(self.files) - 1
        for name in ("", "rocketbroker.ends"):
            self.setUp()
            if name:
                self.disk.remove(os.path.join(ROOT, name))
            self.remove(last - 1, last)
            self.repair(left=None)
            self.assertEqual(self.kinds(), ["unrepaired"])
            self.repair(give_up=True)
            self.expect_rest(last - 1, last)
            store = opened(self.disk)
            put(store, store.queue("T", 0), b"more")
            store.close()
            found = self.messages()
            self.assertEqual(found[-1].body, b"more")
            before = max(each[-1].position for each in self.before.values())
            self.assertGreater(found[-1].position, before)
            self.assertEqual(self.faults(), [])

    def test_begin(self) -> None:
        """Without the first ones the log begins later, and queues with it."""
        self.remove(0, 1, 2)
        self.repair(left=None)
        self.assertEqual(self.kinds(), ["unrepaired"])
        self.repair(give_up=True)
        self.assertIn("it begins behind them", self.texts("given-up")[0])
        self.assertEqual(self.disk.list(FOLDER), self.files[3:])
        self.assertEqual(self.faults(), [])
        store = opened(self.disk)
        self.assertEqual(store.report, [])
        for queue_id, before in self.before.items():
            queue = store.queue("T", queue_id)
            left = [each for each in before if each.position >= 3 * SEGMENT]
            self.assertEqual(queue.min_offset, left[0].queue_offset)
            self.assertEqual(queue.max_offset, len(before))
            data = store.read(queue, queue.min_offset, 1, 1 << 20, None).records[0]
            self.assertEqual(decode(data).body, left[0].body)
        store.close()

    def test_crashed(self) -> None:
        """After a crash those between others are replaced as well."""
        self.disk.open(os.path.join(ROOT, "abort"), create=True).close()
        self.remove(2)
        self.repair(give_up=True)
        self.expect_rest(2)

    def test_others(self) -> None:
        """What else is wrong is repaired as well: a body, and a file too short."""
        message = self.before[0][7]
        path = os.path.join(FOLDER, self.files[0])
        self.change(path, message.position + 500, b"!")
        file = self.disk.open(os.path.join(FOLDER, self.files[1]))
        file.truncate(SEGMENT // 2)
        file.close()
        self.remove(2)
        self.repair(give_up=True)
        self.assertEqual(self.faults(), [])
        self.assertEqual(self.messages()[7].body, b"")
        self.assertEqual(self.messages()[8].body, self.before[0][8].body)

    def test_interrupted(self) -> None:
        """Nothing that is not full is ever in the log; a repair that the disk has ended
        leaves nothing behind, and can be run again."""
        self.remove(1, 2)
        for after in range(20):
            for call in ("rename", "datasync"):
                self.disk.fail(call, errno.EIO, after=after)
                with contextlib.suppress(StoreError):
                    self.repair(left=None, give_up=True)
                self.disk.heal()
                self.assertNotIn(UNFINISHED, self.disk.list(FOLDER))
                for name in self.files[1:3]:
                    path = os.path.join(FOLDER, name)
                    if self.disk.exists(path):
                        self.assertTrue(any(self.disk.read(path)[:8]))
        self.repair(left=None, give_up=True)
        self.expect_rest(1, 2)

    def test_killed(self) -> None:
        """What one that was killed has left is no file of the log, and goes."""
        self.remove(1)
        left = os.path.join(FOLDER, UNFINISHED)
        self.disk.make_dirs(left)
        self.disk.open(os.path.join(left, self.files[2]), create=True).close()
        self.repair(give_up=True)
        self.expect_rest(1)

    def test_folders(self) -> None:
        """A log of several directories gets them where the file before is."""
        other = "/other/commitlog"
        self.disk.make_dirs(other)
        for name in self.files[2:]:
            path = os.path.join(FOLDER, name)
            self.disk.rename(path, os.path.join(other, name))
        self.disk.remove(os.path.join(other, self.files[3]))
        given = options(store_path_commit_log=f"{FOLDER},{other}")
        repair_of(self.disk, given=given, give_up=True).run(False)
        self.assertEqual(self.disk.list(FOLDER), self.files[:2])
        self.assertEqual(self.disk.list(other), self.files[2:])

    def test_tooMany(self) -> None:
        """Where more are missing than a start goes on without, none is made."""
        far = os.path.join(FOLDER, segment_name((MAX_MISSING + 9) * SEGMENT))
        self.disk.rename(os.path.join(FOLDER, self.files[-1]), far)
        self.repair(left=None, give_up=True)
        self.assertEqual(self.kinds(), ["unrepaired"])
        self.assertNotIn("--give-up-missing", self.told[0].text)
