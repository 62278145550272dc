"""The watch over the append lock, with processes that a test plays."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.logger import capturedLogs
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.workers.lock_watch import HANGS_SECONDS, LATE_SECONDS, LockWatch
from tests.store.sharing.joined import Shared
from tests.store.stores import draft

#: Two workers, and a process that is none.
HANGING, WAITING, STRANGER = 11, 12, 13


class LockWatchTests(SynchronousTestCase):
    """An owner whose append lock is held."""

    def setUp(self) -> None:
        """Two workers, and a watch that has looked once."""
        self.shared = Shared()
        self.processes = self.shared.processes
        self.addCleanup(self.shared.owner.close)
        self.clock = Clock()
        self.watch = LockWatch(self.clock, self.shared.owner.sharing)
        for process in (HANGING, WAITING):
            self.processes.running[process] = f"boot/{process}"
            self.watch.started(process)
        self.heard = {HANGING: 0.0, WAITING: 0.0}
        self.look()

    def look(self, count: int = 1, *speaking: int) -> None:
        """Look once a second.

        @param speaking: workers that say something each time.
        """
        with capturedLogs():
            for _ in range(count):
                for process in speaking:
                    self.heard[process] = self.clock.seconds()
                self.watch.look(self.heard)
                self.clock.advance(1)

    def problem(self) -> str:
        """What C{/healthz} says; empty for nothing."""
        return self.shared.owner.refusal() or ""

    def test_silentHolderIsKilled(self) -> None:
        """A worker that holds the lock and says nothing for ten seconds is killed; one
        that is silent, too, and does not hold it is not. Then appends go on."""
        self.shared.hang(HANGING)
        self.look(int(HANGS_SECONDS))
        self.assertEqual(self.processes.killed, [])
        words = f"process {HANGING}, a worker, has held the append lock for 9 s"
        self.assertIn(words, self.problem())
        self.look()
        self.assertEqual((self.processes.killed, self.watch.killed), ([HANGING], 1))
        self.look()
        self.assertEqual(self.problem(), "")
        one = draft(self.shared.queue(), b"one")
        self.shared.owner.append([one])
        self.assertEqual(one.status, 0)

    def test_holderThatSpeaksIsNotKilled(self) -> None:
        """A worker that is met with the lock at each look, but says how it does, is
        only busy."""
        file = self.shared.hang(HANGING)
        self.look(30, HANGING)
        self.assertEqual(self.processes.killed, [])
        self.assertIn("for 29 s", self.problem())
        file.close()
        self.look()
        self.assertEqual(self.problem(), "")

    def test_silentWorkerWithoutLockIsNotKilled(self) -> None:
        """While nobody holds the lock for long it is no matter who is silent."""
        self.look(30)
        self.assertEqual(self.processes.killed, [])

    def test_holderThatWaitsForTheDiskIsNotKilled(self) -> None:
        """It is named until the disk answers."""
        file = self.shared.hang(HANGING)
        self.processes.waiting.add(HANGING)
        self.look(30)
        self.assertEqual(self.processes.killed, [])
        self.assertIn(f"process {HANGING}, a worker, which waits", self.problem())
        file.close()
        self.look()
        self.assertEqual(self.problem(), "")

    def test_strangerIsNamed(self) -> None:
        """A process that is no worker is not killed."""
        file = self.shared.hang(STRANGER)
        self.look(30)
        self.assertEqual(self.processes.killed, [])
        self.assertIn(f"process {STRANGER}, no worker of this broker,", self.problem())
        file.close()

    def test_anotherProcessWithTheIdOfAWorkerIsNotKilled(self) -> None:
        """An id that was given to another process since is nobody's."""
        file = self.shared.hang(HANGING)
        self.processes.running[HANGING] = "boot/another"
        self.look(30)
        self.assertEqual(self.processes.killed, [])
        file.close()

    def test_ownerThatWasStoppedLooksAgain(self) -> None:
        """After the owner itself has slept nobody is killed before it has read what was
        said meanwhile."""
        self.shared.hang(HANGING)
        self.look(2)
        self.clock.advance(LATE_SECONDS + HANGS_SECONDS)
        self.look(2, HANGING)
        self.assertEqual(self.processes.killed, [])
        self.look(int(HANGS_SECONDS))
        self.assertEqual(self.processes.killed, [HANGING])

    def test_endedWorkerIsForgotten(self) -> None:
        """A worker that has ended is none any more."""
        self.watch.ended(HANGING)
        file = self.shared.hang(HANGING)
        self.look(30)
        self.assertIn("no worker", self.problem())
        file.close()
