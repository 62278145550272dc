"""What is found in one group: limits, and what clients may say."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.clients.subscription_digest import MOST_CHARACTERS, TOO_LONG
from rocketbroker.broker.diagnostics.group_problems import (
    MOST_NAMED,
    MOST_OF_GROUP,
    MOST_SHOWN,
    MOST_SIDES,
    Problem,
    problems_of,
)
from tests.broker.diagnostics.test_group_diagnosis import World, peers


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
        return problems_of("G", group, *tables, self.world.elsewhere, {})[0]

    def test_named(self) -> None:
        """All members are counted, the first of them named."""
        *many, other = peers(MOST_NAMED + 2)
        for connection in many:
            self.world.beat(connection, {"T": "a"})
        self.world.beat(other, {"T": "b"})
        (problem,) = self.found()
        one, two = problem.sides
        self.assertEqual((one.count, len(one.members)), (MOST_NAMED + 1, MOST_NAMED))
        self.assertEqual((two.count, len(two.members)), (1, 1))

    def test_sides(self) -> None:
        """No more than so many sides."""
        for number, connection in enumerate(peers(MOST_SIDES + 3)):
            self.world.beat(connection, {"T": f"t{number}"})
        (problem,) = self.found()
        self.assertEqual(len(problem.sides), MOST_SIDES)

    def test_topics(self) -> None:
        """No more than so many problems."""
        (one,) = peers(1)
        self.world.beat(one, {f"x{number}": "*" for number in range(80)})
        self.assertEqual(len(self.found()), MOST_OF_GROUP)

    def test_long(self) -> None:
        """What is too long to be kept is known to differ."""
        one, two = peers(2)
        self.world.beat(one, {"T": "a" * MOST_CHARACTERS})
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
        self.assertEqual(one_side.what, "a" * MOST_SHOWN + "... (1000 characters)")
        self.assertEqual(two_side.what, "?")
