"""Queues whose files nobody has changed since a clean stop."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import StoreError
from rocketbroker.records.entries import SIZE
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.message_store import Store
from rocketbroker.store.recovery.clean_shutdown import NAME, sealed
from rocketbroker.testing.files import MemoryDisk
from tests.store.accidents import lose_folder
from tests.store.stores import QUEUE_ENTRIES, ROOT, SEGMENT, bodies, opened, put

PATH = f"{ROOT}/{NAME}"
LOG = f"{ROOT}/commitlog"
FOLDER = f"{ROOT}/consumequeue/T/0"
FILES = [f"{FOLDER}/{segment_name(n * QUEUE_ENTRIES * SIZE)}" for n in range(4)]
COUNT = 3 * QUEUE_ENTRIES - 10


class UnchangedTests(SynchronousTestCase):
    """A queue of three files, over two segments of the log, and one beside it."""

    def setUp(self) -> None:
        """Begin."""
        self.start_over()

    def start_over(self) -> None:
        """Some messages, and a clean stop."""
        self.disk = MemoryDisk()
        store = opened(self.disk)
        self.bodies = [b"%d" % number + bytes(200) for number in range(COUNT)]
        put(store, store.queue("T", 0), *self.bodies)
        put(store, store.queue("T", 1), b"beside", b"it")
        store.close()

    def rewrite(
        self, disk: MemoryDisk, change: Callable[[list[list[Any]]], None]
    ) -> None:
        """Change what is known of the queues."""
        content = json.loads(disk.read(PATH))
        del content["crc"]
        change(content["queues"])
        file = disk.open(PATH)
        file.truncate(0)
        file.pwrite(sealed(content), 0)

    def litter(self) -> None:
        """A file that is not the queue's is in the directory."""
        self.disk.open(f"{FOLDER}/notes", create=True)

    def tear(self) -> None:
        """The last entries are lost."""
        self.disk.open(FILES[2]).pwrite(bytes(5 * SIZE), (QUEUE_ENTRIES - 15) * SIZE)

    def shorten(self) -> None:
        """A file has lost its end."""
        self.disk.open(FILES[1]).truncate(100)

    def lose_first(self) -> None:
        """The first file is gone."""
        self.disk.remove(FILES[0])

    def lose_last(self) -> None:
        """The last one is."""
        self.disk.remove(FILES[2])

    def lose_all(self) -> None:
        """All are."""
        lose_folder(self.disk, FOLDER)

    def swap(self) -> None:
        """One is in the place of another."""
        self.disk.rename(FILES[0], FILES[2])

    def add(self) -> None:
        """A file of nothing follows."""
        self.disk.open(FILES[3], create=True).truncate(7)

    def lose_segment(self) -> None:
        """The log begins later than it did."""
        self.disk.remove(f"{LOG}/{segment_name(0)}")

    def lose_log(self) -> None:
        """It ends earlier."""
        self.disk.remove(f"{LOG}/{segment_name(SEGMENT)}")

    def outcome(self, disk: MemoryDisk) -> list[object]:
        """What a start finds."""
        store = opened(disk)
        found: list[object] = [store.report, store.recovered.trust]
        for queue_id in range(2):
            queue = store.queue("T", queue_id)
            found += [queue.min_offset, queue.max_offset, queue.next_offset]
            found += [queue.max_position, self.read(store, queue_id)]
            found.append([each.start for each in queue.files.all])
        put(store, store.queue("T", 0), b"more")
        found.append(self.read(store, 0)[-1])
        store.close()
        return found

    def read(self, store: Store, queue_id: int) -> list[bytes]:
        """The messages of a queue."""
        return bodies(store, store.queue("T", queue_id))

    def test_notRead(self) -> None:
        """Their files are not looked into, and they are used as ever."""
        self.disk.calls.clear()
        store = opened(self.disk)
        self.assertLess(self.disk.calls["pread"], 10)
        self.assertEqual(self.disk.calls["stamp"], 4 + 2)
        self.assertEqual(self.read(store, 0), self.bodies)
        self.assertEqual(self.read(store, 1), [b"beside", b"it"])
        put(store, store.queue("T", 0), *self.bodies)
        self.assertEqual(self.read(store, 0), self.bodies * 2)

    def test_changes(self) -> None:
        """Whatever happens between stop and start, the start decides as if nothing were
        known of stamps."""

        def forget(rows: list[list[Any]]) -> None:
            for row in rows:
                row[-1] = []

        for accident in (
            lambda: None,
            self.litter,
            self.tear,
            self.shorten,
            self.lose_first,
            self.lose_last,
            self.lose_all,
            self.swap,
            self.add,
            self.lose_segment,
            self.lose_log,
        ):
            self.start_over()
            accident()
            other = self.disk.image(keep_all=True)
            self.rewrite(other, forget)
            self.assertEqual(self.outcome(self.disk), self.outcome(other), accident)

    def test_otherSize(self) -> None:
        """Files of another size than the settings say are refused as ever."""
        self.assertRaises(
            StoreError, opened, self.disk, mapped_file_size_consume_queue=50 * SIZE
        )
        self.assertEqual(self.outcome(self.disk)[0], [])

    def test_oneOfMany(self) -> None:
        """Where one of them was changed, the lengths of the others, which are right,
        show that the settings are."""
        file = self.disk.open(f"{ROOT}/consumequeue/T/1/{segment_name(0)}")
        file.truncate(50 * SIZE)
        self.disk.rename(
            f"{ROOT}/consumequeue/T/1/{segment_name(0)}",
            f"{ROOT}/consumequeue/T/1/{segment_name(50 * SIZE)}",
        )
        self.assertEqual(len(self.read(opened(self.disk), 1)), 2)

    def test_appended(self) -> None:
        """Where another broker has appended, and only some stamps show it, as in a file
        system in memory, no message is left out."""
        before = self.disk.read(PATH)
        store = opened(self.disk)
        put(store, store.queue("T", 1), b"by another")
        put(store, store.queue("T", 0), b"by another")
        store.close()
        now = json.loads(self.disk.read(PATH))["queues"]
        file = self.disk.open(PATH)
        file.truncate(0)
        file.pwrite(before, 0)

        def keep(rows: list[list[Any]]) -> None:
            rows[1][-1] = now[1][-1]

        self.rewrite(self.disk, keep)
        store = opened(self.disk)
        self.assertEqual(self.read(store, 1), [b"beside", b"it", b"by another"])
        self.assertEqual(self.read(store, 0), [*self.bodies, b"by another"])

    def test_strayFile(self) -> None:
        """A directory with a file that could not be removed, or is none of a queue, is
        listed by the next start, although it is as the stop has left it."""
        store = opened(self.disk)
        self.disk.fail("remove", 1)
        self.assertRaises(OSError, store.queue("T", 0).files.drop_before, COUNT * SIZE)
        store.close()
        store = opened(self.disk)
        self.assertEqual(len(store.queue("T", 0).files.all), 3)
        store.close()
        self.litter()
        for _ in range(2):
            store = opened(self.disk)
            self.assertEqual(len(store.report), 1)
            store.close()

    def test_damaged(self) -> None:
        """A file of a clean stop with a wrong byte counts as none."""
        good = self.disk.read(PATH)
        at = good.index(b"%d," % COUNT)
        file = self.disk.open(PATH)
        file.pwrite(b"1", at)
        self.assertNotEqual(self.disk.read(PATH), good)
        self.assertEqual(len(self.read(opened(self.disk), 0)), COUNT)
