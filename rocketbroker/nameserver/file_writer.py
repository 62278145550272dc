# -*- test-case-name: tests.nameserver.test_file_writer -*-
"""Files written in a thread, one write at a time, the newest content last."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, final

from twisted.internet.defer import Deferred, fail, succeed
from twisted.python.failure import Failure

from rocketbroker.errors import SystemFailure
from rocketbroker.files.jsonfile import JsonFile
from rocketbroker.wire.command import Command, response_to

#: Runs something that may wait for the disk; fires with the outcome.
InThread: TypeAlias = Callable[[Callable[[], None]], Deferred[None]]


#: Gives a file's content, in steps if it is long.
Encode: TypeAlias = "Callable[[], bytes | Deferred[bytes]]"


@final
class FileWriter:
    """One file.

    While one write is under way, later contents wait, and only the newest is written
    next: it contains the others. The content is encoded when its write begins, so that
    many changes at once do not each encode the whole.

    @ivar failures: how many requests the disk refused.
    """

    def __init__(self, file: JsonFile, in_thread: InThread) -> None:
        self._file = file
        self._in_thread = in_thread
        self._next: Encode | None = None
        self._waiting: list[Deferred[None]] = []
        self._writing = False
        self._idle: list[Deferred[None]] = []
        self.failures = 0

    def save(self, encode: Encode) -> Deferred[None]:
        """Replace the file's content.

        @param encode: called when the write begins: gives the content of then.
        @return: fires when this content, or a newer one, is on the disk; fails with
            OSError if the disk refused.
        """
        saved: Deferred[None] = Deferred()
        self._next = encode
        self._waiting.append(saved)
        if not self._writing:
            self._write()
        return saved

    async def answer(self, encode: Encode, request: Command) -> Command:
        """Replace the file's content; the answer to the request that wanted it.

        @raise SystemFailure: the disk refused.
        """
        try:
            await self.save(encode)
        except OSError as error:
            self.failures += 1
            raise SystemFailure(
                f"The change is in force but could not be saved: "
                f"{error.strerror or error}."
            ) from error
        return response_to(request)

    def idle(self) -> Deferred[None]:
        """Fires when nothing is being written."""
        if not self._writing:
            return succeed(None)
        idle: Deferred[None] = Deferred()
        self._idle.append(idle)
        return idle

    def _write(self) -> None:
        encode, self._next = self._next, None
        waiting, self._waiting = self._waiting, []
        assert encode is not None, "there is something to write"
        self._writing = True
        self._encoded_write(encode).addBoth(self._written, waiting)

    def _encoded_write(self, encode: Encode) -> Deferred[None]:
        try:
            content = encode()
        except Exception:
            return fail()
        encoded = content if isinstance(content, Deferred) else succeed(content)
        return encoded.addCallback(self._save)

    def _save(self, content: bytes) -> Deferred[None]:
        return self._in_thread(lambda: self._file.save(content))

    def _written(self, result: Failure | None, waiting: list[Deferred[None]]) -> None:
        self._writing = False
        if self._next is not None:
            self._write()
        for saved in waiting:
            saved.callback(result)
        if not self._writing:
            idle, self._idle = self._idle, []
            for one in idle:
                one.callback(None)
