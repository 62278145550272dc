"""An append lock whose holder hangs."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import StoreError, SystemBusy
from rocketbroker.store.interfaces import OS_PAGE_CACHE_BUSY, PUT_OK
from rocketbroker.store.sharing.joined_processes import JOINED_NAME
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.processes import GivenProcesses
from tests.store.sharing.joined import TOLD, Shared
from tests.store.stores import ROOT, draft

HANGING = 4711


class HangingHolderTests(SynchronousTestCase):
    """An owner, one process that has joined, and one that hangs in the lock."""

    def setUp(self) -> None:
        """The second process holds the lock."""
        self.shared = Shared()
        self.owner = self.shared.owner
        self.queue = self.shared.queue()
        self.joined = self.shared.join()
        self.theirs = self.shared.theirs(self.joined, self.queue)
        self.owner.sharing.joined.add(1)
        self.file = self.shared.hang(HANGING)
        self.owner.sharing.joined.add(HANGING)

    def asked(self) -> int:
        """How often somebody wanted the lock."""
        return self.shared.disk.calls["lock_alone"]

    def test_ownersAppendIsRefusedAndNothingIsLost(self) -> None:
        """The owner's appends get a status after one attempt, the store says why, and
        the same drafts are stored when the lock is free."""
        mine = draft(self.queue, b"one")
        before = self.asked()
        self.owner.append([mine])
        self.assertEqual(mine.status, OS_PAGE_CACHE_BUSY)
        self.assertEqual(self.asked(), before + 1)
        self.assertIn("holds the append lock", self.owner.refusal() or "")
        self.assertEqual(self.owner.published_position, 0)
        self.file.unlock()
        self.owner.append([mine])
        self.assertEqual(mine.status, PUT_OK)
        self.assertIs(self.owner.refusal(), None)
        self.assertEqual(self.shared.stored(self.queue), [(0, b"one")])

    def test_othersLeaveTheirAppendsToTheOwner(self) -> None:
        """A process that has joined does not wait for the holder either."""
        before = self.asked()
        self.assertFalse(self.joined.append([draft(self.theirs, b"one")], TOLD))
        self.assertEqual((self.joined.left, self.asked()), (1, before + 1))
        self.file.unlock()
        self.assertTrue(self.joined.append([draft(self.theirs, b"one")], TOLD))

    def test_topicIsNotDeleted(self) -> None:
        """The deletion of a topic is refused, and nothing of it is done."""
        self.file.unlock()
        self.owner.append([draft(self.queue, b"one")])
        self.file.lock_alone(0)
        self.assertRaises(SystemBusy, self.owner.delete_topic, "T")
        self.assertEqual(self.shared.stored(self.queue), [(0, b"one")])

    def test_readersAreServed(self) -> None:
        """What is stored is dispatched and read meanwhile."""
        self.file.unlock()
        self.owner.append([draft(self.queue, b"one")])
        self.file.lock_alone(0)
        self.assertFalse(self.owner.sharing.mend())
        self.assertEqual(self.shared.stored(self.queue), [(0, b"one")])

    def test_holderIsKilledByTheStop(self) -> None:
        """A stop kills a holder that hangs, and no other process; it is a clean one."""
        self.owner.close()
        self.assertEqual(self.shared.processes.killed, [HANGING])
        self.assertFalse(self.shared.disk.exists(f"{ROOT}/{JOINED_NAME}"))
        self.assertFalse(self.shared.disk.exists(f"{ROOT}/abort"))

    def test_stopIsNotCleanWhileTheHolderCannotEnd(self) -> None:
        """A holder that waits for the disk is not killed: the stop says so, and the
        next start is one after a crash."""
        self.shared.processes.waiting.add(HANGING)
        error = self.assertRaises(StoreError, self.owner.close)
        self.assertIn(f"process {HANGING}, a worker, which waits", str(error))
        self.assertEqual(self.shared.processes.killed, [])
        self.assertTrue(self.shared.disk.exists(f"{ROOT}/abort"))

    def test_strangerIsNotKilled(self) -> None:
        """A holder that is no process of this owner is named and left alone."""
        self.owner.sharing.joined.remove(HANGING)
        error = self.assertRaises(StoreError, self.owner.close)
        self.assertIn(f"process {HANGING}, no worker of this broker,", str(error))
        self.assertEqual(self.shared.processes.killed, [])


class OrphanTests(SynchronousTestCase):
    """An owner that was killed, and one process of it that has not ended."""

    def setUp(self) -> None:
        """It holds the lock."""
        self.shared = Shared()
        self.processes = self.shared.processes
        self.file = self.shared.hang(HANGING)
        self.shared.owner.sharing.joined.add(HANGING)
        # Its files are closed, as its process has ended, and nothing else is done.
        self.shared.owner._store_lock.release()

    def start(self, processes: GivenProcesses | None = None) -> Shared:
        """The next owner."""
        return Shared(self.shared.disk, processes or self.processes)

    def test_orphanIsKilledByTheStart(self) -> None:
        """The next start kills it, says so, and forgets it."""
        started = self.start()
        self.assertEqual(self.processes.killed, [HANGING])
        self.assertIn("had not ended, and were killed: 1", started.owner.report[-1])
        self.assertFalse(self.shared.disk.exists(f"{ROOT}/{JOINED_NAME}"))
        started.owner.append([draft(started.queue(), b"one")])
        started.owner.close()

    def test_anotherProcessWithItsIdIsNotKilled(self) -> None:
        """Its id may be another process's by now, which is not killed."""
        self.file.close()
        self.processes.running[HANGING] = "boot/9"
        self.start().owner.close()
        self.assertEqual(self.processes.killed, [])

    def test_orphanThatDoesNotEndIsNamed(self) -> None:
        """While it waits for the disk the start is refused by a sentence; the one after
        it kills it all the same."""
        self.processes.waiting.add(HANGING)
        error = self.assertRaises(StoreError, self.start)
        words = (
            f"process {HANGING}, a worker, which waits for the disk, is in an append"
        )
        self.assertIn(words, str(error))
        self.processes.waiting.clear()
        self.start().owner.close()
        self.assertEqual(self.processes.killed, [HANGING, HANGING])

    def test_unknownHolderIsNamed(self) -> None:
        """A start that does not know the holder is refused, and keeps the file."""
        disk = self.shared.disk
        error = self.assertRaises(StoreError, Shared, disk, GivenProcesses())
        self.assertIn(f"process {HANGING}", str(error))
        self.assertTrue(disk.exists(f"{ROOT}/{JOINED_NAME}"))


class JoinedProcessesTests(SynchronousTestCase):
    """The file of the processes."""

    def test_fileHasThoseThatRun(self) -> None:
        """It has a line for each that was started and has not ended."""
        shared = Shared()
        path = f"{ROOT}/{JOINED_NAME}"
        joined = shared.owner.sharing.joined
        for process in (5, 6):
            shared.processes.running[process] = f"boot/{process}0"
            joined.add(process)
        self.assertEqual(shared.disk.read(path), b"5 boot/50\n6 boot/60\n")
        joined.remove(5)
        joined.remove(7)
        self.assertEqual(shared.disk.read(path), b"6 boot/60\n")

    def test_tornLineDoesNotCount(self) -> None:
        """Nor does one that is none."""
        disk = MemoryDisk()
        shared = Shared(disk)
        shared.owner.close()
        content = b"x boot/1\n6\n8 boot/80\n7 boot/7"
        disk.open(f"{ROOT}/{JOINED_NAME}", create=True).pwrite(content, 0)
        processes = GivenProcesses()
        processes.running = {6: "", 7: "boot/7", 8: "boot/80"}
        Shared(disk, processes).owner.close()
        self.assertEqual(processes.killed, [8])
