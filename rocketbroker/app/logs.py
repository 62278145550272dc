# -*- test-case-name: tests.app.test_logs -*-
"""The target of a server's log: a file that rotates and can be reopened, or a stream.

Text is Twisted's own format. JSON is one object a line, for log collectors::

    {"time":"2026-01-31T12:00:00.123Z","level":"info","logger":"...","message":"..."}

with C{traceback} where there is one.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, TextIO, cast, final

import attrs
from twisted.application.service import Service
from twisted.logger import (
    FileLogObserver,
    FilteringLogObserver,
    ILogObserver,
    LogEvent,
    Logger,
    LogLevel,
    LogLevelFilterPredicate,
    formatEvent,
    formatEventAsClassicLogText,
)
from twisted.python.components import Componentized
from twisted.python.failure import Failure
from twisted.python.logfile import LogFile

from rocketbroker.config.paths import resolved
from rocketbroker.errors import ConfigurationError

#: The levels, from the most to the least talkative.
LEVELS: Final = ("debug", "info", "warn", "error", "critical")

#: Each format with the function that makes a line of an event.
FORMATS: Final[dict[str, Callable[[LogEvent], str | None]]] = {
    "text": formatEventAsClassicLogText,
    "json": lambda event: json_line(event),
}

#: A log file is rotated when it is as large, as RocketMQ's are.
ROTATE_BYTES: Final = 128 << 20

#: How many old log files are kept, as C{FILE.1} (the youngest), C{FILE.2} ...
KEEP_FILES: Final = 10


def json_line(event: LogEvent) -> str:
    """An event as one line of JSON."""
    time = datetime.fromtimestamp(event["log_time"], UTC)
    level = event.get("log_level") or LogLevel.info
    line = {
        "time": time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": level.name,
        "logger": event.get("log_namespace", ""),
        "message": formatEvent(event),
    }
    failure = event.get("log_failure")
    if isinstance(failure, Failure):
        line["traceback"] = failure.getTraceback()
    return json.dumps(line, separators=(",", ":")) + "\n"


class LogOutput(LogFile):
    """A log file. Where it cannot be opened again, the open one is kept."""

    _opened: Callable[[Any], None] | None = None

    def when_opened(self, callback: Callable[[Any], None]) -> None:
        """Call C{callback} with the open file, now and each time it is another."""
        self._opened = callback
        callback(self._file)

    def _openFile(self) -> None:
        super()._openFile()  # type: ignore[no-untyped-call]
        if self._opened is not None:
            self._opened(self._file)

    def reopen(self) -> None:
        """Open the file by its name again, after somebody moved it away.

        @raise OSError: it cannot be opened; the log goes on where it was.
        """
        old = self._file
        self._openFile()
        old.close()

    def rotate(self) -> None:
        """Rotate a file; a device such as /dev/null stays where it is."""
        if os.path.isfile(self.path):
            super().rotate()  # type: ignore[no-untyped-call]


@final
@attrs.frozen(kw_only=True)
class LogOptions:
    """Where and how the log is written.

    @ivar file: its path, or None for a stream.
    @ivar level: the least important level that is written.
    @ivar format: C{text} or C{json}.
    @ivar rotate_bytes: the file is rotated when it is as large; 0: never.
    @ivar keep_files: how many old ones are kept.
    """

    file: str | None = None
    level: str = "info"
    format: str = "text"
    rotate_bytes: int = ROTATE_BYTES
    keep_files: int = KEEP_FILES

    @classmethod
    def from_texts(
        cls,
        file: str | None,
        level: str,
        format: str,
        rotate_bytes: str | int,
        keep_files: str | int,
    ) -> LogOptions:
        """Options as a command line gives them.

        @raise ConfigurationError: one of them makes no sense; one sentence.
        """
        for flag, text, choices in (
            ("--log-level", level, LEVELS),
            ("--log-format", format, tuple(FORMATS)),
        ):
            if text not in choices:
                raise ConfigurationError(
                    f"{flag} cannot be {text!r}: it must be one of "
                    f"{', '.join(choices)}."
                )
        numbers = []
        for flag, given in (
            ("--log-rotate-bytes", str(rotate_bytes)),
            ("--log-keep", str(keep_files)),
        ):
            if not (given.isascii() and given.isdigit() and len(given) < 16):
                raise ConfigurationError(
                    f"{flag} cannot be {given!r}: it must be a whole number."
                )
            numbers.append(int(given))
        return cls(
            file=resolved(file) if file else None,
            level=level,
            format=format,
            rotate_bytes=numbers[0],
            keep_files=numbers[1],
        )

    def open(self, stream: TextIO) -> Log:
        """Open the log.

        @param stream: where it goes if there is no file.
        @raise ConfigurationError: the file cannot be opened; one sentence.
        """
        output = None
        if self.file is not None:
            folder, name = os.path.split(self.file)
            try:
                output = LogOutput(  # type: ignore[no-untyped-call]
                    name,
                    folder,
                    rotateLength=self.rotate_bytes,
                    maxRotatedFiles=self.keep_files,
                )
            except OSError as error:
                raise ConfigurationError(
                    f"The log file {self.file} cannot be opened: {error.strerror}."
                ) from error
        everything = FileLogObserver(cast(Any, output or stream), FORMATS[self.format])
        level = LogLevel.levelWithName(self.level)
        wanted = LogLevelFilterPredicate(defaultLogLevel=level)
        return Log(FilteringLogObserver(everything, [wanted]), output)


@final
@attrs.frozen
class Log:
    """An open log.

    @ivar observer: takes the events.
    @ivar output: its file, or None for a stream.
    """

    observer: ILogObserver
    output: LogOutput | None


@final
class LoggingLines(logging.Handler):
    """Hands on to the log of a server what is logged with Python's own C{logging}.

    That is how the client and the proxy log, which know nothing of Twisted.
    """

    def __init__(self, observer: ILogObserver | None = None) -> None:
        """
        @param observer: takes the lines; C{None}: the log of this process.
        """
        super().__init__(logging.INFO)
        self._observer = observer

    def emit(self, record: logging.LogRecord) -> None:
        """One line."""
        name = LEVELS[max(0, min(record.levelno // 10, len(LEVELS)) - 1)]
        more: dict[str, object] = {}
        if record.exc_info is not None and record.exc_info[1] is not None:
            kind, problem, trace = record.exc_info
            more["log_failure"] = Failure(  # type: ignore[no-untyped-call]
                problem, kind, trace
            )
        logger = Logger(record.name, observer=self._observer)
        level = LogLevel.levelWithName(name)
        logger.emit(level, "{line}", line=record.getMessage(), **more)


class LoggedService(Service):
    """A service that brings its log to the application that it becomes part of.

    @ivar log: the log; None leaves it to the application.
    """

    log: Log | None = None

    def setServiceParent(self, parent: Any) -> None:
        """See C{Service.setServiceParent}."""
        if self.log is not None and isinstance(parent, Componentized):
            parent.setComponent(  # type: ignore[no-untyped-call]
                ILogObserver, self.log.observer
            )
        super().setServiceParent(parent)  # type: ignore[no-untyped-call]
