"""The filters of groups."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker import filters
from rocketbroker.broker.filters import Filters
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.wire.heartbeats import SubscriptionData

DAY_MS = 86_400_000


class FilterCase(SynchronousTestCase):
    """A table that is empty, at 1000 ms."""

    def setUp(self) -> None:
        """No filters."""
        self.now = 1000
        self.filters = self.make()

    def make(self, **options: object) -> Filters:
        """A table with those settings."""
        settings = BrokerOptions(**options)  # type: ignore[arg-type]
        return Filters(settings, lambda: self.now)

    def register(
        self,
        expression: str,
        version: int = 1,
        group: str = "G",
        topic: str = "T",
        kind: str = "SQL92",
    ) -> filters.Filter | None:
        """A heartbeat with one subscription; what is known then."""
        self.filters.register(
            group,
            [
                SubscriptionData(
                    topic=topic,
                    sub_string=expression,
                    sub_version=version,
                    expression_type=kind,
                )
            ],
        )
        return self.filters.get(topic, group)

    def known(self, expression: str, version: int = 1) -> filters.Filter:
        """The same, for what is taken."""
        found = self.register(expression, version)
        assert found is not None
        return found


class RegisterTests(FilterCase):
    """What heartbeats bring."""

    def test_new(self) -> None:
        """A filter is born when its heartbeat comes, and filters."""
        found = self.known("a > 5", 7)
        self.assertEqual(
            (found.group, found.topic, found.kind, found.expression),
            ("G", "T", "SQL92", "a > 5"),
        )
        self.assertEqual((found.version, found.born_ms, found.dead_ms), (7, 1000, 0))
        assert found.wanted.matches is not None
        self.assertTrue(found.wanted.matches(b"a\x016\x02"))
        self.assertFalse(found.wanted.matches(b"a\x014\x02"))
        self.assertFalse(found.wanted.matches(b"a\x01text\x02"))
        self.assertFalse(found.wanted.matches(b"\xff\xfe"))
        self.assertEqual(list(self.filters.of_topic("T")), [found])

    def test_tags(self) -> None:
        """Tags make none, nor does nothing."""
        self.assertIsNone(self.register("a", kind="TAG"))
        self.assertIsNone(self.register(""))

    def test_sameExpression(self) -> None:
        """A newer version of the same expression is no new filter."""
        first = self.known("a > 5", 1)
        self.now = 2000
        second = self.known("a > 5", 2)
        self.assertIs(second, first)
        self.assertEqual((second.version, second.born_ms), (2, 1000))

    def test_otherExpression(self) -> None:
        """Another expression is born anew."""
        self.known("a > 5", 1)
        self.now = 2000
        found = self.known("a > 6", 2)
        self.assertEqual((found.expression, found.born_ms), ("a > 6", 2000))

    def test_older(self) -> None:
        """What is not newer is not taken."""
        self.known("a > 5", 2)
        self.assertEqual(self.known("a > 6", 1).expression, "a > 5")
        self.assertEqual(self.known("a > 6", 2).expression, "a > 5")

    def test_senseless(self) -> None:
        """One that does not compile is none, and takes the place of one that did."""
        self.assertIsNone(self.register("a >"))
        self.known("a > 5", 2)
        self.assertIsNone(self.register("a >", 3))
        self.assertIsNone(self.register("a", 4, kind="XPATH"))
        self.assertEqual(self.filters.refused, 3)
        self.assertEqual(self.filters.all(), [])
        self.assertEqual(len(self.flushLoggedErrors()), 0)


class DeathTests(FilterCase):
    """Groups that go."""

    def test_gone(self) -> None:
        """A group that is not there any more leaves a dead filter, which lives again
        when it comes back, at the age that it has."""
        found = self.known("a > 5")
        self.filters.look(lambda group, topic: True)
        self.assertEqual(found.dead_ms, 0)
        self.now = 3000
        self.filters.look(lambda group, topic: False)
        self.now = 4000
        self.filters.look(lambda group, topic: False)
        self.assertEqual(found.dead_ms, 3000)
        again = self.known("a > 5")
        self.assertIs(again, found)
        self.assertEqual((again.dead_ms, again.born_ms), (0, 1000))

    def test_forgotten(self) -> None:
        """One that has been dead for filterDataCleanTimeSpan is forgotten."""
        self.known("a > 5")
        self.filters.look(lambda group, topic: False)
        self.now += DAY_MS
        self.filters.look(lambda group, topic: False)
        self.assertIsNotNone(self.filters.get("T", "G"))
        self.now += 1
        self.filters.look(lambda group, topic: False)
        self.assertIsNone(self.filters.get("T", "G"))
        self.assertEqual(self.filters.all(), [])

    def test_mostCharacters(self) -> None:
        """All expressions together have a limit; the dead go first, then none is
        taken."""
        long = "a = '" + "x" * 60_000 + "'"
        most = filters.MOST_CHARACTERS // (len(long) + filters.OVERHEAD)
        for number in range(most):
            self.assertIsNotNone(self.register(long, group=f"G{number}"))
        self.assertIsNone(self.register(long, group="H"))
        self.assertEqual(self.filters.refused, 1)
        self.filters.look(lambda group, topic: group != "G5")
        self.assertIsNotNone(self.register(long, group="H"))
        self.assertIsNone(self.filters.get("T", "G5"))
        self.assertEqual(len(self.filters.all()), most)
