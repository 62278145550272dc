# -*- test-case-name: tests.store.sharing.test_sharing -*-
"""The append lock: whoever holds it may append to the log.

Without other processes it is a C{threading.Lock}; with them it is
L{rocketbroker.store.sharing.append_lock.SharedAppendLock}.

Nobody waits for it without a bound, as a holder may hang: it was stopped, or its disk
does not answer. What is to be appended then is refused, and is tried again by whoever
wants it: a client, or the next round of a service.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from rocketbroker.errors import SystemBusy

#: How long one append waits for the lock, in s. An append takes less than a ms; while
#: its owner waits here, nobody else is served.
MAX_WAIT_SECONDS: Final = 0.05

#: RocketMQ's remark for an append that is too slow (C{docs/facts/store.md} 5.2), and
#: the stage that is.
LOCK_BUSY: Final = (
    "[PC_SYNCHRONIZED]broker busy, start flow control for a while, slow stage: the "
    "append lock is held"
)


class AppendLock(Protocol):
    """A lock, as the parts of a store use it."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Wait for it at most so many seconds; whether it was taken."""

    def release(self) -> None:
        """Let others have it."""


@contextmanager
def held(lock: AppendLock) -> Iterator[None]:
    """Hold the lock.

    @raise SystemBusy: it could not be had in L{MAX_WAIT_SECONDS}.
    """
    if not lock.acquire(True, MAX_WAIT_SECONDS):
        raise SystemBusy(LOCK_BUSY)
    try:
        yield
    finally:
        lock.release()
