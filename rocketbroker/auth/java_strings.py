# -*- test-case-name: tests.auth.test_java_strings -*-
"""Strings cut and ordered as Java does it."""

from __future__ import annotations

from typing import Final

#: The characters that C{trim} takes away.
BLANKS: Final = "".join(map(chr, range(33)))


def split(text: str, separator: str) -> list[str]:
    """C{String.split}: empty parts at the end are dropped, but for an empty text."""
    if not text:
        return [""]
    whole = text.rstrip(separator)
    return whole.split(separator) if whole else []


def tokens(text: str, separator: str) -> list[str]:
    """C{StringUtils.split}: all empty parts are dropped."""
    return [part for part in text.split(separator) if part]


def code_units(text: str) -> bytes:
    """The key by which strings are ordered: their 16-bit units."""
    return text.encode("utf-16-be", "surrogatepass")
