"""A store with something else where its files and directories belong."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import StoreError
from rocketbroker.files.disk import Disk
from rocketbroker.files.interfaces import IFiles
from rocketbroker.files.misplaced_files import ASIDE
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.message_store import Store
from rocketbroker.store.recovery.clean_shutdown import NAME
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import (
    QUEUE_ENTRIES,
    ROOT,
    bodies,
    put,
    put_batches,
    unwrapped,
    with_batches,
)

FULL = QUEUE_ENTRIES * 20


class _StoreCase(SynchronousTestCase):
    """Stores that were stopped, and something odd in them."""

    def setUp(self) -> None:
        """Begin."""
        self.start_over()

    def start_over(self) -> None:
        """A new disk."""
        self.files: IFiles = MemoryDisk()
        self.root = ROOT

    def opened(self) -> Store:
        """The store, opened."""
        return with_batches(self.files, store_path_root_dir=self.root)

    def make(self, stop: str) -> None:
        """A store with 250 messages in one queue and 25 batches in another.

        @param stop: "ours": we stopped it; "java": somebody else; "killed": nobody.
        """
        store = self.opened()
        put(store, store.queue("U", 0), b"first")
        self.bodies = [b"%d" % number for number in range(250)]
        put(store, store.queue("T", 0), *self.bodies)
        put_batches(store, store.queue("B", 0), *([b"%d" % n] for n in range(25)))
        put(store, store.queue("U", 0), b"last")
        store.build_index(1000)
        store.close()
        if stop == "java":
            self.files.remove(f"{self.root}/{NAME}")
        if stop == "killed":
            self.files.open(f"{self.root}/abort", create=True).close()

    def remove(self, path: str) -> None:
        """Remove what is there."""
        if not self.files.is_dir(path):
            if self.files.exists(path):
                self.files.remove(path)
            return
        for name in self.files.list(path):
            self.remove(f"{path}/{name}")
        self.files.remove_dir(path)

    def put_folder(self, path: str) -> None:
        """Put a directory with something in it in the place of a file."""
        self.remove(path)
        self.files.make_dirs(f"{path}/kept")

    def put_file(self, path: str) -> None:
        """Put a file in the place of a directory."""
        self.remove(path)
        file = self.files.open(path, create=True)
        file.pwrite(b"kept", 0)
        file.close()

    def served(self, store: Store) -> tuple[int, int, int]:
        """How many messages there are."""
        found = bodies(store, store.queue("T", 0))
        self.assertEqual(found, (self.bodies * 9)[: len(found)])
        batches = len(unwrapped(store, store.queue("B", 0)))
        return len(found), batches, len(bodies(store, store.queue("U", 0)))

    def check(
        self,
        odd: Callable[[str], None],
        name: str,
        sentences: int,
        stops: Sequence[str] = ("killed", "java", "ours"),
    ) -> list[str]:
        """Whatever the stop was, all messages are there and others can be stored; what
        was odd is reported, and moved away.

        @param sentences: how much is reported by each later start.
        @param stops: nothing tells after a clean stop of Java's broker that the
            directory of a topic is gone.
        @return: what the first start reports after our own stop.
        """
        reports = []
        for stop in stops:
            self.start_over()
            self.make(stop)
            odd(f"{self.root}/{name}")
            store = self.opened()
            self.assertEqual(self.served(store), (250, 25, 2), (name, stop))
            self.assertIn(name, "".join(store.report))
            reports.append(store.report)
            put(store, store.queue("T", 0), *self.bodies)
            put_batches(store, store.queue("B", 0), *([b"%d" % n] for n in range(25)))
            store.build_index(1000)
            store.flush_queues()
            store.close()
            store = self.opened()
            self.assertEqual(self.served(store), (500, 50, 2), (name, stop))
            self.assertEqual(len(store.report), sentences, store.report)
            self.assertEqual(store.recovered.records, 0)
            store.close()
        return reports[-1]


class ObstaclesTests(_StoreCase):
    """On a disk in memory."""

    def test_queueFiles(self) -> None:
        """A directory that is called like a file of a queue: the first, one between,
        the last, the next, one far behind."""
        for number in (0, 1, 2, 3, 50):
            name = f"consumequeue/T/0/{segment_name(number * FULL)}"
            self.check(self.put_folder, name, 0)
            kept = name.replace("consumequeue", "consumequeue.given-up")
            self.assertTrue(self.files.is_dir(f"{self.root}/{kept}/kept"))

    def test_batchFiles(self) -> None:
        """The same in a batch queue."""
        for number in (0, 1, 2, 3):
            name = f"batchconsumequeue/B/0/{segment_name(number * 460)}"
            self.check(self.put_folder, name, 0)

    def test_queueFolders(self) -> None:
        """A file where the directory of a queue, a topic, or all queues should be."""
        for name in ("/T/0", "/T", ""):
            stops = ("killed", "java", "ours")[:: 2 if name == "/T" else 1]
            messages = self.check(self.put_file, f"consumequeue{name}", 0, stops)
            self.assertTrue(messages)
            path = f"{self.root}/consumequeue{name}{ASIDE}"
            self.assertEqual(self.files.read(path), b"kept")
        for name in ("/B/0", "/B", ""):
            stops = ("killed", "java", "ours")[:: 1 if name == "/B/0" else 2]
            self.check(self.put_file, f"batchconsumequeue{name}", 0, stops)

    def test_whileRunning(self) -> None:
        """So it is when it comes there while the store is in use."""
        self.make("ours")
        store = self.opened()
        self.put_folder(f"{self.root}/consumequeue/T/0/{segment_name(3 * FULL)}")
        self.put_file(f"{self.root}/consumequeue/V")
        put(store, store.queue("T", 0), *self.bodies)
        put(store, store.queue("V", 0), b"v")
        self.assertEqual(self.served(store)[0], 500)
        store.close()
        store = self.opened()
        self.assertEqual(self.served(store)[0], 500)
        self.assertEqual(bodies(store, store.queue("V", 0)), [b"v"])

    def test_foreign(self) -> None:
        """What is in nobody's way stays, and is reported each time."""
        self.check(self.put_file, "consumequeue/W", 1)
        self.check(self.put_folder, "consumequeue/T/0.aside.x", 1)
        self.check(self.put_folder, "commitlog/other", 1)
        self.assertTrue(self.files.is_dir(f"{self.root}/commitlog/other/kept"))

    def test_small(self) -> None:
        """A directory that is called like one of the small files."""
        for name in ("checkpoint", "abort", "lock", NAME):
            self.check(self.put_folder, name, 0)
            self.assertTrue(self.files.is_dir(f"{self.root}/{name}{ASIDE}/kept"))

    def test_noStore(self) -> None:
        """In a directory that is no store nothing is moved: it may be anybody's."""
        for name in ("lock", "abort", "checkpoint"):
            self.start_over()
            self.put_folder(f"{self.root}/{name}")
            with contextlib.suppress(StoreError):
                self.opened()
            self.assertTrue(self.files.is_dir(f"{self.root}/{name}/kept"))

    def test_abort(self) -> None:
        """One that is called C{abort} says that the stop was not a clean one, also to
        the next start, if this one is killed."""
        self.make("ours")
        self.put_folder(f"{self.root}/abort")
        store = self.opened()
        self.assertGreater(store.recovered.records, 0)
        self.assertFalse(self.files.is_dir(f"{self.root}/abort"))

    def test_index(self) -> None:
        """A file where the directory of the index should be, and a directory that is
        called like one of its files."""
        self.check(self.put_file, "index", 0)
        self.check(self.put_file, "consumequeue_ext", 0)
        self.check(self.put_folder, "index/20200101000000000", 1)

    def test_log(self) -> None:
        """A directory that is called like a file of the log that is to come, or is in
        the directory where that is made."""
        for start in (1, 2, 40):
            name = f"commitlog/{segment_name(start << 16)}"
            self.check(self.put_folder, name, 0)
            kept = name.replace("commitlog", "commitlog.given-up")
            self.assertTrue(self.files.is_dir(f"{self.root}/{kept}/kept"))
        self.start_over()
        self.make("ours")
        self.put_folder(f"{self.root}/commitlog.ahead/x")
        store = self.opened()
        self.assertEqual(self.served(store)[0], 250)
        store.close()
        self.assertTrue(self.files.is_dir(f"{self.root}/commitlog.ahead/x/kept"))


class LinksTests(_StoreCase):
    """On a real disk."""

    def start_over(self) -> None:
        """A directory of trial's."""
        self.files = Disk()
        self.root = os.path.abspath(self.mktemp())

    def put_link(self, path: str) -> None:
        """Put a link that leads nowhere in the place of anything."""
        self.remove(path)
        os.symlink("nowhere", path)

    def test_links(self) -> None:
        """A link that leads nowhere, in the place of files and directories."""
        for number in (0, 1, 2, 3):
            name = f"consumequeue/T/0/{segment_name(number * FULL)}"
            self.check(self.put_link, name, 0)
        self.check(self.put_link, "consumequeue/T/0", 0)
        self.check(self.put_link, "consumequeue/T", 0, ("killed", "ours"))
        for name in ("checkpoint", "abort", "lock", NAME, "index"):
            self.check(self.put_link, name, 0)
        self.check(self.put_link, "index/20200101000000000", 1)

    def test_oddNames(self) -> None:
        """Names that are no text are reported as they can be."""
        for folder in ("commitlog", "consumequeue", "consumequeue/T/0", "index"):
            for stop in ("ours", "killed"):
                self.start_over()
                self.make(stop)
                for name in (b"\xff", b"a\nb"):
                    os.makedirs(os.fsencode(f"{self.root}/{folder}/") + name)
                store = self.opened()
                self.assertEqual(self.served(store), (250, 25, 2))
                self.assertTrue(store.report)
                "".join(store.report).encode()
                store.close()
