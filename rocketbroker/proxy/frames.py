# -*- test-case-name: tests.proxy.test_frames -*-
"""Frames of HTTP/2, as far as the front of a proxy has to know them (RFC 9113).

It tells clients to go elsewhere before the server behind does: that one cancels the
calls which come while its word is on the way. The word is a frame, and goes between two
others.
"""

from __future__ import annotations

from typing import Final, final

#: The head of a frame; its first three bytes are how much follows (4.1).
_HEAD: Final = 9
_LENGTH: Final = 3

#: The end of a connection that is announced: calls that are under way, or on their way,
#: are answered, and new ones go elsewhere (6.8).
GOAWAY: Final = bytes.fromhex("000008 07 00 00000000 7fffffff 00000000")


@final
class Frames:
    """Where one side's frames end, in what it sends from its first byte on."""

    def __init__(self) -> None:
        self._head = b""
        self._rest = 0
        self._has_begun = False

    @property
    def is_between(self) -> bool:
        """Whether something has come, and all of it are whole frames."""
        return self._has_begun and not self._rest and not self._head

    def came(self, data: bytes) -> None:
        """More has come."""
        self._has_begun = True
        if self._head:
            data, self._head = self._head + data, b""
        at, size = self._rest, len(data)
        while at + _HEAD <= size:
            at += _HEAD + int.from_bytes(data[at : at + _LENGTH], "big")
        if at < size:
            self._head = data[at:]
        self._rest = max(0, at - size)
