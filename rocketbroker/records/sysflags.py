# -*- test-case-name: tests.records.test_sysflags -*-
"""The bits of a message's system flag, and of a pull's.

C{docs/facts/store.md} 3.3; C{docs/facts/client.md} 8.
"""

from __future__ import annotations

from typing import Final

COMPRESSED: Final = 0x1
MULTI_TAGS: Final = 0x2

TRANSACTION_MASK: Final = 0xC
TRANSACTION_NONE: Final = 0x0
TRANSACTION_PREPARED: Final = 0x4
TRANSACTION_COMMIT: Final = 0x8
TRANSACTION_ROLLBACK: Final = 0xC

BORN_HOST_V6: Final = 0x10
STORE_HOST_V6: Final = 0x20
HOST_MASK: Final = BORN_HOST_V6 | STORE_HOST_V6

NEED_UNWRAP: Final = 0x40
INNER_BATCH: Final = 0x80

COMPRESSION_MASK: Final = 0x700
COMPRESSION_SHIFT: Final = 8

# Of a pull request.
PULL_SUSPEND: Final = 0x2
PULL_SUBSCRIPTION: Final = 0x4


def with_transaction_type(sys_flag: int, kind: int) -> int:
    """C{sys_flag} with another transaction type."""
    return (sys_flag & ~TRANSACTION_MASK) | kind


def takes_queue_offset(sys_flag: int) -> bool:
    """Whether a record of that flag advances its queue: not half, not rolled back."""
    return sys_flag & TRANSACTION_MASK in (TRANSACTION_NONE, TRANSACTION_COMMIT)


def compression_kind(sys_flag: int) -> int:
    """The kind of compression: 1, 2, 3, or 0, which old clients send for zlib."""
    return (sys_flag & COMPRESSION_MASK) >> COMPRESSION_SHIFT


def with_compression(sys_flag: int, kind: int) -> int:
    """C{sys_flag} of a body that was compressed that way."""
    cleared = sys_flag & ~COMPRESSION_MASK
    return cleared | COMPRESSED | (kind << COMPRESSION_SHIFT)


def with_hosts(sys_flag: int, born_host: bytes, store_host: bytes) -> int:
    """C{sys_flag} with the two bits that say how long the hosts of a record are."""
    sys_flag &= ~HOST_MASK
    if len(born_host) == 20:
        sys_flag |= BORN_HOST_V6
    if len(store_host) == 20:
        sys_flag |= STORE_HOST_V6
    return sys_flag
