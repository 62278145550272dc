"""Logs in several directories."""

from __future__ import annotations

import errno

from rocketbroker.errors import StoreError
from rocketbroker.files.blocks import BLOCK
from rocketbroker.testing.files import MemoryDisk
from tests.store.cleanings import (
    NOW,
    CleaningCase,
)
from tests.store.stores import (
    SEGMENT,
    make,
)


class SeveralPathsTests(CleaningCase):
    """Logs in several directories."""

    def paths(self, **changes: object) -> None:
        """A store over three directories."""
        self.begin(
            messages=0,
            store_path_commit_log="/c,/a,/b",
            delete_when=NOW,
            file_reserved_time=0,
            **changes,
        )

    def places(self) -> dict[str, list[int]]:
        """Which segments each directory has, by number."""
        return {
            folder: [int(name) // SEGMENT for name in self.disk.list(folder)]
            for folder in ("/a", "/b", "/c")
        }

    def settle(self) -> None:
        """Files of three directories."""
        self.store.flush()
        while self.store.build_index(1000):
            pass

    def test_turns(self) -> None:
        """Segments go to the directories in the order of their names, in turns; they
        are found again, cleaned from all, and lie in none twice."""
        self.paths()
        self.put(10)
        self.assertEqual(self.places(), {"/a": [0, 3], "/b": [1, 4], "/c": [2]})
        self.store.close()
        self.paths()
        self.assertEqual(self.numbers(), list(range(10)))
        self.round()
        self.assertEqual(self.places(), {"/a": [], "/b": [4], "/c": []})
        self.assertEqual(self.numbers(), [8, 9])

    def test_readOnly(self) -> None:
        """A read-only directory gets no segment; what is there is read, and cleaned."""
        self.paths()
        self.put(6)
        self.store.close()
        self.paths(read_only_commit_log_store_paths="/b")
        self.assertEqual(self.numbers(), list(range(6)))
        self.put(6)
        self.assertEqual(self.places(), {"/a": [0, 4], "/b": [1], "/c": [2, 3, 5]})
        self.round()
        self.assertEqual(self.places(), {"/a": [], "/b": [], "/c": [5]})

    def test_readOnlyFileSystem(self) -> None:
        """What a read-only file system keeps is left out of the log."""
        self.paths()
        self.put(6)
        self.store.close()
        self.paths(read_only_commit_log_store_paths="/a")
        self.disk.fail("remove", errno.EROFS)
        self.round()
        self.assertEqual(self.places(), {"/a": [0], "/b": [], "/c": [2]})
        self.assertEqual(self.store.min_position, 2 * SEGMENT)

    def test_startReadOnly(self) -> None:
        """A start opens what is on a read-only file system as far as that lets it; in
        a directory that is written to, it says that it cannot."""
        self.paths()
        self.put(6)
        self.store.close()
        # After the lock and the two files of shared numbers comes the first segment.
        self.disk.fail("open", errno.EROFS, after=3)
        self.paths(read_only_commit_log_store_paths="/a")
        self.assertEqual(self.numbers(), list(range(6)))
        self.store.close()
        self.disk.fail("open", errno.EROFS, after=3)
        error = self.assertRaises(StoreError, self.paths)
        self.assertIn("Read-only file system", str(error))

    def test_missing(self) -> None:
        """That the last segment is not where it was, as its disk is not there, is
        told: what is stored now comes behind it."""
        self.paths()
        self.put(6)
        end = self.store.published_position
        self.store.close()
        (number,) = self.places()["/c"]
        self.disk.rename(f"/c/{number * SEGMENT:020d}", "/elsewhere")
        self.paths()
        self.assertEqual(self.numbers(), list(range(4)))
        self.assertIn(f"ended at position {end} or", "".join(self.store.report))
        self.assertEqual(self.store.published_position, 3 * SEGMENT)

    def test_full(self) -> None:
        """A directory on a full disk is passed over while there is another."""
        self.paths()
        self.put(2)
        segments = self.store.space
        for room in segments.logs:
            room.total, room.usable = 100 * BLOCK, 50 * BLOCK
        segments.logs[1].usable = 0
        self.assertEqual(segments.full_folders(), {"/b"})
        self.store.measure_disk()
        self.put(2)
        self.assertEqual(self.places()["/b"], [1])

    def test_noDirectory(self) -> None:
        """Without a directory to write to the start is refused in one sentence."""
        for log, old in ((",", None), ("/a,/b", "/b,/a")):
            store = make(
                MemoryDisk(),
                store_path_commit_log=log,
                read_only_commit_log_store_paths=old,
            )
            error = self.assertRaises(StoreError, store.open)
            self.assertIn("storePathCommitLog", str(error))
