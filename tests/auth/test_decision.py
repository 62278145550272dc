"""Decisions as values."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.auth.decision import Decision, may_be_kept
from rocketbroker.errors import NoPermission, SystemFailure


class KeptTests(SynchronousTestCase):
    """Which decisions are kept."""

    def test_limits(self) -> None:
        """Two names at most, of 512 characters together."""
        self.assertTrue(may_be_kept(("a" * 127, "b" * 255)))
        self.assertTrue(may_be_kept(("a" * 512, None)))
        self.assertFalse(may_be_kept(("a" * 512, "b")))
        self.assertTrue(may_be_kept(()))
        self.assertFalse(may_be_kept(("a", "b", "c")))


class DecisionTests(SynchronousTestCase):
    """Allowed or refused."""

    def test_allowed(self) -> None:
        """It says which rule allowed, and has no code."""
        decision = Decision.allow("admin")
        self.assertTrue(decision.allowed)
        self.assertEqual((decision.rule, decision.code), ("admin", 0))

    def test_refusedWithItsAnswer(self) -> None:
        """A refusal becomes the error of its code, with the words."""
        for code, kind in ((16, NoPermission), (1, SystemFailure)):
            decision = Decision.refuse("default", "no", code)
            self.assertFalse(decision.allowed)
            error = decision.error()
            self.assertIs(type(error), kind)
            self.assertEqual(error.remark, "no")
