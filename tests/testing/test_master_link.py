"""A link to a master that a test plays."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from rocketbroker.replication.interfaces import IMasterLink
from rocketbroker.testing.master_link import ScriptedLink


class LinkTests(SynchronousTestCase):
    """It gets what it is told to."""

    def test_interface(self) -> None:
        """It looks like a real one."""
        verifyObject(IMasterLink, ScriptedLink())

    def test_life(self) -> None:
        """It follows once it is started and knows a master, and ends with the stop."""
        link = ScriptedLink()
        self.assertEqual(link.state, "READY")
        link.follow("10.0.0.1:10912")
        self.assertEqual(link.state, "READY")
        link.start()
        self.assertEqual((link.state, link.master), ("TRANSFER", "10.0.0.1:10912"))
        link.follow(None)
        self.assertEqual(link.state, "READY")
        self.successResultOf(link.stop())
        self.assertEqual(link.state, "SHUTDOWN")

    def test_receive(self) -> None:
        """Who watches hears of what has come."""
        link = ScriptedLink()
        heard: list[int] = []
        link.watch(lambda: heard.append(link.received))
        link.start()
        link.receive(100)
        link.receive(50)
        self.assertEqual(heard, [100, 150])
