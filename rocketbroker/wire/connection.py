# -*- test-case-name: tests.wire.test_connection -*-
"""One connection as bytes in, commands out; it knows no socket and no role.

Received bytes are cut into frames. A frame that is whole in the bytes just received is
taken from there; only the rest behind the last whole frame is kept, in one bytearray
that grows in place. So each byte is kept at most once, however many reads a frame
takes; joining the held bytes on each read would move a frame of n bytes n / 2 times
over when it comes byte by byte.

After the first mistake nothing can be trusted, least of all the place where the next
frame begins. So the connection takes nothing more, and the caller closes it, as
RocketMQ does.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, final

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.command import Command
from rocketbroker.wire.frames import MAX_BYTES, decode
from rocketbroker.wire.other_protocols import wrong_length

#: The first word of a frame: the length of the rest.
_LENGTH: Final = Struct(
    ">i"  # length, does not count itself
)


@final
class Connection:
    """The receiving side of one connection.

    @ivar before_error: once C{receive} has raised: the commands that came whole before
        the mistake in the same bytes. RocketMQ still serves them.
    """

    __slots__ = ("_error", "_held", "_max_bytes", "_wanted", "before_error")

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        """
        @param max_bytes: the longest frame, its first word included.
        """
        self._max_bytes = max_bytes
        self._held = bytearray()
        self._wanted = 4
        self._error: RemoteProtocolError | None = None
        self.before_error: list[Command] = []

    @property
    def held(self) -> int:
        """How many bytes of an unfinished frame are waiting for the rest."""
        return len(self._held)

    def receive(self, data: bytes | bytearray | memoryview) -> list[Command]:
        """Take received bytes.

        @return: the commands that are whole now, in order.
        @raise RemoteProtocolError: this is not the protocol; also on each later call.
        """
        if self._error is not None:
            raise self._error
        commands: list[Command] = []
        try:
            if self._held:
                self._held += data
                if len(self._held) < self._wanted:
                    return commands
                # The view must be gone before the bytearray is cut.
                with memoryview(self._held) as view:
                    used = self._cut(view, commands)
                del self._held[:used]
            else:
                used = self._cut(memoryview(data), commands)
                if used < len(data):
                    self._held += memoryview(data)[used:]
        except RemoteProtocolError as error:
            self._error = error
            self._held = bytearray()
            self.before_error = commands
            raise
        return commands

    def _cut(self, view: memoryview, commands: list[Command]) -> int:
        """Decode all whole frames; the number of bytes they took."""
        start = 0
        end = len(view)
        while end - start >= 4:
            (length,) = _LENGTH.unpack_from(view, start)
            if length < 4 or length + 4 > self._max_bytes:
                raise wrong_length(length, self._max_bytes)
            if end - start < length + 4:
                self._wanted = length + 4
                return start
            commands.append(decode(bytes(view[start + 4 : start + 4 + length])))
            start += length + 4
        self._wanted = 4
        return start
