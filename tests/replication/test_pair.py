"""A slave of ours and a master of ours, over stores in memory."""

from __future__ import annotations

import random

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.replication.master import ReplicaServer
from rocketbroker.replication.slave import MasterLink
from rocketbroker.store.message_store import Store
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.network import MemoryNetwork
from rocketbroker.testing.replicas import ScriptedMembership
from rocketbroker.testing.threads import at_once
from tests.store.stores import SEGMENT, bodies, opened, options, put

PORT = 10912


def log_of(store: Store, begin: int) -> bytes:
    """All bytes of a store's log from a position on."""
    found = b""
    while begin + len(found) < store.published_position:
        piece = store.raw_log.read(begin + len(found), 1 << 20)
        assert piece, "a hole"
        found += piece
    return found


class PairTests(SynchronousTestCase):
    """Logs that are, or are not, the same."""

    def setUp(self) -> None:
        self.network = MemoryNetwork()
        self.random = random.Random(17)
        self.master = opened()
        self.disk = MemoryDisk()
        self.slave = opened(self.disk)
        self.addCleanup(self.master.close)
        self.serve()
        self.follow()

    def serve(self) -> None:
        """Listen for slaves."""
        self.server = ReplicaServer(
            self.network,
            self.master,
            options(),
            at_once,
            lambda: 0,
            ScriptedMembership("127.0.0.1"),
        )
        self.server.listen(PORT)

    def follow(self) -> None:
        """Begin to follow."""
        self.link = MasterLink(self.network, self.slave, options(), lambda: 0)
        self.link.follow(f"127.0.0.1:{PORT}")
        self.link.start()
        self.network.settle()

    def restart(self) -> None:
        """Stop the slave, and start it again."""
        self.link.stop()
        self.network.settle()
        self.slave.close()
        self.slave = opened(self.disk)
        self.follow()

    def send(self, count: int, most: int = 9000) -> None:
        """Append messages to the master's log."""
        queue = self.master.queue("T", 0)
        for _ in range(count):
            put(self.master, queue, self.random.randbytes(self.random.randrange(most)))
            self.server.appended()
            if self.random.random() < 0.5:
                self.network.settle()
        self.network.settle()

    def same(self) -> None:
        """The slave has what the master has, and readers find it."""
        self.assertEqual(self.link.problem, "")
        begin = self.slave.min_position
        self.assertEqual(self.slave.published_position, self.master.published_position)
        self.assertEqual(log_of(self.slave, begin), log_of(self.master, begin))
        while self.slave.dispatch(1000):
            pass
        ours, theirs = (
            bodies(store, store.queue("T", 0)) for store in (self.slave, self.master)
        )
        self.assertEqual(ours, theirs[len(theirs) - len(ours) :])

    def test_follows(self) -> None:
        """The slave's log becomes the master's, fillers included, however the stream
        is cut; also after it has been away."""
        for cut in (None, 777, 1 << 14):
            self.network.max_bytes = cut
            self.send(40)
            self.same()
            self.assertEqual(self.server.acked(2), self.master.published_position)
            self.restart()
            self.same()
        self.assertGreater(self.master.published_position, 6 * SEGMENT)
        self.assertEqual(self.slave.min_position, 0)

    def test_late(self) -> None:
        """A slave without a log begins with the master's last segment."""
        self.link.stop()
        self.send(60)
        self.follow()
        self.same()
        self.send(60)
        self.same()
        self.assertGreater(self.slave.min_position, 0)

    def test_away(self) -> None:
        """What was appended meanwhile is sent when the slave is back."""
        self.send(5)
        self.link.stop()
        self.network.settle()
        self.send(60)
        self.follow()
        self.same()

    def test_longer(self) -> None:
        """An old master that has more than the new one does not follow, and keeps what
        it has; it does when the rest is cut off."""
        self.send(5)
        end = self.master.published_position
        self.link.stop()
        while self.slave.dispatch(1000):
            pass
        put(self.slave, self.slave.queue("T", 0), b"nobody else has this")
        longer = self.slave.published_position
        self.follow()
        for _ in range(3):
            self.network.pump([1] * 6)
        self.assertIn(
            f"the master's log ends at {end}, and this broker's at {longer}",
            self.link.problem,
        )
        self.send(3)
        self.network.pump([1] * 6)
        self.assertIn(
            f"the logs differ from the message at {end} on, and this broker's ends at "
            f"{longer}. If the master's messages are the ones to keep, cut this "
            "broker's log off there",
            self.link.problem,
        )
        self.assertEqual(self.slave.published_position, longer)
        self.assertEqual(self.server.acked(2), -1)

    def test_ends_differ(self) -> None:
        """Sends that wait are not freed by a slave whose log only is as long."""
        self.link.stop()
        self.network.settle()
        put(self.slave, self.slave.queue("T", 0), bytes(50000))
        self.send(20)
        self.assertGreater(self.master.published_position, 50000)
        self.follow()
        self.assertIn("the logs differ ", self.link.problem)
        self.assertEqual(self.server.acked(2), -1)

    def test_far_apart(self) -> None:
        """Logs that part segments before their ends are compared until it is known
        where."""
        self.send(20)
        self.link.stop()
        self.network.settle()
        end = self.slave.published_position
        queue = self.slave.queue("T", 0)
        while self.slave.dispatch(1000):
            pass
        for _ in range(80):
            put(self.slave, queue, bytes(5000))
        self.send(120)
        self.follow()
        for _ in range(4):
            self.network.pump([1] * 6)
        self.assertIn(
            f"the logs differ from the message at {end} on, and this broker's ends at "
            f"{self.slave.published_position}",
            self.link.problem,
        )
