"""The running flags of a store."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.store.flags import DISK_FULL, NOT_WRITEABLE, RunningFlags


class RunningFlagsTests(SynchronousTestCase):
    """Bits that are set and taken back one by one."""

    def test_bits(self) -> None:
        """A bit that is taken back leaves the others."""
        flags = RunningFlags()
        self.assertFalse(flags.has(DISK_FULL))
        flags.set(DISK_FULL)
        flags.set(NOT_WRITEABLE)
        self.assertEqual(flags.bits, 18)
        flags.set(DISK_FULL, False)
        self.assertEqual((flags.bits, flags.has(NOT_WRITEABLE)), (2, True))
