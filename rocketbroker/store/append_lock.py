# -*- test-case-name: tests.store.test_append_lock -*-
"""The append lock: held by an append until its records are published.

One process needs no more than this: its threads take turns. Several processes on one
store would need a lock that the kernel releases when its holder is killed (C{lockf} on
a file, not a C{multiprocessing.Lock}, which stays locked for ever), with the same two
calls.
"""

from __future__ import annotations

import threading
from typing import Protocol, final


class AppendLock(Protocol):
    """A lock that a store takes before it reserves, and releases once it has
    published."""

    def acquire(self, blocking: bool = ...) -> bool:
        """Wait for it."""

    def release(self) -> None:
        """Let others have it."""


@final
class ThreadAppendLock:
    """The lock among the threads of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.acquire = self._lock.acquire
        self.release = self._lock.release
