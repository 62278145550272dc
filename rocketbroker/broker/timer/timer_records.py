# -*- test-case-name: tests.broker.timer.test_timer_records -*-
"""Messages of the timer topic, read from the commit log one after the other.

Those of one slot, or of one stretch of the topic, often stand side by side. So the log
is read in blocks, and a message costs a decoding; when and where it is due is
remembered, as slots and topics are few.
"""

from __future__ import annotations

from typing import Final, TypeAlias, final
from zlib import crc32

from rocketbroker.broker.messages.delay_messages import destination
from rocketbroker.broker.messages.timer_messages import out_ms_of
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.names import TIMER_TOPIC
from rocketbroker.records.properties import find
from rocketbroker.records.record import StoredMessage, decode
from rocketbroker.store.interfaces import IStore

#: The log is read in blocks of so many bytes.
_BLOCK: Final = 16 << 10

#: What says when and where a message is due, and two of it as they stand behind other
#: properties.
_NAMES: Final = (b"TIMER_OUT_MS", b"REAL_TOPIC", b"REAL_QID")
_OUT_MS: Final = b"\x02TIMER_OUT_MS\x01"
_REAL_TOPIC: Final = b"\x02REAL_TOPIC\x01"

#: The ends of so many properties strings are remembered, and none that is longer.
_MAX_TAILS: Final = 1024
_LONGEST_TAIL: Final = 512

#: So many places are remembered.
_MAX_PLACES: Final = 4096

_Place: TypeAlias = tuple[str, int] | None


@final
class TimerRecords:
    """The reader of messages that the timer log names."""

    def __init__(self, store: IStore) -> None:
        self._store = store
        self._data = b""
        self._begin = 0
        self._destinies: dict[bytes, tuple[int | None, _Place]] = {}
        self._places: dict[tuple[bytes | None, bytes | None], _Place] = {}

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

    def destiny(self, message: StoredMessage) -> tuple[int | None, _Place]:
        """The time of the slot that a message waits for, and topic and queue where it
        belongs; None for what it does not say."""
        own = message.property_bytes
        # A broker sets the three properties that say so behind the others, but with
        # those of POP the topic before them: what they are is the same for many.
        at = own.rfind(_OUT_MS)
        tail = own[at:] if at >= 0 else b""
        if own.startswith(_REAL_TOPIC[1:]) and own.find(_REAL_TOPIC, 0, at) < 0:
            tail = own[: own.find(b"\x02")] + tail
        known = self._destinies.get(tail)
        if known is None:
            known = out_ms_of(own), self._place(message)
            is_all = all(find(tail, name) is not None for name in _NAMES)
            if is_all and len(tail) <= _LONGEST_TAIL:
                if len(self._destinies) >= _MAX_TAILS:
                    self._destinies.clear()
                self._destinies[tail] = known
        return known

    def _place(self, message: StoredMessage) -> _Place:
        own = message.property_bytes
        key = find(own, b"REAL_TOPIC"), find(own, b"REAL_QID")
        if key in self._places:
            return self._places[key]
        place = destination(message)
        if len(self._places) < _MAX_PLACES:
            self._places[key] = place
        return place
