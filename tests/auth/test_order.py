"""The order of entries that match a request."""

from __future__ import annotations

from itertools import permutations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.auth.entries import Entry
from rocketbroker.auth.order import first
from rocketbroker.auth.wanted import Release
from tests.auth.policy_samples import entry

#: From the closest on.
CLOSENESS = (
    entry("Topic:orders", "All", "Deny"),
    entry("Topic:orders", "All"),
    entry("Topic:orde*", "All", "Deny"),
    entry("Topic:orde*", "All"),
    entry("Topic:o*", "All", "Deny"),
    entry("Topic:*", "All"),
    entry("*", "All", "Deny"),
    entry("*", "All"),
)


class NewOrderTests(SynchronousTestCase):
    """The order of 5.4."""

    def test_closestIsFirst(self) -> None:
        """Whatever stands behind it in the list, and in whichever order."""
        for at in range(len(CLOSENESS) - 2):
            for some in permutations(CLOSENESS[at : at + 3]):
                self.assertIs(first(some, Release.V5_4), CLOSENESS[at])

    def test_storedOrder(self) -> None:
        """Of equals, the one that was stored first."""
        one, other = entry("Topic:T", "Pub"), entry("Topic:T", "Sub")
        self.assertIs(first([one, other], Release.V5_4), one)
        self.assertIs(first([other, one], Release.V5_4), other)


class OldOrderTests(SynchronousTestCase):
    """The order of 5.3, as its sort of lists gives it."""

    def first(self, *entries: Entry) -> int:
        """The place of the entry that decides."""
        return entries.index(first(entries, Release.V5_3))

    def test_shorterPrefixesAreFirst(self) -> None:
        """In whichever order they are stored."""
        long, short = entry("Topic:orders*", "All"), entry("Topic:o*", "All", "Deny")
        self.assertEqual(self.first(long, short), 1)
        self.assertEqual(self.first(short, long), 0)

    def test_allowIsFirst(self) -> None:
        """Of equals, the one that allows."""
        for text in ("Topic:T", "Topic:T*", "Topic:*", "*"):
            deny, allow = entry(text, "All", "Deny"), entry(text, "All")
            self.assertEqual(self.first(deny, allow), 1)
            self.assertEqual(self.first(allow, deny), 0)

    def test_kindsBeforeAnything(self) -> None:
        """An entry about topics is before one about everything."""
        kind, anything = entry("Topic:*", "All", "Deny"), entry("*", "All")
        self.assertEqual(self.first(anything, kind), 1)
        self.assertEqual(self.first(kind, anything), 0)

    def test_namesAndPrefixes(self) -> None:
        """Each is before the other: the one that was stored later wins."""
        name, prefix = entry("Topic:orders", "All"), entry("Topic:o*", "All")
        self.assertEqual(self.first(name, prefix), 1)
        self.assertEqual(self.first(prefix, name), 1)

    def test_allNames(self) -> None:
        """All names, stored later, win over a name that denies if they allow, and
        lose where they are stored before."""
        name, every = entry("Topic:orders", "All", "Deny"), entry("Topic:*", "All")
        self.assertEqual(self.first(name, every), 1)
        self.assertEqual(self.first(every, name), 1)

    def test_oneEntry(self) -> None:
        """One alone decides."""
        self.assertEqual(self.first(entry("*", "All")), 0)

    def test_several(self) -> None:
        """Lists that go down, up, and both ways, as RocketMQ sorted them."""
        p1, p2, p3 = (entry(f"Topic:{'o' * n}*", "All") for n in (1, 2, 3))
        for some in permutations((p1, p2, p3)):
            self.assertIs(some[self.first(*some)], p1)
        name = entry("Topic:ooo", "All")
        self.assertEqual(self.first(p3, p2, name, p1), 3)
        self.assertEqual(self.first(p1, p2, p3, name), 3)
