"""Clients that come and go, in the log."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.clients.members import Member, MemberLog
from rocketbroker.remoting.cooperative_tasks import Slices
from rocketbroker.testing.connections import RecordedConnection
from tests.broker.rig import logged


class MemberLogTests(SynchronousTestCase):
    """Two clients come, one goes."""

    def setUp(self) -> None:
        """A log without lines."""
        self.clock = Clock()
        self.slices = Slices(self.clock)
        self.log = MemberLog(self.slices)

    def come_and_go(self) -> None:
        """Two come, one goes."""
        members = [
            Member(RecordedConnection(port=port), f"c{port}", "JAVA", 479, 0.0)
            for port in (1, 2)
        ]
        self.log.joined("consumer", "G", members[0], 1)
        self.log.joined("producer", "P", members[1], 7)
        self.log.left("consumer", "G", members[0], 0, "it unregistered")

    LINES = (
        "'c1' at 127.0.0.1:1 (JAVA) joined consumer group 'G', members now: 1",
        "'c2' at 127.0.0.1:2 (JAVA) joined producer group 'P', members now: 7",
        "'c1' at 127.0.0.1:1 left consumer group 'G', members now: 0; it unregistered",
    )

    def test_slices(self) -> None:
        """Lines are logged in slices after the turn that brought them, in order; later
        ones too."""
        self.assertEqual(logged(self.come_and_go), [])
        self.assertEqual(logged(lambda: self.clock.advance(0)), [*self.LINES])
        self.come_and_go()
        self.assertEqual(logged(lambda: self.clock.advance(0)), [*self.LINES])
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_stop(self) -> None:
        """Nothing is lost when the broker stops."""
        self.come_and_go()
        self.assertEqual(logged(self.slices.stop), [*self.LINES])
        self.come_and_go()
        self.assertEqual(logged(lambda: self.clock.advance(0)), [*self.LINES])

    def test_long(self) -> None:
        """Names are cut, as clients choose them."""
        client = Member(RecordedConnection(port=1), "c" * 1000, "JAVA", 479, 0.0)
        self.log.joined("consumer", "G" * 1000, client, 1)
        (line,) = logged(lambda: self.clock.advance(0))
        self.assertLess(len(line), 700)
