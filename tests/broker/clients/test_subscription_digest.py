"""Values that say what a member subscribes to."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.clients.subscription_digest import (
    MAX_CHARACTERS,
    TOO_LONG,
    digest_of,
    expressions,
)
from rocketbroker.wire.bodies.heartbeats import SubscriptionData


def wish(topic: str, text: str = "*", kind: str = "TAG") -> SubscriptionData:
    """A subscription."""
    return SubscriptionData(topic=topic, sub_string=text, expression_type=kind)


class WantsTests(SynchronousTestCase):
    """Equal if and only if the same is wanted."""

    def test_same(self) -> None:
        """Order, spaces, versions and retry topics make no difference."""
        one = digest_of([wish("T", "b||a"), wish("U"), wish("%RETRY%G")])
        two = digest_of([wish("U", ""), wish("T", " a || b || a ")])
        self.assertEqual(one, two)
        self.assertEqual(expressions(one), {"T": "a || b", "U": "*"})

    def test_other(self) -> None:
        """Another tag, another type and another topic do."""
        values = [
            digest_of([wish("T", "a")]),
            digest_of([wish("T", "a||b")]),
            digest_of([wish("T", "a", "SQL92")]),
            digest_of([wish("U", "a")]),
            digest_of([]),
        ]
        self.assertEqual(len(set(values)), len(values))
        self.assertEqual(expressions(values[2]), {"T": "SQL92: a"})
        self.assertEqual(expressions(values[4]), {})

    def test_edge(self) -> None:
        """At the limit it is kept whole; one more character and only a digest is."""
        room = MAX_CHARACTERS - len(digest_of([wish("T", "a")])) + 1
        exact = digest_of([wish("T", "a" * room)])
        self.assertEqual(len(exact), MAX_CHARACTERS)
        self.assertEqual(expressions(exact), {"T": "a" * room})
        longer = digest_of([wish("T", "a" * (room + 1))])
        self.assertEqual(list(expressions(longer)), [TOO_LONG])
        self.assertNotEqual(longer, digest_of([wish("T", "a" * (room + 2))]))

    def test_strange(self) -> None:
        """Characters that no encoding has are no error."""
        value = digest_of([wish("\ud800", "\x00")])
        self.assertEqual(expressions(value), {"\ud800": "\x00"})
