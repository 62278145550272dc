"""Slaves that a test has made up."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from rocketbroker.replication.interfaces import IReplica, IReplicaServer
from rocketbroker.testing.replicas import ScriptedMembership, ScriptedReplicas


class ReplicasTests(SynchronousTestCase):
    """They report what they are told to."""

    def test_interfaces(self) -> None:
        """They look like those of a real master."""
        replicas = ScriptedReplicas()
        replicas.report(7)
        verifyObject(IReplicaServer, replicas)
        verifyObject(IReplica, replicas.replicas[0])

    def test_copies(self) -> None:
        """The master is one copy; the slave that has most of the log is the second."""
        replicas = ScriptedReplicas()
        self.assertEqual(replicas.acked(2), -1)
        replicas.report(100, 300, 200)
        self.assertEqual([replicas.acked(n) for n in (2, 3, 4, 5)], [300, 200, 100, -1])

    def test_watch(self) -> None:
        """Who watches hears of reports, and of slaves that have gone."""
        replicas = ScriptedReplicas()
        heard: list[int] = []
        replicas.watch(lambda: heard.append(len(replicas.replicas)))
        replicas.report(100, 300)
        replicas.report(100)
        self.assertEqual(heard, [2, 1])

    def test_inSync(self) -> None:
        """Who is less than the gap behind is in sync, and so is the master."""
        replicas = ScriptedReplicas(max_gap=100)
        replicas.report(900, 901, 1000)
        self.assertEqual(replicas.in_sync(1000), 3)

    def test_life(self) -> None:
        """It listens where it is told to, and lets all slaves go when it stops."""
        replicas = ScriptedReplicas()
        self.assertEqual((replicas.listen(10912), replicas.port), (10912, 10912))
        replicas.appended()
        replicas.report(1)
        self.successResultOf(replicas.stop())
        self.assertEqual((replicas.notices, list(replicas.replicas)), (1, []))


class MembershipTests(SynchronousTestCase):
    """Who is a slave's host is what a test says."""

    def test_hosts(self) -> None:
        """A change is told, and whether settings have led to it."""
        membership = ScriptedMembership("10.0.0.1")
        heard: list[bool] = []
        membership.watch(heard.append)
        self.assertTrue(membership.is_slave("10.0.0.1"))
        membership.become("10.0.0.2")
        membership.become(anew=True)
        self.assertFalse(membership.is_slave("10.0.0.1"))
        self.assertEqual(heard, [False, True])
        membership.look_soon()
        self.assertEqual(membership.looks, 1)
