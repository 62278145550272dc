"""The process of a worker, as its owner sees it."""

from __future__ import annotations

from typing import Any, cast

from twisted.internet.error import ProcessDone, ProcessExitedAlready, ProcessTerminated
from twisted.logger import LogLevel, capturedLogs, formatEvent
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.worker_process import (
    MAX_LINE,
    ProcessUsage,
    WorkerOutput,
    command_line,
    worker_environment,
)


class GoneTransport:
    """The transport of a process that has ended.

    @ivar pid: what it had.
    """

    pid: int | None = 77

    def signalProcess(self, name: str) -> None:
        """There is nobody to signal."""
        raise ProcessExitedAlready


class WorkerOutputTests(SynchronousTestCase):
    """What a worker says, and its end."""

    def setUp(self) -> None:
        """A worker."""
        self.ended: list[str] = []
        self.output = WorkerOutput(3, self.ended.append)

    def logged(self, *pieces: bytes) -> list[tuple[Any, str]]:
        """What the owner logs of these pieces of output."""
        with capturedLogs() as events:
            for piece in pieces:
                self.output.outReceived(piece)
        return [(event["log_level"], str(formatEvent(event))) for event in events]

    def test_lines(self) -> None:
        """A line of the worker's log is one of the owner's, with the worker's number
        and the line's level, whatever pieces it comes in."""
        line = b'{"level":"error","message":"a {b}"}\n'
        expected = [(LogLevel.error, "Worker 3: a {b}")]
        self.assertEqual(self.logged(line), expected)
        self.assertEqual(self.logged(line[:5], line[5:]), expected)
        self.assertEqual(self.logged(line + line), expected * 2)

    def test_traceback(self) -> None:
        """A traceback follows its message."""
        found = self.logged(b'{"level":"critical","message":"m","traceback":"t\\nu"}\n')
        self.assertEqual(found, [(LogLevel.critical, "Worker 3: m\nt\nu")])

    def test_anythingElse(self) -> None:
        """What is no line of a log is a warning as it stands."""
        for line in (b"plain", b"{}", b"[1]", b'{"level":7}', b"\xff"):
            ((level, text),) = self.logged(line + b"\n")
            self.assertEqual(level, LogLevel.warn)
            self.assertEqual(text, "Worker 3: " + line.decode("utf-8", "replace"))

    def test_endless(self) -> None:
        """A line without an end is not kept for ever."""
        self.assertEqual(
            self.logged(b"x" * (MAX_LINE + 1), b"y\n")[0][1], "Worker 3: y"
        )

    def test_standardError(self) -> None:
        """What comes on standard error is a warning."""
        with capturedLogs() as events:
            self.output.errReceived(b"Fatal")
            self.output.errReceived(b" error\n")
        self.assertEqual([formatEvent(e) for e in events], ["Worker 3: Fatal error"])

    def test_ended(self) -> None:
        """Its end is told with the status or the signal."""
        for reason in (
            ProcessTerminated(signal=9),
            ProcessTerminated(exitCode=1),
            ProcessDone(None),
        ):
            self.output.processEnded(Failure(reason))
        self.assertEqual(self.ended, ["signal 9", "exit status 1", "exit status 0"])

    def test_killGone(self) -> None:
        """Killing one that has ended does nothing; its number is still known."""
        transport = GoneTransport()
        self.output.transport = cast(Any, transport)
        self.output.connectionMade()
        transport.pid = None
        self.output.kill()
        self.assertEqual(self.output.pid, 77)


class WorkerProcessTests(SynchronousTestCase):
    """How it is started."""

    def test_commandLine(self) -> None:
        """The process list shows which worker of which broker it is."""
        words = " ".join(command_line(2, 10911))
        self.assertIn("rocketbroker.app.worker_process worker 2 of", words)
        self.assertTrue(words.endswith("rocketbroker 10911"))

    def test_environment(self) -> None:
        """A service manager hears of the owner only."""
        variables = {"PATH": "/bin", "NOTIFY_SOCKET": "@s", "WATCHDOG_USEC": "1"}
        self.assertEqual(worker_environment(variables), {"PATH": "/bin"})

    def test_usage(self) -> None:
        """Time and memory of this process are more than none."""
        usage = ProcessUsage()
        self.assertGreater(usage.cpu_seconds(), 0)
        self.assertGreater(usage.resident_bytes(), 1 << 20)
