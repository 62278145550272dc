"""The end of turns."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from rocketbroker.remoting.interfaces import ITurns
from rocketbroker.remoting.turns import Turns


class TurnsTests(SynchronousTestCase):
    """What is called at the end."""

    def test_interface(self) -> None:
        """It is what services register with."""
        verifyObject(ITurns, Turns())

    def test_each(self) -> None:
        """Each callback, in order, at each end; a failing one is logged only."""
        turns = Turns()
        called: list[str] = []

        def wrong() -> None:
            raise ValueError("wrong")

        turns.watch_turn_end(lambda: called.append("first"))
        turns.watch_turn_end(wrong)
        turns.watch_turn_end(lambda: called.append("last"))
        turns.end()
        turns.end()
        self.assertEqual(called, ["first", "last"] * 2)
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 2)

    def test_within(self) -> None:
        """Work of a timer is a turn that ends with it, even if it fails."""
        turns = Turns()
        called: list[str] = []
        turns.watch_turn_end(lambda: called.append("end"))
        turns.within(lambda: called.append("work"))
        self.assertEqual(called, ["work", "end"])
        with self.assertRaises(ZeroDivisionError):
            turns.within(lambda: 1 / 0)
        self.assertEqual(called, ["work", "end", "end"])
