# -*- test-case-name: tests.filtering.test_sqlhints -*-
"""Hints for SQL92 expressions: patterns that are found in all properties strings for
which a condition is true, and in few others.

With one the store searches many records at once, and looks only at the properties of
those where it is found. So each begins with the name of a property, which C{re}
searches as fast as a plain string, and what follows allows more rather than less: that
the same name ends with this one, or the bytes are in a body, does no harm.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

#: A hint has at most so many strings, and of each so many bytes: it compiles at once.
MAX_STRINGS: Final = 16
MAX_BYTES: Final = 64

#: Any text of a certain whole number, in ASCII or with digits of other scripts. Behind
#: a last property the next record begins: with a size that is no digit, as its first
#: byte is one only from 768 MiB on.
_NUMBER: Final = rb"(?=[0%.1b+\-\x80-\xff])(?:[+-]?0*%b(?![0-9])|[+\-0-9]*[\x80-\xff])"


def text_hint(name: bytes, texts: Collection[bytes]) -> bytes:
    """The hint for a property that is one of some strings.

    @return: empty if there is none: what is not ASCII may equal what looks different.
    """
    if not 0 < len(texts) <= MAX_STRINGS or not all(t and t.isascii() for t in texts):
        return b""
    starts = b"|".join(sorted(re.escape(text[:MAX_BYTES]) for text in texts))
    return re.escape(name + b"\1") + b"(?:" + starts + b")"


def number_hint(name: bytes, number: int) -> bytes:
    """The hint for a property that is a whole number."""
    digits = b"%d" % abs(number)
    return re.escape(name + b"\1") + _NUMBER % (digits, digits)
