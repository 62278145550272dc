# -*- test-case-name: tests.broker.test_json_table -*-
"""A table of the broker and its file.

Writing a file waits for the disk, so it happens in a thread. The next write has all
changes that came meanwhile; two writes of the same file never overlap.

A file is written whole, however little has changed. So a large one has a pause after
each write, in which changes are gathered: the first change is written at once, those
that follow within a second are written together.

C{docs/facts/broker.md} 26 has the shapes of the files.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from rocketbroker.broker.background_work import InThread
from rocketbroker.errors import (
    ConfigurationError,
    RemoteProtocolError,
    SystemFailure,
)
from rocketbroker.files.interfaces import IFiles
from rocketbroker.files.jsonfile import DAMAGED, JsonFile
from rocketbroker.wire.fastjson import dumps, loads

#: A file of no more bytes has no pause: it has some three hundred topics.
SMALL_BYTES: Final = 64 * 1024

#: A larger one is written with so many bytes a second, ...
BYTES_A_SECOND: Final = 1024 * 1024

#: ... but a change never waits longer for the end of a pause.
MAX_PAUSE_SECONDS: Final = 1.0

#: Ends the name of the copy that is one write older.
BACKUP: Final = ".bak"


@final
class JsonTable:
    """One JSON file and the writes of it.

    @ivar path: where it is.
    @ivar writes: how many writes succeeded.
    @ivar failures: how many failed.
    @ivar failed: whether the last one did, so that the file is behind the table.
    @ivar reason: why the last one that failed did.
    @ivar problem: a sentence about a file that could not be read at the start; empty
        if it could.
    """

    _log = Logger()

    def __init__(
        self,
        files: IFiles,
        path: str,
        in_thread: InThread,
        clock: IReactorTime,
        is_secret: bool = False,
    ) -> None:
        """
        @param is_secret: nobody else may read the file.
        """
        self.path = path
        self.writes = 0
        self.failures = 0
        self.failed = False
        self.reason = ""
        self.problem = ""
        self._files = files
        self._file = JsonFile(files, path, is_secret)
        self._in_thread = in_thread
        self._clock = clock
        self._size = 0
        self._began = -MAX_PAUSE_SECONDS
        self._pause: IDelayedCall | None = None
        self._writing = False
        self._wanted: Callable[[], object] | None = None
        self._waiting: list[Deferred[None]] = []
        self._next_waiting: list[Deferred[None]] = []

    def load(self) -> dict[object, object] | None:
        """I{Blocking.} The table in the file, or in its old copy if it is damaged.

        A table that cannot be read is no reason to refuse the start: it is logged, the
        broker starts without it, and the damaged files are kept aside.

        @return: the JSON object; None if there is none.
        """
        try:
            return self._read()
        except (OSError, ValueError) as error:
            self.problem = (
                f"{self.path} could not be read at the start ({error}), nor could its "
                f"copy {BACKUP}, so the broker runs without its content; the damaged "
                f"files are kept as *{DAMAGED}."
            )
            self._log.error("{problem}", problem=self.problem)
            return None

    def load_required(self, content: str) -> dict[object, object] | None:
        """I{Blocking.} The same of a table whose loss would hide messages.

        @param content: of the table, for the error.
        @raise ConfigurationError: there is a file, but neither it nor its old copy can
            be read; one sentence.
        """
        try:
            value = self._read()
            if value is None and self._files.exists(self.path):
                raise ValueError("it is empty")
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"{self.path} cannot be read ({error}), nor can its copy {BACKUP}: "
                f"restore {self.path} from a backup, or move both files away to start "
                f"without {content}."
            ) from error
        return value

    def _read(self) -> dict[object, object] | None:
        """
        @raise OSError: the disk refuses the file and its old copy.
        @raise ValueError: they are damaged.
        """
        value: dict[object, object] | None = None

        def read(content: bytes) -> None:
            nonlocal value
            value = table_of(content)
            self._size = len(content)

        content = self._file.load(read)
        if self._file.fallbacks:
            self._log.warn(
                "{path} cannot be read; its copy {backup} is used, which is one write "
                "older",
                path=self.path,
                backup=BACKUP,
            )
        return None if content is None else value

    def save_soon(self, encode: Callable[[], object]) -> Deferred[None]:
        """Write the table in a thread, after a write that is under way and its pause.

        @param encode: gives the JSON object; called in the reactor's thread, right
            before the write, and what it gives is not changed afterwards.
        @return: fires when a write that has this change has ended; a failed write is
            logged and does not fail it.
        """
        done: Deferred[None] = Deferred()
        self._next_waiting.append(done)
        self._wanted = encode
        if not self._writing and self._pause is None:
            self._write_when_due()
        return done

    @property
    def pause_seconds(self) -> float:
        """How long changes are gathered before the next write."""
        if self._size <= SMALL_BYTES:
            return 0.0
        return min(self._size / BYTES_A_SECOND, MAX_PAUSE_SECONDS)

    def hurry(self) -> None:
        """Write what waits without a further pause: the broker stops."""
        self._began = -MAX_PAUSE_SECONDS
        if self._pause is not None:
            self._pause.cancel()
            self._write()

    def idle(self) -> Deferred[None]:
        """Fires once every change so far has been written."""
        if self._wanted is None and not self._writing:
            return succeed(None)
        done: Deferred[None] = Deferred()
        (self._next_waiting if self._wanted is not None else self._waiting).append(done)
        return done

    def kept(self) -> Deferred[None]:
        """Fires once every change so far has been written.

        @return: fails with L{SystemFailure} if it could not; it is tried again later.
        """
        return self.idle().addCallback(self.check)

    def check(self, _: object) -> None:
        """Refuse to say that a change is kept.

        @raise SystemFailure: it cannot be written; it is tried again later.
        """
        if self.failed:
            raise SystemFailure(
                f"the change holds until the broker stops, but {self.path} cannot be "
                f"written: {self.reason}"
            )

    def _write_when_due(self) -> None:
        wait = self._began + self.pause_seconds - self._clock.seconds()
        if wait > 0:
            self._pause = self._clock.callLater(wait, self._write)
        else:
            self._write()

    def _write(self) -> None:
        assert self._wanted is not None
        self._pause = None
        self._began = self._clock.seconds()
        value = self._wanted()
        self._wanted = None
        self._waiting, self._next_waiting = self._next_waiting, []
        self._writing = True
        self._in_thread(lambda: self._save(value)).addCallbacks(
            self._saved, self._not_saved
        ).addBoth(self._written)

    def _save(self, value: object) -> int:
        """I{Blocking.} Write it; how many bytes it has."""
        content = dumps(value)
        self._file.save(content)
        return len(content)

    def _saved(self, size: int) -> None:
        self._size = size
        self.writes += 1
        if self.failed:
            self.failed = False
            self._log.info("{path} can be written again", path=self.path)

    def _not_saved(self, failure: Failure) -> None:
        self._failed(failure.value)

    def _failed(self, error: BaseException | None) -> None:
        """Say it once: clients that make topics could fill the disk with lines."""
        self.failures += 1
        self.reason = str(error)
        if not self.failed:
            self.failed = True
            self._log.error("cannot write {path}: {error}", path=self.path, error=error)

    def _written(self, _: object) -> None:
        self._writing = False
        waiting, self._waiting = self._waiting, []
        if self._wanted is not None:
            self._write_when_due()
        for done in waiting:
            done.callback(None)


def table_of(content: bytes) -> dict[object, object]:
    """The JSON object that a file holds.

    @raise ValueError: it holds none.
    """
    try:
        value = loads(content)
    except RemoteProtocolError as error:
        raise ValueError(str(error)) from error
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value
