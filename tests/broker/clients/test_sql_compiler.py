"""The compiler of SQL92 expressions."""

from __future__ import annotations

from twisted.internet.defer import CancelledError
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.clients.sql_compiler import (
    MAX_AT_ONCE,
    MAX_WAITING,
    NotCompiled,
    SqlCompiler,
)
from rocketbroker.errors import SubscriptionParseFailed, SystemBusy
from rocketbroker.filtering.sql import MAX_CHARACTERS
from rocketbroker.remoting.cooperative_tasks import Slices
from rocketbroker.remoting.interfaces import Answer, IConnection
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.wire.command import Command, response_to
from tests.broker.rig import answered


def long(name: str) -> str:
    """An expression that is not compiled at once."""
    return " AND ".join(f"{name}{number} = 1" for number in range(300))


class CompilerTests(SynchronousTestCase):
    """Expressions, at once or in slices."""

    def setUp(self) -> None:
        """Nothing is compiled."""
        self.clock = Clock()
        self.slices = Slices(self.clock)
        self.compiler = SqlCompiler(self.slices)

    def run_slices(self) -> None:
        """Take all steps."""
        while self.slices.waiting:
            self.clock.advance(0.01)

    def test_shortOneIsCompiledAtOnce(self) -> None:
        """Up to a length an expression is there at once, and is kept."""
        short = "compiled_now = 1".ljust(MAX_AT_ONCE)
        found = self.compiler.find(short, "SQL92")
        self.assertIs(self.compiler.find(short, "SQL92"), found)
        self.assertEqual((self.compiler.compiled, self.slices.waiting), (1, 0))

    def test_longOneTakesSteps(self) -> None:
        """A longer one is compiled in slices, in many steps, once for all who wait."""
        expression = long("steps")
        error = self.assertRaises(NotCompiled, self.compiler.find, expression, "SQL92")
        self.assertEqual(error.expression, expression)
        waiting = [self.compiler.prepare(owner, expression) for owner in (1, 2)]
        self.run_slices()
        for each in waiting:
            self.successResultOf(each)
        self.assertEqual(self.compiler.compiled, 1)
        self.assertGreater(self.slices.steps, 20)
        found = self.compiler.find(expression, "SQL92")
        self.assertEqual(found.expression, expression)

    def test_senselessOneIsRefused(self) -> None:
        """What is no expression is refused with the reason, long or short; and an
        unknown type, and what is too long for any."""
        self.refused("senseless >")
        expression = "senseless > AND " + long("a")
        done = self.compiler.prepare(self, expression)
        self.run_slices()
        self.successResultOf(done)
        self.refused(expression)
        self.refused("a = 1".ljust(MAX_CHARACTERS + 1))
        with self.assertRaises(SubscriptionParseFailed):
            self.compiler.find("a = 1", "XPATH")

    def refused(self, expression: str) -> None:
        """An expression does not compile."""
        with self.assertRaises(SubscriptionParseFailed):
            self.compiler.find(expression, "SQL92")

    def test_mostThatWait(self) -> None:
        """So many characters may wait, and somebody else is told to come again."""
        number = 0
        while (number + 1) * MAX_CHARACTERS <= MAX_WAITING:
            self.compiler.prepare(number, f"w{number} = 1".ljust(MAX_CHARACTERS))
            number += 1
        self.compiler.prepare(self, "w0 = 1".ljust(MAX_CHARACTERS))
        refused = self.compiler.prepare(self, "one more")
        self.failureResultOf(refused, SystemBusy)
        self.run_slices()
        self.compiler.prepare(self, "one more")
        self.run_slices()
        self.assertEqual(self.compiler.compiled, number + 1)

    def test_stop(self) -> None:
        """Who waits when the broker stops is told so."""
        done = self.compiler.prepare(self, long("stopped"))
        self.slices.stop()
        self.failureResultOf(done, CancelledError)

    def test_requestsWait(self) -> None:
        """A request waits for each expression that it needs, and is served then."""
        first, second = long("request"), long("other")
        served = []

        def respond(connection: IConnection, request: Command) -> Answer:
            for expression in (first, second):
                self.compiler.find(expression, "SQL92")
            served.append(connection)
            return response_to(request)

        connection = RecordedConnection()
        waiting = self.compiler.waiting(respond)
        answer = waiting(connection, Command(11, opaque=7))
        self.run_slices()
        self.assertEqual((answered(answer).opaque, served), (7, [connection]))
        answered(waiting(connection, Command(11)))
        self.assertEqual(self.compiler.compiled, 2)
