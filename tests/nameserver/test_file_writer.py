"""Files written in a thread."""

from __future__ import annotations

import errno

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import LocalProtocolError, SystemFailure
from rocketbroker.files.jsonfile import JsonFile
from rocketbroker.nameserver.file_writer import FileWriter
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.threads import Threads
from rocketbroker.wire.command import Command


class SavingTests(SynchronousTestCase):
    """L{FileWriter}."""

    def setUp(self) -> None:
        """A file, and threads that work when they are told to."""
        self.files = MemoryDisk()
        self.threads = Threads()
        self.saving = FileWriter(JsonFile(self.files, "/d/f"), self.threads)

    def test_save(self) -> None:
        """A save is done when the content is in the file."""
        saved = self.saving.save(lambda: b"one")
        self.assertNoResult(saved)
        self.threads.run()
        self.assertIsNone(self.successResultOf(saved))
        self.assertEqual(self.files.read("/d/f"), b"one")

    def test_newestOnly(self) -> None:
        """What comes while a write is under way is written once, the newest of it."""
        first = self.saving.save(lambda: b"one")
        second = self.saving.save(lambda: b"two")
        third = self.saving.save(lambda: b"three")
        self.threads.run()
        self.successResultOf(first)
        self.assertNoResult(second)
        self.assertEqual(len(self.threads.waiting), 1)
        self.threads.run()
        self.successResultOf(second)
        self.successResultOf(third)
        self.assertEqual(self.files.read("/d/f"), b"three")

    def test_encodedOnce(self) -> None:
        """However many changes come during a write, the next is encoded once."""
        encoded: list[int] = []

        def encode() -> bytes:
            encoded.append(1)
            return b"all"

        for _ in range(100):
            self.saving.save(encode)
        self.threads.run()
        self.threads.run()
        self.assertEqual(len(encoded), 2)

    def test_notEncoded(self) -> None:
        """What cannot be encoded fails that save, and not the next one."""

        def encode() -> bytes:
            raise LocalProtocolError("no such text")

        first = self.saving.save(lambda: b"one")
        wrong = self.saving.save(encode)
        self.threads.run()
        self.successResultOf(first)
        self.failureResultOf(wrong, LocalProtocolError)
        last = self.saving.save(lambda: b"two")
        self.threads.run()
        self.successResultOf(last)

    def test_failure(self) -> None:
        """A disk that refuses fails that save, and not the next one."""
        self.files.fail("pwrite", errno.ENOSPC)
        first = self.saving.save(lambda: b"one")
        second = self.saving.save(lambda: b"two")
        self.threads.run()
        self.failureResultOf(first, OSError)
        self.threads.run()
        self.successResultOf(second)
        self.assertEqual(self.files.read("/d/f"), b"two")

    def test_answer(self) -> None:
        """A request whose content cannot be saved is refused in words, and counted."""
        self.files.fail("pwrite", errno.ENOSPC)
        answer = Deferred.fromCoroutine(
            self.saving.answer(lambda: b"one", Command(100))
        )
        self.threads.run()
        self.assertEqual(
            str(self.failureResultOf(answer, SystemFailure).value),
            "The change is in force but could not be saved: No space left on device.",
        )
        self.assertEqual(self.saving.failures, 1)

    def test_idle(self) -> None:
        """It is idle at once, or when the last write is done."""
        self.successResultOf(self.saving.idle())
        first = self.saving.save(lambda: b"one")
        second = self.saving.save(lambda: b"two")
        idle = self.saving.idle()
        self.threads.run()
        self.assertNoResult(idle)
        self.threads.run()
        self.successResultOf(idle)
        self.successResultOf(first)
        self.successResultOf(second)
