"""Patience with brokers that restart."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import (
    ConnectionLost,
    NoPermission,
    RocketbrokerError,
    SystemFailure,
)
from rocketbroker.sources.retry import NoAnswer, Patience
from rocketbroker.testing.scripted import ScriptedMachine


class PatienceTests(SynchronousTestCase):
    """L{Patience}."""

    def setUp(self) -> None:
        """Ten seconds of it."""
        self.machine = ScriptedMachine({})
        self.patience = Patience(self.machine, 10.0)

    def question(self, *problems: RocketbrokerError) -> str:
        """The answer, after some problems."""
        left = list(problems)

        def ask() -> str:
            if left:
                raise left.pop(0)
            return "answer"

        return self.patience.ask(ask)

    def test_asksAgain(self) -> None:
        """A problem that may pass is waited for."""
        self.assertEqual(self.question(*[ConnectionLost("x")] * 49), "answer")
        self.assertEqual(len(self.machine.slept), 49)

    def test_ends(self) -> None:
        """But not for longer than said; the first line of the reason is kept."""
        error = self.assertRaises(
            NoAnswer, self.question, *[ConnectionLost("broken\nSee http://x")] * 60
        )
        self.assertEqual(
            str(error), "broken (tried again for 10 s, option retryTimeout)"
        )

    def test_beginsAnew(self) -> None:
        """After an answer the time counts from the next problem on."""
        for _ in range(3):
            self.question(*[ConnectionLost("x")] * 40)

    def test_final(self) -> None:
        """A problem that does not pass is not waited for."""
        self.assertRaises(NoPermission, self.question, NoPermission("no"))
        self.assertEqual(self.machine.slept, [])

    def test_refusal(self) -> None:
        """A broker that answers with its own failure is not waited for as long."""
        self.assertEqual(self.question(*[SystemFailure("busy")] * 20), "answer")
        error = self.assertRaises(
            NoAnswer, self.question, *[SystemFailure("no SQL92 here")] * 30
        )
        self.assertIn("no SQL92 here (tried again for 5 s", str(error))

    def test_none(self) -> None:
        """Without patience nothing is asked twice."""
        self.patience = Patience(self.machine, 0.0)
        self.assertRaises(NoAnswer, self.question, ConnectionLost(""))
        self.assertEqual(self.machine.slept, [])
