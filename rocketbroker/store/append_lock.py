# -*- test-case-name: tests.store.sharing.test_sharing -*-
"""The append lock: whoever holds it may append to the log.

Without other processes it is a C{threading.Lock}; with them it is
L{rocketbroker.store.sharing.append_lock.SharedAppendLock}.
"""

from __future__ import annotations

from types import TracebackType
from typing import Protocol


class AppendLock(Protocol):
    """A lock, as the parts of a store use it."""

    def acquire(self) -> bool:
        """Wait for it, and take it."""

    def release(self) -> None:
        """Let others have it."""

    def __enter__(self) -> bool:
        """The same as L{acquire}."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
        /,
    ) -> None:
        """The same as L{release}."""
