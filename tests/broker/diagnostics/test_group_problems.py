"""The problems of one group: limits, and texts of clients."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.clients.subscription_digest import MAX_CHARACTERS, TOO_LONG
from rocketbroker.broker.diagnostics.group_problems import (
    MAX_NAMED,
    MAX_OF_GROUP,
    MAX_SHOWN,
    MAX_SIDES,
    Problem,
    problems_of,
)
from tests.broker.diagnostics.world import World, peers


class GroupProblemsTests(SynchronousTestCase):
    """L{problems_of}."""

    def setUp(self) -> None:
        """A broker without clients."""
        self.world = World()

    def found(self) -> list[Problem]:
        """The problems of group G."""
        group = self.world.registry.group("G")
        assert group is not None
        tables = self.world.topics, self.world.groups
        return problems_of("G", group, *tables, self.world.route_cache, {})[0]

    def test_named(self) -> None:
        """All members are counted, the first of them named."""
        *many, other = peers(MAX_NAMED + 2)
        for connection in many:
            self.world.beat(connection, {"T": "a"})
        self.world.beat(other, {"T": "b"})
        (problem,) = self.found()
        one, two = problem.sides
        self.assertEqual((one.count, len(one.members)), (MAX_NAMED + 1, MAX_NAMED))
        self.assertEqual((two.count, len(two.members)), (1, 1))

    def test_sides(self) -> None:
        """No more than so many sides."""
        for number, connection in enumerate(peers(MAX_SIDES + 3)):
            self.world.beat(connection, {"T": f"t{number}"})
        (problem,) = self.found()
        self.assertEqual(len(problem.sides), MAX_SIDES)

    def test_topics(self) -> None:
        """No more than so many problems."""
        (one,) = peers(1)
        self.world.beat(one, {f"x{number}": "*" for number in range(80)})
        self.assertEqual(len(self.found()), MAX_OF_GROUP)

    def test_long(self) -> None:
        """Expressions too long to be kept are known to differ."""
        one, two = peers(2)
        self.world.beat(one, {"T": "a" * MAX_CHARACTERS})
        self.world.beat(two, {"T": "b"})
        (problem,) = self.found()
        self.assertEqual(problem.subject, TOO_LONG)

    def test_shown(self) -> None:
        """Long expressions are cut; what cannot be encoded is replaced."""
        one, two = peers(2)
        self.world.beat(one, {"T": "a" * 1000})
        self.world.beat(two, {"T": "\ud800"})
        (problem,) = self.found()
        one_side, two_side = problem.sides
        self.assertEqual(one_side.what, "a" * MAX_SHOWN + "... (1000 characters)")
        self.assertEqual(two_side.what, "?")
