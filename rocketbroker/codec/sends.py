# -*- test-case-name: tests.codec.test_sends -*-
"""The cutting of a connection's bytes into sends, and their headers: compiled.

The reader makes drafts of the usual shape only, strictly. At the first byte that is not
expected it gives up, and the frame goes the ordinary way (L{rocketbroker.wire.hot},
L{rocketbroker.broker.send.send}): so nothing is decided here that could be decided
otherwise there.

What one producer sends mostly differs in no more than numbers and keys, so that what
stands around these is examined once.

C{docs/facts/remoting.md} 2 and 5.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, final

from rocketbroker.codec.append import Draft
from rocketbroker.codec.mypyc_types import i64, mypyc_attr, read_i32_be
from rocketbroker.codec.scanning import (
    BACKSLASH,
    QUOTE,
    ZERO,
    is_word,
    skip_plain,
    skip_text,
    skip_value,
)

_RESPONSE: Final = 1
_ONEWAY: Final = 2

#: Bits of the system flag that ordinary messages may have: compression, several tags.
_ORDINARY_BITS: Final = 0x703

_LEAST_I32: Final = -0x80000000
_MOST_I32: Final = 0x7FFFFFFF

# Bytes, and words of several.
_COLON: Final = 0x3A
_COMMA: Final = 0x2C
_OPENING: Final = 0x7B
_CLOSING: Final = 0x7D
_MINUS: Final = 0x2D
_BEGIN: Final = 0x7B22636F  # {"co
_DE: Final = 0x6465223A  # de":
_SEND: Final = 0x3331302C  # 310,
_EXT: Final = 0x65787446  # extF, ield, and s
_IELD: Final = 0x69656C64
_S: Final = 0x73
_OPAQ: Final = 0x6F706171  # opaq, and ue
_U: Final = 0x75
_E: Final = 0x65
_FLAG: Final = 0x666C6167  # flag
_CODE_KEY: Final = 0x636F6465  # code
_ESCAPE: Final = 0x5C753030  # \\u00
_UNIQ: Final = 0x554E4951  # UNIQ, and _KEY
_KEY: Final = 0x5F4B4559
_KEYS: Final = 0x4B455953  # KEYS
_SEPARATOR: Final = b"\\u0002"
_TRUE: Final = 0x74727565  # true
_FALS: Final = 0x66616C73  # fals, and an e

#: Sends that are taken at once, at most: some 100 us.
MAX_RUN: Final = 256

#: How many shapes of properties are remembered.
MAX_SHAPES: Final = 1024

# Which fields were there.
_SAW_B: Final = 1
_SAW_E: Final = 2
_SAW_F: Final = 4
_SAW_G: Final = 8
_SAW_H: Final = 16
_SAW_I: Final = 32
_SAW_J: Final = 64
_SAW_D: Final = 128
_SAW_K: Final = 256
_SAW_M: Final = 512
_SAW_FIELDS: Final = 1024
_SAW_OPAQUE: Final = 2048
_SAW_FLAG: Final = 4096
_NEEDED: Final = _SAW_B | _SAW_E | _SAW_F | _SAW_G | _SAW_H | _SAW_I
_NEEDED_HEADER: Final = _NEEDED | _SAW_FIELDS | _SAW_OPAQUE


@final
@mypyc_attr(acyclic=True)
class ProducerShape:
    """What messages of one producer have in common: all of their properties but the
    values of UNIQ_KEY and KEYS, with what the broker adds; and what comes of them."""

    def __init__(
        self,
        before: bytes,
        middle: bytes,
        behind: bytes,
        tag_code: i64,
        wants_wait: bool,
    ) -> None:
        self.before = before
        self.middle = middle
        self.behind = behind
        self.tag_code = tag_code
        self.wants_wait = wants_wait


@final
class SendReader:
    """Reads requests 310 with a JSON header, and makes drafts of ordinary messages.

    @ivar taken: how many frames the last call took.
    """

    def __init__(self, examine: Callable[[str], tuple[int, bool] | None]) -> None:
        """
        @param examine: given properties: tag code, and whether the sender waits for the
            disk; None if the message is not an ordinary one. The values of UNIQ_KEY and
            KEYS may not matter.
        """
        self._ready: dict[bytes, dict[int, tuple[Any, Any]]] = {}
        self._added = b""
        self._waits = False
        self.taken = 0
        self._examine = examine
        self._shapes: dict[bytes, ProducerShape] = {}
        # The header that was read last: numbers, and places in the bytes.
        self._seen: i64 = 0
        self._number: i64 = 0
        self._opaque: i64 = 0
        self._flag: i64 = 0
        self._queue_id: i64 = 0
        self._sys_flag: i64 = 0
        self._born_ms: i64 = 0
        self._message_flag: i64 = 0
        self._reconsume_times: i64 = 0
        self._topic: i64 = 0
        self._topic_end: i64 = 0
        self._own: i64 = 0
        self._own_end: i64 = 0
        self._unique: i64 = 0
        self._unique_end: i64 = 0
        self._keys: i64 = 0
        self._keys_end: i64 = 0

    def configure(self, added: bytes, waits: bool) -> None:
        """Approve queues and examine properties anew.

        @param added: the properties that the broker adds, ending in 0x02.
        @param waits: whether answers may have to wait.
        """
        self._added = added
        self._waits = waits
        self._ready.clear()
        self._shapes.clear()

    def approve(self, topic: str, queue_id: int, queue: Any, counters: Any) -> None:
        """Take sends to that queue from now on.

        @param queue: the store's handle.
        @param counters: what L{rocketbroker.codec.append.answer} counts in.
        """
        self._ready.setdefault(topic.encode(), {})[queue_id] = queue, counters

    def forget(self, topic: str) -> None:
        """Take sends to that topic no longer."""
        self._ready.pop(topic.encode(), None)

    def take(
        self,
        connection: Any,
        drafts: list[Any],
        data: bytes,
        start: i64,
        most: i64,
        room: i64,
    ) -> i64:
        """Take whole frames as long as they are ordinary sends.

        @param most: the longest frame, without its first word.
        @param room: so many frames at most.
        @return: the place of the first frame that was not taken.
        """
        size: i64 = len(data)
        room = min(room, MAX_RUN)
        left = room
        host: bytes = connection.peer_host
        while left > 0 and size - start >= 20:
            length = i64(read_i32_be(data, start))
            word = i64(read_i32_be(data, start + 4))
            end = start + 4 + length
            body = start + 8 + word
            if length > most or end > size or word < 12 or body >= end:
                break
            if not self._read(data, start + 8, body):
                break
            if not self._add(connection, host, drafts, data, body, end):
                break
            start = end
            left -= 1
        self.taken = room - left
        return start

    def _read(self, data: bytes, at: i64, end: i64) -> bool:
        """Read a JSON header; whether it is of the usual shape."""
        if read_i32_be(data, at) != _BEGIN or read_i32_be(data, at + 4) != _DE:
            return False
        if read_i32_be(data, at + 8) != _SEND:
            return False
        self._seen = 0
        self._flag = 0
        self._reconsume_times = 0
        at += 12
        while at < end and data[at] == QUOTE:
            key = at + 1
            at = skip_text(data, key, end)
            if at < 0 or at + 1 >= end or data[at] != _COLON:
                return False
            size = at - 1 - key
            at += 1
            if size == 9 and _is_fields_key(data, key):
                at = self._read_fields(data, at, end)
            elif size == 6 and _is_opaque_key(data, key):
                at = self._read_number(data, at, end, _SAW_OPAQUE, 10)
                self._opaque = self._number
            elif size == 4 and read_i32_be(data, key) == _FLAG:
                at = self._read_number(data, at, end, _SAW_FLAG, 10)
                self._flag = self._number
            elif size == 4 and read_i32_be(data, key) == _CODE_KEY:
                return False
            else:
                at = skip_value(data, at, end)
            if at < 0 or at >= end:
                return False
            if data[at] == _CLOSING:
                saw = self._seen & _NEEDED_HEADER
                return at + 1 == end and saw == _NEEDED_HEADER
            if data[at] != _COMMA:
                return False
            at += 1
        return False

    def _see(self, field: i64) -> bool:
        """Whether a field is there for the first time."""
        if self._seen & field:
            return False
        self._seen |= field
        return True

    def _read_number(
        self, data: bytes, at: i64, end: i64, field: i64, digits: i64
    ) -> i64:
        """Read a whole number of so many digits at most, in 32 bits if these are 10.

        @return: the place behind it; -1 if it is none, or its field came before.
        """
        is_negative = at < end and data[at] == _MINUS
        if is_negative:
            at += 1
        start = at
        number: i64 = 0
        while at < end:
            digit: i64 = data[at]
            digit -= ZERO
            if digit < 0 or digit > 9:
                break
            if at - start == digits:
                return -1
            number = number * 10 + digit
            at += 1
        if at == start or not self._see(field):
            return -1
        if data[start] == ZERO and (at - start > 1 or is_negative):
            return -1
        if is_negative:
            number = -number
        if digits == 10 and not _LEAST_I32 <= number <= _MOST_I32:
            return -1
        self._number = number
        return at

    def _read_fields(self, data: bytes, at: i64, end: i64) -> i64:
        """Read the extension fields; the place behind them, or -1."""
        if data[at] != _OPENING or not self._see(_SAW_FIELDS):
            return -1
        at += 1
        while at + 6 < end and data[at] == QUOTE:
            if data[at + 2] == QUOTE and data[at + 3] == _COLON:
                if data[at + 4] != QUOTE:
                    return -1
                at = self._read_field(data, data[at + 1], at + 5, end)
            else:
                at = skip_text(data, at + 1, end)
                if at < 0 or at + 2 > end or data[at] != _COLON:
                    return -1
                if data[at + 1] != QUOTE:
                    return -1
                at = skip_text(data, at + 2, end)
            if at < 0 or at >= end:
                return -1
            if data[at] == _CLOSING:
                return at + 1
            if data[at] != _COMMA:
                return -1
            at += 1
        return -1

    def _read_field(self, data: bytes, letter: i64, at: i64, end: i64) -> i64:
        """Read the field of that letter, which are those of
        L{rocketbroker.wire.hot.SendFields}.

        @param at: the first byte of the string.
        @return: the place behind it; -1 if it is not of the usual shape.
        """
        if letter == 0x69:  # i
            return self._read_properties(data, at, end)
        if letter == 0x62:  # b
            if not self._see(_SAW_B):
                return -1
            self._topic = at
            at = skip_text(data, at, end)
            self._topic_end = at - 1
            return at
        if letter == 0x67:  # g
            at = self._read_number(data, at, end, _SAW_G, 18)
            self._born_ms = self._number
        elif letter == 0x65:  # e
            at = self._read_number(data, at, end, _SAW_E, 10)
            self._queue_id = self._number
        elif letter == 0x66:  # f
            at = self._read_number(data, at, end, _SAW_F, 10)
            self._sys_flag = self._number
        elif letter == 0x68:  # h
            at = self._read_number(data, at, end, _SAW_H, 10)
            self._message_flag = self._number
        elif letter == 0x6A:  # j
            at = self._read_number(data, at, end, _SAW_J, 10)
            self._reconsume_times = self._number
        elif letter == 0x64:  # d
            at = self._read_number(data, at, end, _SAW_D, 10)
        elif letter == 0x6B:  # k: true or false
            is_known = self._see(_SAW_K) and at + 5 < end
            if is_known and read_i32_be(data, at) == _TRUE:
                at += 4
            elif is_known and read_i32_be(data, at) == _FALS and data[at + 4] == 0x65:
                at += 5
            else:
                return -1
        elif letter == 0x6D:  # m: false; batches are read elsewhere
            is_known = self._see(_SAW_M) and at + 5 < end
            if not is_known or read_i32_be(data, at) != _FALS or data[at + 4] != 0x65:
                return -1
            at += 5
        elif letter < 0x20 or letter > 0x7E or letter in (BACKSLASH, QUOTE):
            # A quote would be the end of a name without a letter.
            return -1
        else:
            return skip_text(data, at, end)
        if at < 0 or at >= end or data[at] != QUOTE:
            return -1
        return at + 1

    def _read_properties(self, data: bytes, at: i64, end: i64) -> i64:
        """Find the unique key in the properties; the place behind them, or -1.

        They have no escapes but 0x01 and 0x02, which end names and values.
        """
        if not self._see(_SAW_I):
            return -1
        self._own = name = at
        unique: i64 = -1
        unique_end: i64 = -1
        keys: i64 = -1
        keys_end: i64 = -1
        while at < end:
            at = skip_plain(data, at, end)
            if at >= end or data[at] == QUOTE:
                break
            # It is an escape, or no word is read at all.
            if at + 6 > end or read_i32_be(data, at) != _ESCAPE:
                return -1
            if data[at + 4] != ZERO:
                return -1
            if data[at + 5] == 0x32:
                if unique >= 0 and unique_end < 0:
                    unique_end = at
                if keys >= 0 and keys_end < 0:
                    keys_end = at
                name = at + 6
            elif data[at + 5] != 0x31 or name == 0:
                return -1
            else:
                if at - name == 8 and is_word(data, name, _UNIQ, _KEY):
                    if unique >= 0:
                        return -1
                    unique = at + 6
                elif at - name == 4 and read_i32_be(data, name) == _KEYS:
                    if keys >= 0:
                        return -1
                    keys = at + 6
                # Until a value has ended, another 0x01 is none of the usual shape.
                name = 0
            at += 6
        if unique < 0 or at >= end:
            return -1
        self._own_end = at
        self._unique = unique
        self._unique_end = at if unique_end < 0 else unique_end
        # Without keys they are an empty value at the end.
        self._keys = at if keys < 0 else keys
        self._keys_end = at if keys_end < 0 else keys_end
        return at + 1 if self._unique_end > unique else -1

    def _add(
        self,
        connection: Any,
        host: bytes,
        drafts: list[Any],
        data: bytes,
        body: i64,
        end: i64,
    ) -> bool:
        """Add a draft of what was read; whether it is an ordinary message."""
        if self._flag & _RESPONSE or self._sys_flag & ~_ORDINARY_BITS:
            return False
        queues = self._ready.get(data[self._topic : self._topic_end])
        if queues is None:
            return False
        found = queues.get(self._queue_id)
        if found is None:
            return False
        key = data[self._unique : self._unique_end]
        keys = data[self._keys : self._keys_end]
        is_first = self._unique < self._keys
        if is_first:
            before = data[self._own : self._unique]
            middle = data[self._unique_end : self._keys]
            behind = data[self._keys_end : self._own_end]
        else:
            before = data[self._own : self._keys]
            middle = data[self._keys_end : self._unique]
            behind = data[self._unique_end : self._own_end]
        to = None if self._flag & _ONEWAY else connection
        shape = self._shapes.get(before + middle + behind)
        if shape is None:
            own = data[self._own : self._own_end]
            shape = self._learn(own, before, middle, behind)
            if shape is None:
                return False
        if is_first:
            properties = shape.before + key + shape.middle + keys + shape.behind
        else:
            properties = shape.before + keys + shape.middle + key + shape.behind
        queue, counters = found
        drafts.append(
            Draft(
                queue,
                data[body:end],
                properties,
                self._message_flag,
                self._sys_flag,
                self._born_ms,
                host,
                self._reconsume_times,
                shape.tag_code,
                (to, int(self._opaque), key, counters),
                None,
                0,
                not self._waits or shape.wants_wait,
            )
        )
        return True

    def _learn(
        self, own: bytes, before: bytes, middle: bytes, behind: bytes
    ) -> ProducerShape | None:
        """Examine properties, and keep what comes of it for those of the same shape.

        @return: None if the message is not an ordinary one.
        """
        found = self._examine(_unescaped(own).decode("ascii"))
        if found is None:
            return None
        tag_code, wants_wait = found
        end = b"" if own.endswith(_SEPARATOR) else b"\x02"
        shape = ProducerShape(
            _unescaped(before),
            _unescaped(middle),
            _unescaped(behind) + end + self._added,
            tag_code,
            wants_wait,
        )
        if len(self._shapes) >= MAX_SHAPES:
            self._shapes.clear()
        self._shapes[before + middle + behind] = shape
        return shape


def _is_fields_key(data: bytes, at: i64) -> bool:
    """Whether these nine bytes are C{extFields}."""
    return is_word(data, at, _EXT, _IELD) and data[at + 8] == _S


def _is_opaque_key(data: bytes, at: i64) -> bool:
    """Whether these six bytes are C{opaque}."""
    return read_i32_be(data, at) == _OPAQ and data[at + 4] == _U and data[at + 5] == _E


def _unescaped(text: bytes) -> bytes:
    """What JSON text stands for that has no other escapes than these two."""
    return text.replace(b"\\u0001", b"\x01").replace(b"\\u0002", b"\x02")
