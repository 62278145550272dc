# -*- test-case-name: tests.config.test_hours -*-
"""C{deleteWhen}: at which hours of the day expired files are removed.

C{04} or C{03;04;05}, by the local clock. C{docs/facts/store.md 17.1}.
"""

from __future__ import annotations


def parse_hours(text: str) -> frozenset[int]:
    """The hours, each 0 to 23.

    @raise ValueError: what one must be instead.
    """
    hours = set()
    for part in text.split(";"):
        word = part.strip()
        is_number = word.isascii() and word.isdigit() and len(word) <= 2
        if not is_number or int(word) > 23:
            raise ValueError("it must be hours from 00 to 23, separated by ;")
        hours.add(int(word))
    return frozenset(hours)
