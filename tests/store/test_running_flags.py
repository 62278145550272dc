"""The running flags of a store."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.store.running_flags import DISK_FULL, NOT_WRITEABLE, RunningFlags


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

    def test_holders(self) -> None:
        """A bit that two parts hold is set until both have let go; each says why."""
        flags = RunningFlags()
        flags.set(DISK_FULL, True, "90 %", by="disk")
        flags.set(DISK_FULL, True, "no space", by="log")
        flags.set(DISK_FULL, True, "91 %", by="disk")
        self.assertEqual(flags.reasons(DISK_FULL), "91 %; no space")
        self.assertEqual(flags.reasons(NOT_WRITEABLE), "")
        self.assertEqual(flags.held_by_others("log"), DISK_FULL)
        flags.set(DISK_FULL, False, by="disk")
        self.assertTrue(flags.has(DISK_FULL))
        self.assertEqual(flags.held_by_others("log"), 0)
        flags.set(DISK_FULL, False, by="log")
        flags.set(DISK_FULL, False, by="nobody")
        self.assertEqual((flags.bits, flags.reasons(DISK_FULL)), (0, ""))
