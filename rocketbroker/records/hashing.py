# -*- test-case-name: tests.records.test_hashing -*-
"""Java's hash of a string, on which tag filters and the index rest.

C{h = 31 * h + unit} over UTF-16 units, in 32 bits. A loop costs 2.8 us for 42
characters. For ASCII, a number written in base 31 is the same sum, but for digits above
30; so each character is cut into C{31 * high + low}, both halves are translated to
digits, and C{int(digits, 31)} sums each at once. As C{int} is quadratic in the length
and limited by the interpreter, long strings go in pieces.

C{docs/facts/store.md} 7.2 and 12.2.
"""

from __future__ import annotations

from typing import Final

_DIGITS: Final = b"0123456789abcdefghijklmnopqrstu"
_LOW: Final = bytes(_DIGITS[unit % 31] for unit in range(256))
_HIGH: Final = bytes(_DIGITS[unit // 31] for unit in range(256))

#: How many characters are summed at once.
_PIECE: Final = 256
_POWER: Final = pow(31, _PIECE, 1 << 32)

#: How many tags are remembered. Tags are few in practice; a client that makes up new
#: ones all the time costs a hash each and no more memory than this.
MAX_CACHED_TAGS: Final = 4096

#: Longer tags, which may have 32 KiB, are not remembered.
LONGEST_CACHED_TAG: Final = 128

_tag_codes: dict[str, int] = {}


def unsigned_hash(text: str) -> int:
    """C{String.hashCode} of C{text}, from 0 to 2^32 - 1."""
    if not text.isascii():
        sum32 = 0
        units = text.encode("utf-16-be", "surrogatepass")
        for at in range(0, len(units), 2):
            sum32 = (31 * sum32 + (units[at] << 8) + units[at + 1]) & 0xFFFFFFFF
        return sum32
    if not text:
        return 0
    characters = text.encode("ascii")
    low = characters.translate(_LOW)
    high = characters.translate(_HIGH)
    if len(characters) <= _PIECE:
        return (int(low, 31) + 31 * int(high, 31)) & 0xFFFFFFFF
    at = len(characters) % _PIECE or _PIECE
    sum32 = int(low[:at], 31) + 31 * int(high[:at], 31)
    for start in range(at, len(characters), _PIECE):
        end = start + _PIECE
        piece = int(low[start:end], 31) + 31 * int(high[start:end], 31)
        sum32 = (sum32 * _POWER + piece) & 0xFFFFFFFF
    return sum32 & 0xFFFFFFFF


def java_hash(text: str) -> int:
    """C{String.hashCode} of C{text}: 32 bits, signed."""
    sum32 = unsigned_hash(text)
    return sum32 - 0x100000000 if sum32 & 0x80000000 else sum32


def tag_code(tags: str) -> int:
    """The tag code of a TAGS property, as it stands in a consume queue; 0 for none."""
    code = _tag_codes.get(tags)
    if code is None:
        code = java_hash(tags)
        if len(tags) > LONGEST_CACHED_TAG:
            return code
        if len(_tag_codes) >= MAX_CACHED_TAGS:
            _tag_codes.clear()
        _tag_codes[tags] = code
    return code


def index_hash(topic: str, key: str) -> int:
    """The hash under which the index files a key of a topic."""
    return without_sign(unsigned_hash(f"{topic}#{key}"))


def index_hash_after(prefix: int, key: str) -> int:
    """The same.

    @param prefix: the unsigned hash of the topic and C{#}.
    """
    if not key.isascii():
        units = len(key.encode("utf-16-be", "surrogatepass")) // 2
    else:
        units = len(key)
    return without_sign(prefix * pow(31, units, 1 << 32) + unsigned_hash(key))


def without_sign(sum32: int) -> int:
    """The hash without its sign; the one that has no counterpart becomes 0.

    @param sum32: a number of which the lower 32 bits are the hash.
    """
    sum32 &= 0xFFFFFFFF
    return sum32 if sum32 < 0x80000000 else -sum32 & 0x7FFFFFFF
