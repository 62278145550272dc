# -*- test-case-name: tests.store.test_ordered -*-
"""Looking for a place in what stands in order, by halves."""

from __future__ import annotations

from collections.abc import Callable


def first_that(low: int, high: int, test: Callable[[int], bool]) -> int:
    """The first number from C{low} on that passes, C{high} if none does; those that
    pass are behind those that do not."""
    while low < high:
        middle = (low + high) // 2
        if test(middle):
            high = middle
        else:
            low = middle + 1
    return low
