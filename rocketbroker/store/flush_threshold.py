# -*- test-case-name: tests.store.test_flush_threshold -*-
"""Whether enough has come together to be flushed.

The settings count in pages: flushCommitLogLeastPages, flushConsumeQueueLeastPages. One
rule serves both.

C{docs/facts/store.md} 2.4.
"""

from __future__ import annotations

from typing import Final

#: What these settings call a page, whatever the machine does (see 2.1 there).
PAGE: Final = 4096


def is_due(done: int, end: int, least_pages: int, size: int) -> bool:
    """Whether to flush what lies between two positions.

    @param done: what is flushed.
    @param end: what can be.
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
