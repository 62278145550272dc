"""Policies of ACL 2.0."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.auth.entries import (
    Acl,
    Action,
    Effect,
    Entry,
    Policy,
    PolicyType,
    UnknownSource,
    is_inside,
    is_source,
    named,
)
from rocketbroker.auth.resources import topic
from tests.auth.policy_samples import entry, resource

HERE = "10.0.0.1"


class EntryTests(SynchronousTestCase):
    """Which requests an entry is about."""

    def matches(self, one: Entry, *actions: Action, source: str = HERE) -> bool:
        """Whether it is about these actions on the topic T."""
        return one.matches(topic("T"), actions, source)

    def test_oneActionIsEnough(self) -> None:
        """One of the actions that would do; C{All} stands for each."""
        self.assertTrue(self.matches(entry("Topic:T", "Pub"), Action.PUB, Action.GET))
        self.assertFalse(self.matches(entry("Topic:T", "Pub"), Action.SUB))
        self.assertTrue(self.matches(entry("Topic:T", "All"), Action.SUB))
        self.assertTrue(self.matches(entry("Topic:T", "Pub"), Action.ANY))
        self.assertFalse(self.matches(entry("Topic:U", "All"), Action.SUB))

    def test_noActions(self) -> None:
        """An entry without actions is about nothing."""
        self.assertFalse(self.matches(Entry(topic("T"), (), Effect.ALLOW), Action.ANY))

    def test_sources(self) -> None:
        """With sources, only clients from there; without an address nobody can say."""
        one = entry("Topic:T", "All", sources=("10.0.7.0/24", HERE))
        self.assertTrue(self.matches(one, Action.SUB))
        self.assertTrue(self.matches(one, Action.SUB, source="10.0.7.99"))
        self.assertFalse(self.matches(one, Action.SUB, source="10.0.8.1"))
        with self.assertRaises(UnknownSource):
            self.matches(one, Action.SUB, source="")
        self.assertTrue(self.matches(entry("Topic:T", "All"), Action.SUB, source=""))

    def test_words(self) -> None:
        """What operators are shown of it."""
        one = entry("topic:T*", "Pub,sub", "Deny", sources=("10.0.0.0/8",))
        self.assertEqual(str(one), "Deny Pub,Sub on Topic:T* from 10.0.0.0/8")
        self.assertEqual(str(entry("*", "All")), "Allow All on *")


class SourceTests(SynchronousTestCase):
    """Addresses and networks."""

    def test_inside(self) -> None:
        """The same address in any form, or one of the network."""
        for address, pattern, inside in (
            ("10.0.0.1", "10.0.0.1", True),
            ("10.0.0.1", "10.0.0.2", False),
            ("10.0.0.1", "10.0.0.0/31", True),
            ("10.0.0.2", "10.0.0.1/31", False),
            ("10.0.0.1", "10.9.9.9/8", True),
            ("::1", "0:0:0:0:0:0:0:1", True),
            ("[::1]", "::1", True),
            ("fe80::1", "fe80::/10", True),
            ("::ffff:10.0.0.1", "10.0.0.0/8", True),
            ("10.0.0.1", "::/0", True),
            ("fe80::1", "0.0.0.0/0", False),
            ("unix", "10.0.0.1", False),
        ):
            self.assertEqual(
                is_inside(address, pattern), inside, f"{address} {pattern}"
            )

    def test_isSource(self) -> None:
        """An address, or a network with the number of its bits."""
        for text in ("10.0.0.1", "::1", "10.0.0.9/8", "fe80::/10"):
            self.assertTrue(is_source(text), text)
        for text in (
            "",
            "host",
            "10.0.0.1/33",
            "10.0.0.0/255.0.0.0",
            "a/8",
            "10.0.0.1/",
        ):
            self.assertFalse(is_source(text), text)


class AclTests(SynchronousTestCase):
    """Edits of policies."""

    CUSTOM = Policy(
        PolicyType.CUSTOM, (entry("Topic:T", "Pub"), entry("Topic:U", "Pub"))
    )

    def test_knownResource(self) -> None:
        """An entry about a known resource takes its place; others come behind."""
        changed, new = entry("Topic:T", "Sub", "Deny"), entry("Topic:T*", "All")
        found = self.CUSTOM.with_entries([changed, new])
        self.assertEqual(found.entries, (changed, self.CUSTOM.entries[1], new))

    def test_policyTypes(self) -> None:
        """Entries go to the policy of their type, the first one of several."""
        default = Policy(PolicyType.DEFAULT, (entry("Topic:*", "Sub"),))
        acl = Acl("User:bob", (self.CUSTOM,))
        new = Policy(PolicyType.CUSTOM, (entry("Group:G", "Sub"),))
        found = acl.with_policies([default, new])
        self.assertEqual([p.type.value for p in found.policies], ["Custom", "Default"])
        self.assertEqual(len(found.policies[0].entries), 3)
        self.assertEqual(found.policy(PolicyType.DEFAULT), default)
        self.assertIsNone(acl.policy(PolicyType.DEFAULT))

    def test_without(self) -> None:
        """An entry is taken out, and with the last one its policy."""
        acl = Acl("User:bob", (self.CUSTOM,))
        left = acl.without(PolicyType.CUSTOM, resource("Topic:T"))
        self.assertEqual(left.policies[0].entries, self.CUSTOM.entries[1:])
        self.assertEqual(acl.without(PolicyType.CUSTOM, resource("Topic:X")), acl)
        self.assertEqual(acl.without(PolicyType.DEFAULT, resource("Topic:T")), acl)
        self.assertEqual(
            left.without(PolicyType.CUSTOM, resource("Topic:U")).policies, ()
        )

    def test_named(self) -> None:
        """A member by its name in any case."""
        self.assertIs(named(Effect, "DENY"), Effect.DENY)
        self.assertIsNone(named(Effect, "never"))
        self.assertIsNone(named(Effect, None))
