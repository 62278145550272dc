# -*- test-case-name: tests.broker.test_json_table -*-
"""A table of the broker and its file.

Writing a file waits for the disk, and making the text of ten thousand topics takes a
third of a second, so both happen in a thread; how many changes came meanwhile does not
matter, the next write has them all. Two writes of the same file
never overlap. Shapes of the files: the broker sheet, section 26.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from twisted.internet.defer import Deferred, succeed
from twisted.logger import Logger
from twisted.python.failure import Failure

from rocketbroker.broker.background_work import InThread
from rocketbroker.errors import RemoteProtocolError, SystemFailure
from rocketbroker.files.interfaces import IFiles
from rocketbroker.files.jsonfile import JsonFile
from rocketbroker.wire.fastjson import dumps, loads


@final
class JsonTable:
    """One JSON file and the writes of it.

    @ivar path: where it is.
    @ivar writes: how many writes succeeded.
    @ivar failures: how many failed.
    @ivar failed: whether the last one did, so that the file is behind the table.
    @ivar reason: why the last one that failed did.
    """

    _log = Logger()

    def __init__(self, files: IFiles, path: str, in_thread: InThread) -> None:
        self.path = path
        self.writes = 0
        self.failures = 0
        self.failed = False
        self.reason = ""
        self._file = JsonFile(files, path)
        self._in_thread = in_thread
        self._writing = False
        self._wanted: Callable[[], object] | None = None
        self._waiting: list[Deferred[None]] = []
        self._next_waiting: list[Deferred[None]] = []

    def load(self) -> dict[object, object] | None:
        """I{Blocking.} What the file says, or its old copy if it makes no sense.

        An unreadable file is no reason to refuse to start: it is said, and the broker
        starts without what it held.

        @return: the JSON object; None if there is none that can be read.
        """
        try:
            content = self._file.load(table_of)
        except (OSError, ValueError) as error:
            self._log.warn(
                "{path} and its old copy cannot be read; starting without: {error}",
                path=self.path,
                error=error,
            )
            return None
        if self._file.fallbacks:
            self._log.warn("{path} cannot be read; its old copy is", path=self.path)
        return None if content is None else table_of(content)

    def save_soon(self, encode: Callable[[], object]) -> Deferred[None]:
        """Write the table in a thread, after a write that is under way.

        @param encode: gives the JSON object; called in the reactor's thread, right
            before the write, and what it gives is not changed afterwards.
        @return: fires when a write that has this change has ended; a failed write is
            logged and does not fail it.
        """
        done: Deferred[None] = Deferred()
        self._next_waiting.append(done)
        self._wanted = encode
        if not self._writing:
            self._write()
        return done

    @property
    def busy(self) -> bool:
        """Whether a write is under way."""
        return self._writing

    def idle(self) -> Deferred[None]:
        """Fires once every change so far has been written."""
        if not self._writing:
            return succeed(None)
        done: Deferred[None] = Deferred()
        (self._next_waiting if self._wanted is not None else self._waiting).append(done)
        return done

    def kept(self) -> Deferred[None]:
        """Fires once every change so far has been written.

        @return: fails with L{SystemFailure} if it could not; it is tried again later.
        """
        return self.idle().addCallback(self._check)

    def _check(self, _: None) -> None:
        if self.failed:
            raise SystemFailure(
                f"the change holds until the broker stops, but {self.path} cannot be "
                f"written: {self.reason}"
            )

    def _write(self) -> None:
        assert self._wanted is not None
        value = self._wanted()
        self._wanted = None
        self._waiting, self._next_waiting = self._next_waiting, []
        self._writing = True
        self._in_thread(lambda: self._file.save(dumps(value))).addCallbacks(
            self._saved, self._not_saved
        ).addBoth(self._written)

    def _saved(self, _: object) -> None:
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
            self._write()
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
