"""Where the log goes."""

from __future__ import annotations

import io
import json
import logging
import os
from pathlib import Path
from typing import cast

from twisted.application.service import Application
from twisted.logger import ILogObserver, LogEvent, Logger, LogLevel, formatEvent
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.logs import (
    Log,
    LoggedService,
    LoggingLines,
    LogOptions,
    json_line,
)
from rocketbroker.errors import ConfigurationError


class LogCase(SynchronousTestCase):
    """Logs of a test."""

    def folder(self) -> Path:
        """An empty directory."""
        path = Path(self.mktemp()).absolute()
        path.mkdir()
        return path

    def opened(self, options: LogOptions) -> Log:
        """The log of these options, closed in the end."""
        log = options.open(io.StringIO())
        assert log.output is not None
        self.addCleanup(log.output.close)
        return log


class OptionsTests(LogCase):
    """L{LogOptions}."""

    def refusal(self, **words: str) -> str:
        """Why options are refused."""
        standard = {"level": "info", "format": "text"}
        numbers = {"rotate_bytes": "1", "keep_files": "1"}
        given = {"file": "", **standard, **numbers, **words}
        error = self.assertRaises(
            ConfigurationError,
            LogOptions.from_texts,
            given["file"],
            given["level"],
            given["format"],
            given["rotate_bytes"],
            given["keep_files"],
        )
        return str(error)

    def test_pathOfTheFile(self) -> None:
        """It begins where the server is started, or in the home directory."""
        for file, place in (
            ("a.log", os.path.abspath("a.log")),
            ("~/a.log", os.path.expanduser("~/a.log")),
            ("${user.home}/a.log", os.path.expanduser("~/a.log")),
        ):
            options = LogOptions.from_texts(file, "info", "text", 0, 0)
            self.assertEqual(options.file, place)

    def test_refused(self) -> None:
        """What makes no sense is one sentence with the flag."""
        self.assertEqual(
            self.refusal(level="loud"),
            "--log-level cannot be 'loud': it must be one of debug, info, warn, error, "
            "critical.",
        )
        self.assertIn("--log-format cannot be 'xml'", self.refusal(format="xml"))
        self.assertIn("--log-rotate-bytes", self.refusal(rotate_bytes="1MB"))
        self.assertIn("--log-keep cannot be '-1'", self.refusal(keep_files="-1"))

    def test_cannotOpen(self) -> None:
        """So is a file that cannot be opened."""
        path = self.folder() / "no" / "log"
        options = LogOptions(file=str(path))
        error = self.assertRaises(ConfigurationError, options.open, io.StringIO())
        self.assertEqual(
            str(error),
            f"The log file {path} cannot be opened: No such file or directory.",
        )


class LogTests(LogCase):
    """What is written."""

    def test_text(self) -> None:
        """Text has time, origin, level and message; less important lines are left
        out."""
        stream = io.StringIO()
        log = LogOptions(level="warn").open(stream)
        self.assertIs(log.output, None)
        logger = Logger("here", observer=log.observer)
        logger.info("not this")
        logger.warn("{count} of them", count=3)
        self.assertRegex(stream.getvalue(), r"^\S+ \[here#warn\] 3 of them\n\Z")

    def test_json(self) -> None:
        """JSON is an object a line; a failure brings its traceback."""
        path = self.folder() / "log"
        log = self.opened(LogOptions(file=str(path), format="json"))
        logger = Logger("here", observer=log.observer)
        logger.info("two\nlines")
        try:
            raise ZeroDivisionError("none")
        except ZeroDivisionError:
            logger.failure("It failed.")
        first, second = map(json.loads, path.read_text("utf-8").splitlines())
        self.assertRegex(first.pop("time"), r"^[0-9-]{10}T[0-9:]{8}\.[0-9]{3}Z$")
        self.assertEqual(
            first, {"level": "info", "logger": "here", "message": "two\nlines"}
        )
        self.assertEqual(
            (second["level"], second["message"]), ("critical", "It failed.")
        )
        self.assertIn("ZeroDivisionError: none", second["traceback"])

    def test_rotation(self) -> None:
        """A file of the given size is rotated, and so many old ones are kept."""
        path = self.folder() / "log"
        log = self.opened(LogOptions(file=str(path), rotate_bytes=1, keep_files=2))
        logger = Logger("here", observer=log.observer)
        for number in range(5):
            logger.info("line {number}", number=number)
        found = sorted(each.name for each in path.parent.iterdir())
        self.assertEqual(found, ["log", "log.1", "log.2"])
        self.assertIn("line 4", path.read_text())
        self.assertIn("line 2", (path.parent / "log.2").read_text())

    def test_device(self) -> None:
        """What is no file is not rotated."""
        log = self.opened(LogOptions(file="/dev/null", rotate_bytes=1))
        logger = Logger("here", observer=log.observer)
        for _ in range(3):
            logger.emit(LogLevel.info, "nothing")
        self.assertFalse(Path("/dev/null.1").exists())


class LoggingHandlerTests(SynchronousTestCase):
    """What is logged with Python's own C{logging}."""

    def test_linesKeepLevelNameAndProblem(self) -> None:
        """In the log of the server."""
        events: list[LogEvent] = []
        handler = LoggingLines(cast("ILogObserver", events.append))
        logger = logging.Logger("rocketbroker.proxy")
        logger.addHandler(handler)
        logger.debug("too small")
        logger.warning("port %d is {odd}", 7)
        try:
            raise ValueError("no")
        except ValueError as error:
            logger.error("it failed", exc_info=error)
        self.assertEqual(
            [(event["log_level"].name, formatEvent(event)) for event in events],
            [("warn", "port 7 is {odd}"), ("error", "it failed")],
        )
        self.assertEqual(events[0]["log_namespace"], "rocketbroker.proxy")
        self.assertIn("ValueError: no", json_line(events[1]))


class ServiceTests(LogCase):
    """L{LoggedService}."""

    def test_application(self) -> None:
        """The application of a service takes the service's log, if it has one."""
        for log in (LogOptions().open(io.StringIO()), None):
            application = Application("test")
            service = LoggedService()
            service.log = log
            service.setServiceParent(application)
            self.assertIs(
                application.getComponent(ILogObserver, None),
                None if log is None else log.observer,
            )
