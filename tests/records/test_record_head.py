"""The head of a record."""

from __future__ import annotations

import struct

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.record_head import (
    BODY_AT,
    FIELDS,
    head_struct,
    head_structs,
    offset_of,
)
from rocketbroker.records.sysflags import BORN_HOST_V6, STORE_HOST_V6


class HeadTests(SynchronousTestCase):
    """Fields and where they stand."""

    def test_sizes(self) -> None:
        """The body follows 88 bytes, 12 more for each IPv6 host."""
        for flags, size in (
            (0, 88),
            (BORN_HOST_V6, 100),
            (STORE_HOST_V6, 100),
            (BORN_HOST_V6 | STORE_HOST_V6, 112),
        ):
            self.assertEqual(head_struct(flags).size, size)
            self.assertEqual(head_structs(("size",))[flags].size, size)
            self.assertEqual(BODY_AT[flags], size)

    def test_wanted(self) -> None:
        """What is not wanted is skipped, and the rest keeps its place."""
        data = head_struct().pack(*range(9), b"b" * 8, 10, b"s" * 8, *range(12, 15))
        wanted = head_struct(0, ("magic", "sys_flag", "store_ms", "body_size"))
        self.assertEqual(wanted.unpack(data), (1, 7, 10, 14))

    def test_offsets(self) -> None:
        """A field stands behind all those before it."""
        data = bytes(range(88))
        for name, at in (("size", 0), ("queue_offset", 20), ("body_size", 84)):
            self.assertEqual(offset_of(name), at)
            (value,) = head_struct(0, (name,)).unpack(data)
            self.assertEqual((value,), struct.unpack_from(f">{FIELDS[name]}", data, at))
