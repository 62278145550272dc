# -*- test-case-name: tests.broker.timer.test_timer_service -*-
"""Messages of the timer topic, read from the commit log one after the other.

Those of one slot, or of one stretch of the topic, often stand side by side. So the log
is read in blocks, and a message costs a decoding; where it belongs is remembered, as
topics are few.
"""

from __future__ import annotations

from typing import Final, final
from zlib import crc32

from rocketbroker.broker.messages.delay_messages import destination
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.names import TIMER_TOPIC
from rocketbroker.records.properties import find
from rocketbroker.records.record import StoredMessage, decode
from rocketbroker.store.interfaces import IStore

#: The log is read in blocks of so many bytes.
_BLOCK: Final = 16 << 10

_REAL_TOPIC: Final = b"\x02REAL_TOPIC\x01"
_REAL_QUEUE: Final = b"\x02REAL_QID\x01"

#: So many places are remembered.
_MAX_PLACES: Final = 4096


@final
class TimerRecords:
    """Reads messages."""

    def __init__(self, store: IStore) -> None:
        self._store = store
        self._data = b""
        self._begin = 0
        self._places: dict[tuple[bytes, bytes], tuple[str, int] | None] = {}

    def at(self, position: int, size: int) -> StoredMessage | None:
        """I{Blocking if cold.} The timer message there; None if there is none."""
        start = position - self._begin
        if start < 0 or start + size > len(self._data):
            try:
                data = self._store.raw_log.read(position, max(size, _BLOCK))
            except OSError:
                # It says why, and may have it in other blocks.
                data = self._store.record_at(position) or b""
            self._data, self._begin, start = data, position, 0
        try:
            message = decode(self._data, start)
        except Malformed:
            return None
        if (
            message.size != size
            or message.position != position
            or message.topic != TIMER_TOPIC
            or message.body_crc != crc32(message.body) & 0x7FFFFFFF
        ):
            return None
        return message

    def place(self, message: StoredMessage) -> tuple[str, int] | None:
        """Topic and queue where a message belongs; None if it does not say so."""
        own = message.property_bytes
        key = _value(own, _REAL_TOPIC), _value(own, _REAL_QUEUE)
        if key in self._places:
            return self._places[key]
        place = destination(message)
        if len(self._places) < _MAX_PLACES:
            self._places[key] = place
        return place


def _value(own: bytes, mark: bytes) -> bytes:
    """As L{find}, for one that stands behind others, as a rule.

    @param mark: the name between its separators.
    """
    at = own.rfind(mark)
    if at >= 0:
        start = at + len(mark)
        end = own.find(b"\x02", start)
        if end > start:
            return own[start:end]
    return find(own, mark[1:-1]) or b""
