"""Outages, as people are told of them."""

from __future__ import annotations

import contextlib
import io

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.cli.cluster.outages import ALL, Outages, passes
from rocketbroker.cli.exit_status import NotThere
from rocketbroker.cli.formats import Moment
from rocketbroker.errors import (
    ConfigurationError,
    ConnectionLost,
    NoPermission,
    ServiceNotAvailable,
    TopicNotExist,
)

START = 1_700_000_000_000


class OutageTests(SynchronousTestCase):
    """L{Outages}."""

    def setUp(self) -> None:
        self.now = START
        self.outages = Outages(lambda: self.now)

    def told(self, *names: str, again: bool = False) -> list[str]:
        """What is told when these are away, 90 s later each time."""
        with contextlib.redirect_stderr(io.StringIO()) as err:
            self.outages.tell({name: f"{name} is away" for name in names}, again)
        self.now += 90_000
        return err.getvalue().splitlines()

    def test_beginAndEndAreTold(self) -> None:
        """Each outage is told when it begins, and when it is over."""
        self.assertEqual(self.told(), [])
        since = f"rocketbroker: since {Moment(START + 90_000)}: a is away"
        self.assertEqual(self.told("a"), [since])
        self.assertEqual(self.told("a"), [])
        (line,) = self.told("a", "b")
        self.assertIn("b is away", line)
        wanted = ["rocketbroker: a answers again, after 4 m 30 s."]
        self.assertEqual(self.told("b"), wanted)
        (line,) = self.told("a", "b")
        self.assertIn(f"{Moment(self.now - 90_000)}: a is away", line)

    def test_clearedScreenIsToldAgain(self) -> None:
        """With the time when it began."""
        first = self.told("a", again=True)
        self.assertEqual(self.told("a", again=True), first)

    def test_allIsOver(self) -> None:
        """What is no one broker's outage has no name."""
        self.told(ALL)
        wanted = ["rocketbroker: it works again, after 1 m 30 s."]
        self.assertEqual(self.told(), wanted)

    def test_whatMayPass(self) -> None:
        """A server that is away, and what is not there while it is."""
        for error in (
            ConnectionLost("x"),
            ServiceNotAvailable("x"),
            TopicNotExist("x"),
            NotThere("x"),
        ):
            self.assertTrue(passes(error), error)
        for wrong in (ConfigurationError("x"), NoPermission("x")):
            self.assertFalse(passes(wrong), wrong)
