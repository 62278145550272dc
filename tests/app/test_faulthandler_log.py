"""Tracebacks of processes that are killed."""

from __future__ import annotations

import faulthandler
import io
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.faulthandler_log import trace_crashes
from rocketbroker.app.logs import LogOptions


class Faults:
    """Notes where tracebacks would go."""

    def __init__(self) -> None:
        self.files: list[Any] = []

    def enable(self, file: Any) -> None:
        """As the module does."""
        file.fileno()
        self.files.append(file)


class CrashTests(SynchronousTestCase):
    """L{trace_crashes}."""

    def test_stream(self) -> None:
        """Without a log file they go to standard error."""
        path = Path(self.mktemp())
        with path.open("w") as stream:
            faults = Faults()
            trace_crashes(faults, None, stream)
            self.assertEqual(faults.files, [stream])

    def test_file(self) -> None:
        """With one into the file that is open: after a rotation into the new one."""
        folder = Path(self.mktemp()).absolute()
        folder.mkdir()
        log = LogOptions(file=str(folder / "log")).open(io.StringIO())
        assert log.output is not None
        self.addCleanup(log.output.close)
        faults = Faults()
        trace_crashes(faults, log.output, io.StringIO())
        log.output.rotate()
        log.output.reopen()
        first, second, third = faults.files
        self.assertEqual((first.closed, second.closed), (True, True))
        self.assertFalse(third.closed)
        third.write(b"last words")
        third.flush()
        self.assertEqual((folder / "log").read_bytes(), b"last words")

    def test_module(self) -> None:
        """The real module takes such a file."""
        path = Path(self.mktemp())
        was = faulthandler.is_enabled()
        with path.open("w") as stream:
            trace_crashes(faulthandler, None, stream)
            self.assertTrue(faulthandler.is_enabled())
            faulthandler.disable()
        if was:
            faulthandler.enable()
