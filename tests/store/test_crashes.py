"""Machines that stop in the middle of work: what was promised is there, and the rest is
a whole number of messages."""

from __future__ import annotations

import contextlib
import errno
import random

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import ServiceNotAvailable
from rocketbroker.files.blocks import BLOCK
from rocketbroker.store.interfaces import IQueue
from rocketbroker.store.message_store import Store
from rocketbroker.testing.files import MemoryDisk
from tests.store.scripts import Script
from tests.store.snapshots import log_file, restored, snapshot
from tests.store.stores import ROOT, SEGMENT, bodies, draft, opened, placed, put


class TornTailTests(SynchronousTestCase):
    """The log ends anywhere in the last records."""

    def cut(self, files: dict[str, bytes], at: int, tail: bytes) -> Store:
        """A store that is opened when its log has only so many bytes."""
        path = log_file(at // SEGMENT * SEGMENT)
        at %= SEGMENT
        torn = dict(files)
        torn[path] = (files[path][:at] + tail).ljust(SEGMENT, b"\0")[:SEGMENT]
        return opened(restored(torn))

    def test_everyByte(self) -> None:
        """Cut at every byte of the last three records, with zeros or rubbish behind,
        whole records stay, a part does not, and the store goes on densely. Rubbish in
        the properties is not noticed: no CRC covers them."""
        disk = MemoryDisk()
        store = opened(disk)
        queues = [store.queue("T", number) for number in range(2)]
        put(store, queues[0], *[b"%d" % number for number in range(5)])
        last = [
            draft(queues[1], b"one"),
            draft(queues[0], b"two" * 20),
            draft(queues[1], b"three"),
        ]
        for each in last:
            store.append([each])
        store.dispatch(100)
        start, end = last[0].position, store.published_position
        files = snapshot(disk)
        for tail in (b"", b"\xda\xa3\x20\xa7" * 100):
            for at in range(start, end + 1):
                torn = self.cut(files, at, tail)
                whole = [
                    each
                    for each in last
                    if each.end - (len(each.properties) if tail else 0) <= at
                ]
                self.assertEqual(
                    torn.published_position, whole[-1].end if whole else start
                )
                for queue in queues:
                    again = torn.queue("T", queue.queue_id)
                    mine = [each.body for each in whole if each.queue is queue]
                    put(torn, again, b"after")
                    self.assertEqual(
                        bodies(torn, again)[5 * (queue.queue_id == 0) :],
                        [*mine, b"after"],
                    )

    def test_revived(self) -> None:
        """What stood behind a torn record does not come back when the log has grown up
        to it again."""
        disk = MemoryDisk()
        store = opened(disk)
        queue = store.queue("T", 0)
        drafts = put(store, queue, b"one", b"two", b"three")
        file = disk.open(log_file())
        file.pwrite(b"?", drafts[1].position + 88)
        file.pwrite(b"?", drafts[2].position + 88)
        disk.crash(keep_all=True)
        store = opened(disk)
        put(store, store.queue("T", 0), b"2nd")
        self.assertEqual(store.published_position, drafts[1].end)
        disk.crash(keep_all=True)
        store = opened(disk)
        self.assertEqual(bodies(store, store.queue("T", 0)), [b"one", b"2nd"])

    def test_killedThenPower(self) -> None:
        """What a start has found after a kill, and shows, outlasts a power failure, in
        whatever segment it is."""
        disk = MemoryDisk()
        store = opened(disk)
        wanted = [b"%d" % number * 30_000 for number in range(5)]
        put(store, store.queue("T", 0), *wanted)
        disk.crash(keep_all=True)
        store = opened(disk)
        self.assertEqual(bodies(store, store.queue("T", 0)), wanted)
        disk.crash()
        store = opened(disk)
        self.assertEqual(bodies(store, store.queue("T", 0)), wanted)

    def test_cutIsLasting(self) -> None:
        """What was given up does not come back with blocks that a later crash has not
        written. Records of whole blocks show it."""
        size = 2 * BLOCK - 92 - len(draft(opened().queue("T", 0)).properties)
        for seed in range(40, 62):
            disk = MemoryDisk()
            store = opened(disk)
            put(store, store.queue("T", 0), b"1" * size, b"2" * size, b"3" * size)
            store.flush()
            file = disk.open(log_file())
            for start in range(0, 6 * BLOCK, 2 * BLOCK):
                file.pwrite(b"?", start + 88)
            file.datasync()
            disk.crash()
            store = opened(disk)
            self.assertEqual(store.published_position, 0)
            put(store, store.queue("T", 0), b"4" * size)
            disk.crash(random.Random(seed))
            store = opened(disk)
            self.assertIn(bodies(store, store.queue("T", 0)), ([], [b"4" * size]))


class CrashTests(SynchronousTestCase):
    """Many crashes, with all luck that a disk can have."""

    def check(self, script: Script, store: Store) -> None:
        """The promised is there, and what else is there stands where it was put."""
        for number, sent in script.sent.items():
            queue: IQueue = store.queue("T", number)
            there = placed(store, queue)
            end = queue.next_offset
            self.assertTrue(script.safe[number] <= end <= len(sent))
            for offset, body in enumerate(sent[:end]):
                if offset in there or offset < script.safe[number]:
                    self.assertEqual(there.get(offset), body)
            self.assertTrue(queue.min_offset <= min(there, default=0))
            self.assertTrue(max(there, default=0) <= end)
            script.sent[number] = [there.get(offset) for offset in range(end)]
            script.safe[number] = end
        self.assertEqual(script.refused, set())

    def test_crashes(self) -> None:
        """What was flushed survives every crash, what survives has the offset that it
        was given, and new messages follow it, however often it happens."""
        for seed in range(60):
            script = Script(seed)
            store = opened(script.disk, script.wall)
            for _ in range(4):
                for _ in range(script.luck.randrange(30)):
                    script.work(store)
                store = script.crash()
                self.check(script, store)

    def test_crashThenStop(self) -> None:
        """A clean stop after a crash is a clean stop."""
        for seed in range(10):
            script = Script(1000 + seed)
            store = opened(script.disk, script.wall)
            for _ in range(20):
                script.work(store)
            store = script.crash()
            for _ in range(20):
                script.work(store)
            store.close()
            self.assertFalse(script.disk.exists(f"{ROOT}/abort"))
            store = opened(script.disk, script.wall)
            self.assertEqual(store.recovered.records, 0)
            for number in range(3):
                queue = store.queue("T", number)
                self.assertTrue(len(bodies(store, queue)) <= queue.next_offset)
                self.assertEqual(queue.max_offset, queue.next_offset)


class FaultyScript(Script):
    """The same on a disk that refuses calls at random."""

    def work(self, store: Store) -> None:
        """A step, perhaps with a fault."""
        luck = self.luck
        if luck.random() < 0.15:
            self.disk.fail(
                luck.choice(CALLS),
                luck.choice((errno.ENOSPC, errno.EIO)),
                luck.randrange(4),
                luck.randrange(1, 4),
            )
        with contextlib.suppress(OSError, ServiceNotAvailable):
            super().work(store)


#: What may fail; C{pwrite} more often.
CALLS = (
    "pwrite",
    "pwrite",
    "datasync",
    "allocate",
    "rename",
    "open",
    "truncate",
    "sync_dir",
    "make_dirs",
)


class FaultTests(SynchronousTestCase):
    """Crashes of machines whose disks fail before."""

    def test_faults(self) -> None:
        """Whatever the disk refuses, what was acknowledged and flushed survives, in
        order, with dense offsets."""
        for seed in range(60):
            script = FaultyScript(seed)
            store = opened(script.disk, script.wall)
            for _ in range(4):
                for _ in range(script.luck.randrange(40)):
                    script.work(store)
                script.disk.heal()
                store = script.crash()
                for number, sent in script.sent.items():
                    queue = store.queue("T", number)
                    there = bodies(store, queue)
                    rest = iter(there)
                    for body in sent[: script.safe[number]]:
                        self.assertIn(body, rest)
                    rest = iter([body for body in sent if body is not None])
                    for body in there:
                        if body not in script.refused:
                            self.assertIn(body, rest)
                    self.assertTrue(queue.next_offset >= len(there))
                    script.sent[number] = [*there]
                    script.safe[number] = len(there)
                    script.refused -= set(there)
