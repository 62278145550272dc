"""What a clean stop writes down of its queues."""

from __future__ import annotations

import errno
import json

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.store.file_names import segment_name
from rocketbroker.store.message_store import Store
from rocketbroker.store.recovery.clean_shutdown import NAME, sealed
from rocketbroker.testing.files import MemoryDisk
from tests.store.accidents import change_topics, die_at_start, lose_folder
from tests.store.stores import ROOT, bodies, opened, put

PATH = f"{ROOT}/{NAME}"

#: What our own reader of JSON takes, or gives up in another way.
ODD = b'{"published": Infinity}', b"[" * 100_000


class CleanShutdownTests(SynchronousTestCase):
    """A store with two queues that was stopped cleanly."""

    def setUp(self) -> None:
        """Begin."""
        self.start_over()

    def start_over(self) -> None:
        """Some messages; those of the second queue are the last."""
        self.disk = MemoryDisk()
        store = opened(self.disk)
        self.first = [b"%d" % number for number in range(10)]
        put(store, store.queue("T", 0), *self.first)
        put(store, store.queue("T", 1), b"last")
        store.close()

    def tear(self) -> None:
        """Lose the last five entries of the first queue."""
        path = f"{ROOT}/consumequeue/T/0/{segment_name(0)}"
        self.disk.open(path).pwrite(bytes(100), 100)

    def check(self, count: int, report: int) -> Store:
        """Start; look how many messages there are, and how much is reported."""
        store = opened(self.disk)
        self.assertEqual(bodies(store, store.queue("T", 0)), self.first[:count])
        self.assertEqual(bodies(store, store.queue("T", 1)), [b"last"])
        self.assertEqual(len(store.report), report)
        return store

    def test_sound(self) -> None:
        """Nothing is read or reported when the queues are as they were; the file is
        gone while the store is in use, and written by each clean stop."""
        store = self.check(10, report=0)
        self.assertEqual(store.recovered.records, 0)
        self.assertFalse(self.disk.exists(PATH))
        store.close()
        self.assertTrue(self.disk.exists(PATH))

    def test_torn(self) -> None:
        """A queue that has lost entries gets them back from the log."""
        self.tear()
        self.assertIn("T/0 ends at offset 5", self.check(10, report=1).report[0])

    def test_tornTwice(self) -> None:
        """It gets them back although the start that was about to was killed: the next
        one does not take the stop before for a clean one."""
        for call in ("pwrite", "truncate", "datasync", "sync_dir", "remove"):
            for after in range(12):
                self.start_over()
                self.tear()
                die_at_start(self.disk, call, after)
                store = opened(self.disk)
                self.assertEqual(bodies(store, store.queue("T", 0)), self.first)

    def test_unknown(self) -> None:
        """Without the file, or with one that makes no sense, it is trusted as it
        stands, as RocketMQ trusts it."""
        for content in (None, b"", b"{", b"[]", b'{"published": 1}', b"\xff\0", *ODD):
            self.start_over()
            self.tear()
            self.disk.remove(PATH)
            if content is not None:
                self.disk.open(PATH, create=True).pwrite(content, 0)
            self.check(5, report=0)

    def test_grown(self) -> None:
        """It does not count when somebody has appended since."""
        content = self.disk.read(PATH)
        store = opened(self.disk)
        store.delete_topic("T")
        put(store, store.queue("T", 0), b"new")
        store.close()
        file = self.disk.open(PATH)
        file.truncate(0)
        file.pwrite(content, 0)
        store = opened(self.disk)
        self.assertEqual(bodies(store, store.queue("T", 0)), [b"new"])
        self.assertEqual(store.report, [])

    def test_directoryLost(self) -> None:
        """A queue that has lost its directory is made again, and goes on where it
        was, whichever it is."""
        for gone in ((0,), (1,), (0, 1)):
            self.start_over()
            for queue_id in gone:
                lose_folder(self.disk, f"{ROOT}/consumequeue/T/{queue_id}")
            if gone == (0, 1):
                self.disk.remove_dir(f"{ROOT}/consumequeue/T")
            store = self.check(10, report=len(gone) % 2)
            put(store, store.queue("T", 0), b"next")
            self.assertEqual(store.queue("T", 0).max_offset, 11)
            store.close()

    def test_deleted(self) -> None:
        """It is not where topics have changed since: another broker has deleted its
        topic. One that has entries yet gets all of them back, and so does a light
        queue, which is no topic."""
        for lost in ("", "%LMQ%a", "U"):
            self.start_over()
            change_topics(self.disk, 0)
            store = opened(self.disk)
            put(store, store.queue("%LMQ%a", 0), b"light", b"light")
            put(store, store.queue("U", 0), b"other", b"other")
            put(store, store.queue("V", 0), b"last")
            store.close()
            change_topics(self.disk, 1)
            for queue_id in range(2):
                lose_folder(self.disk, f"{ROOT}/consumequeue/T/{queue_id}")
            if lost == "U":
                path = f"{ROOT}/consumequeue/U/0/{segment_name(0)}"
                self.disk.open(path).pwrite(bytes(20), 20)
            elif lost:
                lose_folder(self.disk, f"{ROOT}/consumequeue/{lost}/0")
            store = opened(self.disk)
            self.assertEqual(len(store.report), lost != "")
            if not lost:
                self.assertEqual(store.queue("T", 0).max_offset, 0)
            self.assertEqual(store.queue("%LMQ%a", 0).max_offset, 2)
            self.assertEqual(store.queue("U", 0).max_offset, 2)
            store.close()

    def test_oddNames(self) -> None:
        """Names that no queue can have lead to nothing."""
        content = json.loads(self.disk.read(PATH))
        del content["crc"]
        for name in ("../../x", "T" * 300, "\ud800"):
            content["queues"].append([name, 0, 7, 0, 0, 7, [1, 1]])
        for number in (-1, 1 << 40):
            content["queues"].append(["T", number, 7, 0, 0, 7, [1, 1]])
        file = self.disk.open(PATH)
        file.truncate(0)
        file.pwrite(sealed(content), 0)
        before = self.disk.list(ROOT)
        self.check(10, report=0).close()
        self.assertEqual(self.disk.list(ROOT), before)
        self.assertEqual(self.disk.list(f"{ROOT}/consumequeue"), ["T"])
        self.assertEqual(self.disk.list(f"{ROOT}/consumequeue/T"), ["0", "1"])

    def test_badDisk(self) -> None:
        """A disk that does not let it be read, or the checkpoint, is no reason not to
        start; it is reported."""
        for after in range(2):
            self.start_over()
            self.disk.fail("read", errno.EIO, after)
            store = opened(self.disk)
            self.assertEqual(bodies(store, store.queue("T", 0)), self.first)
            self.assertEqual(len(store.report), 1)
            self.assertIn("Input/output error", store.report[0])
            store.close()
