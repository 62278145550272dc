"""A store that is damaged and repaired."""

from __future__ import annotations

import os
from collections.abc import Callable

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.store import StoreOptions
from rocketbroker.files.interfaces import IFiles
from rocketbroker.records.entries import SIZE
from rocketbroker.records.record import StoredMessage, decode
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.storetools.repair.backup import Done
from rocketbroker.storetools.repair.filler_records import LOST
from rocketbroker.storetools.repair.run import Keeping, Repair
from rocketbroker.storetools.verify.log import Verification
from rocketbroker.storetools.verify.report import Fault
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.users import GivenUsers
from tests.store.stores import ROOT, Wall, opened, options, put

LOG = os.path.join(ROOT, "commitlog", segment_name(0))
QUEUE = os.path.join(ROOT, "consumequeue", "T", "0", segment_name(0))


def repair_of(
    disk: IFiles,
    report: Callable[[Done], None] = lambda done: None,
    others: Callable[[Keeping | None], list[Done]] = lambda keeping: [],
    users: GivenUsers | None = None,
    given: StoreOptions | None = None,
) -> Repair:
    """A repair of a small store.

    @param given: other settings than the usual ones.
    """
    return Repair(
        disk,
        users or GivenUsers(),
        given or options(),
        Wall(),
        report,
        lambda done: None,
        lambda size: None,
        others,
    )


def verified(disk: IFiles, log_size: int = 0) -> tuple[Verification, list[Fault]]:
    """A walk through a store, and what it finds.

    @param log_size: what the settings say of the files of the log; 0 for none.
    """
    faults: list[Fault] = []
    reader = StoreReader(disk, ROOT, log_size=log_size)
    walk = Verification(reader, faults.append, lambda done: None)
    walk.expected_bytes()
    walk.run()
    reader.close()
    return walk, faults


class SmallStore(SynchronousTestCase):
    """A store of 80 messages in two queues, over two segments."""

    #: What is set.
    settings: dict[str, object] = {}

    def setUp(self) -> None:
        """Begin."""
        self.start_over()

    def start_over(self) -> None:
        """Fill it."""
        self.disk = MemoryDisk()
        self.store = opened(self.disk, None, **self.settings)
        for number in range(40):
            put(self.store, self.store.queue("T", 0), b"%02d" % number * 600, tags="A")
            put(self.store, self.store.queue("T", 1), b"x" * 300)

    def change(self, path: str, position: int, data: bytes) -> None:
        """Overwrite bytes of a file."""
        file = self.disk.open(path)
        file.pwrite(data, position)
        file.close()

    def flip(self, path: str, position: int, bit: int = 0) -> None:
        """Change one bit of a file."""
        file = self.disk.open(path)
        old = file.pread(1, position)[0]
        file.close()
        self.change(path, position, bytes([old ^ (1 << bit)]))

    def position(self, offset: int) -> tuple[int, int]:
        """Where a message of the first queue stands, and its size."""
        entry = self.disk.read(QUEUE)[offset * SIZE : offset * SIZE + 12]
        return int.from_bytes(entry[:8], "big"), int.from_bytes(entry[8:], "big")


class DamagedStore(SmallStore):
    """Such a store, stopped cleanly."""

    def start_over(self) -> None:
        """Fill it, and stop it."""
        super().start_over()
        self.store.close()
        self.steps: list[Done] = []

    def repair(self, dry: bool = False, left: int | None = 0) -> Repair:
        """Repair it.

        @param left: how many faults are to be left; None: whatever there are.
        """
        self.steps.clear()
        repair = repair_of(self.disk, self.steps.append)
        repair.run(dry)
        if left is not None:
            self.assertEqual(repair.left, left, [each.text for each in self.steps])
        return repair

    def faults(self) -> list[Fault]:
        """What is wrong now."""
        return verified(self.disk)[1]

    def messages(self, queue_id: int = 0) -> list[StoredMessage]:
        """The messages of a queue as a broker hands them out; offsets are dense."""
        store = opened(self.disk)
        queue = store.queue("T", queue_id)
        self.assertEqual(store.report, [])
        found: list[StoredMessage] = []
        while len(found) < queue.max_offset:
            result = store.read(queue, len(found), 32, 1 << 20, None)
            data = b"".join(result.records)
            while data:
                found.append(decode(data))
                data = data[found[-1].size :]
        store.close()
        self.assertEqual([m.queue_offset for m in found], list(range(len(found))))
        return found

    def kinds(self) -> list[str]:
        """What was reported."""
        return sorted({done.kind for done in self.steps})

    def expect_lost(self, *offsets: int) -> None:
        """All messages are there, and those have no body and say so."""
        found = self.messages()
        self.assertEqual(len(found), 40)
        for number, message in enumerate(found):
            if number in offsets:
                self.assertEqual(message.body, b"")
                self.assertIn(LOST, message.properties)
            else:
                self.assertEqual(message.body, b"%02d" % number * 600)
                self.assertNotIn(LOST, message.properties)
        self.assertEqual([m.body for m in self.messages(1)], [b"x" * 300] * 40)
