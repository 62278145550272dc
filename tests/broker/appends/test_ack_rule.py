"""Tests of L{rocketbroker.broker.appends.ack_rule}."""

from __future__ import annotations

import attrs
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.appends.ack_rule import NOT_ENOUGH, AckRule
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.store import StoreOptions
from rocketbroker.testing.replicas import ScriptedReplicas
from tests.broker.rig import settings_of


class AckRuleTests(SynchronousTestCase):
    """How many copies a send needs."""

    def setUp(self) -> None:
        """Two slaves, one of which is too far behind."""
        self.replicas = ScriptedReplicas(max_gap=100)
        self.replicas.report(1000, 900)
        self.alive = 3

    def rule(self, acting: bool = False, **settings: object) -> AckRule:
        """The rule of a synchronous master."""
        given: dict[str, object] = {"broker_role": "SYNC_MASTER", **settings}
        store = StoreOptions(**given)  # type: ignore[arg-type]
        broker = BrokerOptions(enable_slave_acting_master=acting)
        return AckRule(
            settings_of(store, broker), self.replicas.in_sync, lambda: self.alive
        )

    def copies(self, rule: AckRule) -> int:
        """What it says when the log ends at 1000."""
        return rule.copies(1000) if rule.waits else 1

    def test_plain(self) -> None:
        """A synchronous master waits for as many as inSyncReplicas says, whoever is
        there; with one it waits for nobody."""
        for count in (1, 2, 5):
            rule = self.rule(in_sync_replicas=count, min_in_sync_replicas=3)
            self.assertEqual((rule.waits, self.copies(rule)), (count > 1, count))
        self.alive = 1
        auto = self.rule(in_sync_replicas=3, enable_auto_in_sync_replicas=True)
        self.assertEqual(self.copies(auto), 3)

    def test_otherRoles(self) -> None:
        """Nobody else waits for copies."""
        for role in ("ASYNC_MASTER", "SLAVE"):
            rule = self.rule(broker_role=role, in_sync_replicas=3, acting=True)
            self.assertFalse(rule.waits)

    def test_refuses(self) -> None:
        """Where a slave may act as master, sends that cannot have their copies are
        refused: those in sync count, and of them no more than are alive."""
        self.assertEqual(self.copies(self.rule(True, in_sync_replicas=2)), 2)
        self.assertEqual(self.copies(self.rule(True, in_sync_replicas=3)), NOT_ENOUGH)
        self.replicas.report(1000, 901)
        self.assertEqual(self.copies(self.rule(True, in_sync_replicas=3)), 3)
        self.alive = 2
        self.assertEqual(self.copies(self.rule(True, in_sync_replicas=3)), NOT_ENOUGH)

    def test_auto(self) -> None:
        """With enableAutoInSyncReplicas they need as many as there are, within
        minInSyncReplicas and inSyncReplicas."""
        rule = self.rule(
            True,
            in_sync_replicas=3,
            min_in_sync_replicas=2,
            enable_auto_in_sync_replicas=True,
        )
        self.assertEqual(self.copies(rule), 2)
        self.replicas.report(1000, 1000, 1000)
        self.assertEqual(self.copies(rule), 3)
        self.replicas.report()
        self.assertEqual(self.copies(rule), NOT_ENOUGH)

    def test_autoAlone(self) -> None:
        """If one is enough, a master that is alone waits for nobody."""
        rule = self.rule(True, in_sync_replicas=3, enable_auto_in_sync_replicas=True)
        self.replicas.report()
        self.assertEqual(self.copies(rule), 1)

    def test_least(self) -> None:
        """minInSyncReplicas wins over an inSyncReplicas that is less."""
        rule = self.rule(
            True, min_in_sync_replicas=2, enable_auto_in_sync_replicas=True
        )
        self.assertEqual(self.copies(rule), 2)
        self.replicas.report()
        self.assertEqual(self.copies(rule), NOT_ENOUGH)

    def test_configure(self) -> None:
        """Other settings are obeyed at once."""
        rule = self.rule()
        settings = settings_of(
            attrs.evolve(StoreOptions(), broker_role="SYNC_MASTER", in_sync_replicas=2)
        )
        rule.configure(settings)
        self.assertEqual(self.copies(rule), 2)
