"""Tables and their files."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.logger import capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.json_table import SMALL_BYTES, JsonTable
from rocketbroker.errors import ConfigurationError
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.threads import Threads, at_once

PATH = "/store/config/topics.json"


class LoadTests(SynchronousTestCase):
    """What a start finds."""

    def setUp(self) -> None:
        """A disk with the directory."""
        self.disk = MemoryDisk()
        self.disk.make_dirs("/store/config")

    def write(self, path: str, content: bytes) -> None:
        """Put a file on the disk."""
        self.disk.open(path, create=True).pwrite(content, 0)

    def load(self) -> dict[object, object] | None:
        """What the table's file says."""
        return JsonTable(self.disk, PATH, at_once, Clock()).load()

    def test_nothing(self) -> None:
        """Without a file there is nothing, and that is no reason to say anything."""
        with capturedLogs() as events:
            self.assertIsNone(self.load())
        self.assertEqual(events, [])

    def test_referenceForm(self) -> None:
        """Integer keys without quotes, as RocketMQ writes them, are read."""
        self.write(PATH, b'{"offsetTable":{"T@G":{0:12,1:7}}}')
        self.assertEqual(self.load(), {"offsetTable": {"T@G": {0: 12, 1: 7}}})

    def test_oldCopy(self) -> None:
        """A file that makes no sense is replaced by its old copy, with a warning."""
        for wrong in (b'{"a":', b"[]", b"\xff\xfe", b""):
            self.write(PATH + ".bak", b'{"a":1}')
            self.disk.open(PATH, create=True).truncate(0)
            self.write(PATH, wrong)
            with capturedLogs() as events:
                self.assertEqual(self.load(), {"a": 1})
            self.assertEqual(len(events), 1)

    def test_neither(self) -> None:
        """The broker starts without a table that cannot be read at all, and names the
        problem; the damaged files are not overwritten by the next writes."""
        self.write(PATH, b"{1")
        self.write(PATH + ".bak", b"{2")
        table = JsonTable(self.disk, PATH, at_once, Clock())
        with capturedLogs() as events:
            self.assertIsNone(table.load())
        self.assertEqual([formatEvent(event) for event in events], [table.problem])
        self.assertIn(f"{PATH} could not be read at the start", table.problem)
        for _ in range(3):
            table.save_soon(dict)
        self.assertEqual(self.disk.read(PATH + ".damaged"), b"{1")
        self.assertEqual(self.disk.read(PATH + ".bak.damaged"), b"{2")

    def test_required(self) -> None:
        """A table whose loss would hide messages refuses the start, and says what to
        do; without any file it is empty, and the old copy will do."""
        table = JsonTable(self.disk, PATH, at_once, Clock())
        self.assertIsNone(table.load_required("topics"))
        for wrong, backup in ((b"{", b"{"), (b"{", b""), (b"", b"")):
            for path, content in ((PATH, wrong), (PATH + ".bak", backup)):
                self.disk.open(path, create=True).truncate(0)
                self.write(path, content)
            error = self.assertRaises(
                ConfigurationError,
                JsonTable(self.disk, PATH, at_once, Clock()).load_required,
                "topics",
            )
            self.assertIn("restore /store/config/topics.json from a", str(error))
            self.assertEqual(self.disk.read(PATH), wrong)
        self.write(PATH + ".bak", b'{"a":1}')
        with capturedLogs() as events:
            table = JsonTable(self.disk, PATH, at_once, Clock())
            self.assertEqual(table.load_required("topics"), {"a": 1})
        self.assertEqual((len(events), table.problem), (1, ""))


class SaveTests(SynchronousTestCase):
    """How a table is written."""

    def setUp(self) -> None:
        """A table of one number, and a thread."""
        self.disk = MemoryDisk()
        self.threads = Threads()
        self.clock = Clock()
        self.file = JsonTable(self.disk, PATH, self.threads, self.clock)
        self.number = 0
        self.padding = ""

    def encode(self) -> object:
        """The table as JSON."""
        if self.padding:
            return {"number": self.number, "padding": self.padding}
        return {"number": self.number}

    def content(self) -> bytes:
        """What is in the file."""
        return self.disk.read(PATH)

    def test_inThread(self) -> None:
        """A write happens in a thread and fires when it is done."""
        saved = self.file.save_soon(self.encode)
        self.assertNoResult(saved)
        self.assertFalse(self.disk.exists(PATH))
        self.threads.run()
        self.successResultOf(saved)
        self.assertEqual(self.content(), b'{"number":0}')
        self.assertEqual(self.file.writes, 1)

    def test_oneAtATime(self) -> None:
        """Changes during a write go into one next write, whose end they wait for."""
        first = self.file.save_soon(self.encode)
        self.number = 1
        second = self.file.save_soon(self.encode)
        self.number = 2
        third = self.file.save_soon(self.encode)
        self.assertEqual(len(self.threads.waiting), 1)
        self.threads.run()
        self.successResultOf(first)
        self.assertNoResult(second)
        self.threads.run()
        self.successResultOf(second)
        self.successResultOf(third)
        self.assertEqual(self.content(), b'{"number":2}')
        self.assertEqual(self.file.writes, 2)

    def test_idle(self) -> None:
        """Idle waits for all changes so far."""
        self.successResultOf(self.file.idle())
        self.file.save_soon(self.encode)
        writing = self.file.idle()
        self.file.save_soon(self.encode)
        both = self.file.idle()
        self.threads.run()
        self.successResultOf(writing)
        self.assertNoResult(both)
        self.threads.run()
        self.successResultOf(both)

    def begin_large(self, size: int) -> None:
        """A table of that size, which was written a moment ago."""
        self.padding = "x" * (size - len('{"number":0,"padding":""}'))
        self.file.save_soon(self.encode)
        self.threads.run()

    def test_gathered(self) -> None:
        """The first change of a large table is written at once, and those of the next
        second together; it takes no longer from one write to the next."""
        self.begin_large(1 << 24)
        for second in (1, 2):
            self.number = second
            saved = [self.file.save_soon(self.encode) for _ in range(3)]
            idle = self.file.idle()
            self.clock.advance(0.99)
            self.threads.run()
            self.assertNoResult(idle)
            self.clock.advance(0.01)
            self.threads.run()
            for each in (*saved, idle):
                self.successResultOf(each)
            self.assertTrue(self.content().startswith(b'{"number":%d' % second))
        self.assertEqual(self.file.writes, 3)
        self.clock.advance(1)
        self.number = 7
        self.file.save_soon(self.encode)
        self.threads.run()
        self.assertTrue(self.content().startswith(b'{"number":7'))

    def test_pause(self) -> None:
        """The pause grows with the table: a second from a megabyte on, none for a small
        one; a file that was there at the start counts like one that was written."""
        for size, seconds in ((SMALL_BYTES, 0), (1 << 19, 0.5), (1 << 20, 1)):
            self.begin_large(size)
            self.assertEqual(self.file.pause_seconds, seconds)
            again = JsonTable(self.disk, PATH, self.threads, self.clock)
            again.load()
            self.assertEqual(again.pause_seconds, seconds)
            self.clock.advance(1)

    def test_hurry(self) -> None:
        """At the end of the broker nothing waits for the end of a pause, neither now
        nor behind a write that is under way."""
        self.begin_large(1 << 20)
        waiting = self.file.save_soon(self.encode)
        self.file.hurry()
        self.assertEqual(len(self.threads.waiting), 1)
        behind = self.file.save_soon(self.encode)
        self.file.hurry()
        self.threads.run()
        self.successResultOf(waiting)
        self.threads.run()
        self.successResultOf(behind)
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.file.hurry()
        self.successResultOf(self.file.idle())

    def test_notEncoded(self) -> None:
        """A table that has no text is a write that failed, and the next one may do."""
        saved = self.file.save_soon(lambda: {"half": "\ud800"})
        with capturedLogs() as events:
            self.threads.run()
        self.successResultOf(saved)
        self.assertEqual(events[0]["path"], PATH)
        self.assertEqual((self.file.failures, self.file.failed), (1, True))

    def test_failure(self) -> None:
        """A disk that refuses is said once; who waited goes on; later writes may do."""
        self.disk.capacity = 0
        saved = self.file.save_soon(self.encode)
        with capturedLogs() as events:
            self.threads.run()
            self.file.save_soon(self.encode)
            self.threads.run()
        self.successResultOf(saved)
        self.assertEqual([event["path"] for event in events], [PATH])
        self.assertEqual((self.file.failures, self.file.failed), (2, True))
        self.disk.capacity = None
        self.file.save_soon(self.encode)
        self.threads.run()
        self.assertEqual((self.file.writes, self.file.failed), (1, False))
