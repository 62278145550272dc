# -*- test-case-name: tests.store.test_flush_threshold -*-
"""The threshold of a flush: how many pages must wait before they are flushed.

The settings count in pages: flushCommitLogLeastPages, flushConsumeQueueLeastPages. One
rule serves both.

C{docs/facts/store.md} 2.4.
"""

from __future__ import annotations

from typing import Final

#: The bytes of a page in these settings, on any machine (see 2.1 there).
PAGE: Final = 4096

#: So many pages are never due.
NEVER_DUE: Final = 1 << 40


def is_due(done: int, end: int, least_pages: int, size: int) -> bool:
    """Whether to flush the bytes between two positions.

    @param done: the position up to which all is flushed.
    @param end: the position up to which all can be flushed.
    @param least_pages: so many pages are worth it; 0: anything is.
    @param size: the bytes of a file; one that is full is always worth it.

    >>> is_due(0, 8192, 3, 65536), is_due(4095, 12288, 3, 65536)
    (False, True)
    """
    if end <= done:
        return False
    if least_pages <= 0 or end // size > done // size:
        return True
    return end // PAGE - done // PAGE >= least_pages
