"""Tests of L{rocketbroker.replication.master}."""

from __future__ import annotations

from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import ClientFactory
from twisted.logger import capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from rocketbroker.config.store import StoreOptions
from rocketbroker.errors import ConfigurationError
from rocketbroker.remoting.listener import descriptor_limit
from rocketbroker.remoting.plain_port import few_of
from rocketbroker.replication.interfaces import IReplica, IReplicaServer
from rocketbroker.replication.master import (
    FIRST_REPORT_SECONDS,
    WARM_BYTES,
    Replica,
    ReplicaServer,
)
from rocketbroker.testing.network import MemoryNetwork
from rocketbroker.testing.replicas import ScriptedMembership
from rocketbroker.testing.threads import Threads
from rocketbroker.wire.hastream import frames, report
from tests.replication.logs import SEGMENT, MemoryLog, Peer

PORT = 10912


class Dialling(ClientFactory):
    """Connects one slave."""

    def __init__(self, slave: Peer) -> None:
        self._slave = slave

    def buildProtocol(self, addr: IAddress | None) -> Peer:
        return self._slave


class MasterCase(SynchronousTestCase):
    """A master with some records in its log."""

    def setUp(self) -> None:
        self.network = MemoryNetwork()
        self.threads = Threads()
        self.log = MemoryLog(b"first", b"second")
        self.reports = 0
        self.membership = ScriptedMembership("127.0.0.1")
        self.serve()

    def serve(self, **changes: object) -> None:
        """Listen, with these settings."""
        given: dict[str, object] = {
            "mapped_file_size_commit_log": SEGMENT,
            **changes,
        }
        self.network.ports.pop(PORT, None)
        self.server = ReplicaServer(
            self.network,
            self.log,
            StoreOptions(**given),  # type: ignore[arg-type]  # tests name real ones
            self.threads,
            lambda: int(self.network.seconds() * 1000),
            self.membership,
        )
        self.server.watch(self.reported)
        self.server.listen(PORT)

    def reported(self) -> None:
        self.reports += 1

    def slave(self, position: int | None = None) -> Peer:
        """A slave that has connected, and has asked for the log from there on."""
        slave = Peer()
        self.network.connectTCP("localhost", PORT, Dialling(slave))
        self.network.settle()
        if position is not None:
            self.tell(slave, position)
        return slave

    def tell(self, slave: Peer, position: int) -> None:
        """Let a slave report."""
        assert slave.transport is not None
        slave.transport.write(report(position))
        self.network.settle()

    def put(self, *bodies: bytes) -> None:
        """Append, and let the turn end."""
        self.log.put(*bodies)
        self.server.appended()
        self.network.settle()

    def only(self) -> Replica:
        """The one slave that is connected."""
        (replica,) = self.server.replicas
        return replica


class SendingTests(MasterCase):
    """What a slave is sent, and when."""

    def test_interfaces(self) -> None:
        """Both objects have what a broker expects of them."""
        self.slave(0)
        verifyObject(IReplicaServer, self.server)
        verifyObject(IReplica, self.only())

    def test_mute(self) -> None:
        """A slave that has not reported is sent nothing."""
        slave = self.slave()
        self.put(b"third")
        self.network.advance(6)
        self.assertEqual(slave.heard, b"")
        self.assertEqual((self.only().acked, self.only().sent), (-1, -1))

    def test_position(self) -> None:
        """It is sent the log from the position that it reports first."""
        slave = self.slave(17)
        self.assertEqual(slave.heard, frames(17, self.log.data[17:], 32768))
        self.assertEqual(self.only().sent, self.log.published_position)
        self.assertEqual(self.only().acked, 17)

    def test_zero(self) -> None:
        """One that has nothing is sent the last segment."""
        self.log.put(bytes(SEGMENT - len(self.log.data) - 12), b"last")
        slave = self.slave(0)
        self.assertEqual(slave.heard, frames(SEGMENT, self.log.data[SEGMENT:], 32768))

    def test_new(self) -> None:
        """What is appended goes out after the turn, as one frame."""
        slave = self.slave(self.log.published_position)
        begin = self.log.published_position
        self.log.put(b"third")
        self.server.appended()
        self.log.put(b"fourth")
        self.server.appended()
        self.assertEqual(slave.heard, b"")
        self.network.settle()
        self.assertEqual(slave.heard, frames(begin, self.log.data[begin:], 32768))

    def test_pushed(self) -> None:
        """What a turn has appended goes out at its end, before the reactor's next
        round."""
        self.slave(self.log.published_position)
        self.log.put(b"third")
        self.server.push()
        self.assertEqual(self.only().sent, self.log.published_position)

    def test_frames(self) -> None:
        """A frame brings haTransferBatchSize at most, and ends with the segment."""
        self.log.put(bytes(SEGMENT), bytes(100))
        self.serve(ha_transfer_batch_size=1000)
        slave = self.slave(1)
        data = self.log.data
        wanted = frames(1, data[1:SEGMENT], 1000) + frames(
            SEGMENT, data[SEGMENT:], 1000
        )
        self.assertEqual(slave.heard, wanted)

    def test_several(self) -> None:
        """Each slave has its own position."""
        ahead, behind = self.slave(self.log.published_position), self.slave(17)
        self.put(b"third")
        data = self.log.data
        self.assertEqual(ahead.heard, frames(35, data[35:], 32768))
        self.assertEqual(
            behind.heard, frames(17, data[17:35], 32768) + frames(35, data[35:], 32768)
        )

    def test_full(self) -> None:
        """A slave that takes nothing has one piece in memory, and goes on later."""
        slave = self.slave(35)
        assert slave.transport is not None
        slave.transport.pauseProducing()  # type: ignore[attr-defined]  # it has it
        begin = self.log.published_position
        for _ in range(4):
            self.put(bytes(10000))
        self.assertEqual(self.only().sent, begin + 10012)
        slave.transport.resumeProducing()  # type: ignore[attr-defined]  # as above
        self.network.settle()
        self.assertEqual(self.only().sent, self.log.published_position)

    def test_heartbeat(self) -> None:
        """An idle slave hears the position that would be next, each five seconds."""
        slave = self.slave(35)
        self.network.pump([1] * 5)
        self.assertEqual(slave.heard, b"")
        self.network.pump([1])
        self.assertEqual(slave.taken(), frames(35, b"", 1))

    def test_silent(self) -> None:
        """One that reports nothing for 20 seconds is let go."""
        slave = self.slave(35)
        self.network.pump([1] * 20)
        self.assertFalse(slave.is_gone)
        self.network.pump([1, 0])
        self.assertTrue(slave.is_gone)
        self.assertEqual(self.server.replicas, [])

    def test_stopped(self) -> None:
        """Time in which this process did not run is no silence of theirs."""
        slave = self.slave(35)
        self.network.pump([60, 1, 1])
        self.assertFalse(slave.is_gone)

    def test_reporting(self) -> None:
        """One that reports is kept."""
        slave = self.slave(35)
        for _ in range(5):
            self.network.pump([1] * 6)
            self.tell(slave, 35)
        self.assertFalse(slave.is_gone)


class ProblemTests(MasterCase):
    """A slave that cannot be sent what it asks for."""

    def heartbeat_only(self, slave: Peer, position: int) -> None:
        """It gets heartbeats and nothing else, and is told of once."""
        self.put(b"third", bytes(100))
        self.network.pump([1] * 12)
        self.assertEqual(slave.heard, frames(position, b"", 1) * 2)
        self.assertEqual(len(self.flushLoggedErrors()), 0)

    def test_ahead(self) -> None:
        """One with a longer log is not sent what would make it a mixture, ever, and
        is no copy of what is appended."""
        slave = self.slave(60)
        self.tell(slave, 60)
        self.heartbeat_only(slave, 60)
        self.assertIn("up to 60, this broker only up to 35", self.only().problem)
        self.assertEqual(self.server.acked(2), -1)
        self.assertEqual(self.server.in_sync(self.log.published_position), 1)

    def test_behind(self) -> None:
        """One behind the first segment gets no data, and it shows."""
        self.log.min_position = SEGMENT
        slave = self.slave(17)
        self.heartbeat_only(slave, 17)
        self.assertIn(
            f"needs the log from 17 on, which begins at {SEGMENT}", self.only().problem
        )
        self.tell(slave, 17)
        self.assertEqual(self.server.acked(2), 17)

    def test_unreadable(self) -> None:
        """What the disk does not give is tried again each second."""
        self.log.broken = OSError(5, "Input/output error")
        slave = self.slave(17)
        self.assertIn("Input/output error", self.only().problem)
        self.log.broken = None
        self.network.advance(1)
        self.network.settle()
        self.assertEqual(self.only().problem, "")
        self.assertEqual(slave.heard, frames(17, self.log.data[17:], 32768))

    def test_nonsense(self) -> None:
        """A negative report is none."""
        slave = self.slave(-5)
        self.assertEqual((self.only().sent, slave.heard), (-1, b""))


class ColdTests(MasterCase):
    """Data for which the disk may have to work."""

    def setUp(self) -> None:
        super().setUp()
        self.log.put(*[bytes(SEGMENT - 12)] * (WARM_BYTES // SEGMENT + 1))
        self.log.cold = True

    def test_thread(self) -> None:
        """It is read in a thread, piece by piece; the end of the log is not cold."""
        slave = self.slave(17)
        self.put(b"new")
        self.assertEqual((len(self.threads.waiting), slave.heard), (1, b""))
        self.threads.run()
        self.network.settle()
        self.assertEqual(len(self.threads.waiting), 1)
        self.threads.run()
        self.network.settle()
        self.assertEqual(self.threads.waiting, [])
        self.assertEqual(self.only().sent, self.log.published_position)

    def test_gone(self) -> None:
        """A slave that goes meanwhile is sent nothing."""
        slave = self.slave(17)
        assert slave.transport is not None
        slave.transport.loseConnection()
        self.network.settle()
        self.threads.run()
        self.assertEqual(slave.heard, b"")

    def test_unreadable(self) -> None:
        """A thread that fails is the slave's problem, and tried again."""
        self.slave(17)
        self.log.broken = OSError(5, "Input/output error")
        self.threads.run()
        self.assertIn("Input/output error", self.only().problem)
        self.log.broken = None
        self.network.advance(1)
        self.threads.run()
        self.assertEqual(self.only().problem, "")


class FlowControlTests(MasterCase):
    """haFlowControlEnable, and the counters."""

    def test_off(self) -> None:
        """Without it all goes at once, and is counted."""
        self.log.put(bytes(20000))
        self.serve(max_ha_transfer_byte_in_second=1000)
        self.slave(17)
        self.assertEqual(self.only().sent, self.log.published_position)
        self.network.advance(1)
        self.assertEqual(
            self.only().bytes_per_second, self.log.published_position - 17 + 12
        )
        self.network.advance(1)
        self.assertEqual(self.only().bytes_per_second, 0)

    def test_on(self) -> None:
        """With it each second has its share, heads of frames included; to wait for the
        next one is no problem."""
        self.log.put(bytes(4000))
        self.serve(
            max_ha_transfer_byte_in_second=1000,
            ha_transfer_batch_size=500,
            ha_flow_control_enable=True,
        )
        slave = self.slave(17)
        sizes = []
        for _ in range(5):
            sizes.append(len(slave.taken()))
            self.assertEqual(self.only().problem, "")
            self.network.advance(1)
            self.network.settle()
        self.assertEqual(self.only().sent, self.log.published_position)
        self.assertTrue(all(1000 <= size <= 1024 for size in sizes[:4]), sizes)


class AckTests(MasterCase):
    """What slaves have stored."""

    def test_copies(self) -> None:
        """The master is one copy; the slowest slave that is needed decides. A first
        report is a question, and no copy."""
        first, second = self.slave(20), self.slave(10)
        self.slave()
        self.assertEqual(self.server.acked(2), -1)
        self.tell(first, 20)
        self.tell(second, 10)
        self.assertEqual([self.server.acked(n) for n in (2, 3, 4)], [20, 10, -1])
        self.tell(second, 30)
        self.assertEqual([self.server.acked(n) for n in (2, 3)], [30, 20])
        assert first.transport is not None
        first.transport.loseConnection()
        self.network.settle()
        self.assertEqual([self.server.acked(n) for n in (2, 3)], [30, -1])

    def test_reportBeyondSent(self) -> None:
        """A report counts up to what was sent on its connection."""
        slave = self.slave(17)
        end = self.log.published_position
        self.tell(slave, 1 << 62)
        self.assertEqual((self.only().acked, self.server.acked(2)), (end, end))
        self.log.put(b"not sent yet")
        self.assertEqual(self.server.acked(2), end)

    def test_none(self) -> None:
        """Without slaves there is no second copy."""
        self.assertEqual(self.server.acked(2), -1)
        self.assertEqual(self.server.in_sync(10), 1)

    def test_watch(self) -> None:
        """Who watches is called once for reports that come together, and when a slave
        has gone."""
        slave = self.slave(0)
        self.reports = 0
        assert slave.transport is not None
        slave.transport.write(report(17) + report(35))
        self.network.settle()
        self.assertEqual((self.reports, self.only().acked), (1, 35))
        slave.transport.loseConnection()
        self.network.settle()
        self.assertEqual(self.reports, 2)

    def test_in_sync(self) -> None:
        """A slave less than haMaxGapNotInSync behind is in sync; one that has not
        reported is as far as it would be at -1."""
        self.serve(ha_max_gap_not_in_sync=100)
        self.slave(20)
        self.slave()
        self.assertEqual(self.server.in_sync(98), 3)
        self.assertEqual(self.server.in_sync(99), 2)
        self.assertEqual(self.server.in_sync(119), 2)
        self.assertEqual(self.server.in_sync(120), 1)

    def test_caught_up(self) -> None:
        """A slave had all when what was the end has been reported."""
        slave = self.slave(35)
        self.tell(slave, 35)
        self.network.advance(1)
        self.assertEqual(self.only().caught_up_ms, 1000)
        self.put(b"third")
        end = self.log.published_position
        self.network.advance(1)
        self.put(b"fourth")
        self.network.advance(1)
        self.assertEqual(self.only().caught_up_ms, 0)
        self.tell(slave, end)
        self.assertEqual(self.only().caught_up_ms, 1000)
        self.tell(slave, self.log.published_position)
        self.assertEqual(self.only().caught_up_ms, 3000)


class StrangerTests(MasterCase):
    """Connections from hosts that are no slave's."""

    def setUp(self) -> None:
        super().setUp()
        self.membership.become()

    def test_countsForNothing(self) -> None:
        """A stranger is sent the log, and is no copy, not in sync and no slave."""
        stranger = self.slave(17)
        reports = self.reports
        self.tell(stranger, 35)
        self.assertEqual(self.reports, reports)
        sent = frames(17, self.log.data[17:35], 32768)
        self.assertEqual(stranger.heard, sent)
        self.assertEqual(self.server.acked(2), -1)
        self.assertEqual(self.server.in_sync(35), 1)
        self.assertEqual(self.server.replicas, [])
        self.assertEqual(len(self.server.strangers), 1)

    def test_becomesSlave(self) -> None:
        """One that turns out to be a slave counts from then on, with all that it has
        reported; until then it is asked again and again who it is."""
        slave = self.slave(17)
        self.tell(slave, 35)
        self.assertEqual(self.membership.looks, 1)
        self.network.pump([1, 1])
        self.assertEqual(self.membership.looks, 3)
        reports = self.reports
        self.membership.become("127.0.0.1")
        self.assertEqual(self.reports, reports + 1)
        self.assertEqual((self.server.acked(2), self.server.strangers), (35, []))
        self.network.pump([1, 1])
        self.assertEqual(self.membership.looks, 3)

    def test_becomesSlaveAhead(self) -> None:
        """What is wrong with one is logged when it turns out to be a slave."""
        self.slave(60)
        with capturedLogs() as events:
            self.membership.become("127.0.0.1")
        _, line = map(formatEvent, events)
        self.assertIn("has the log up to 60", line)

    def test_forgottenSlave(self) -> None:
        """A slave that name servers forget while it is connected stays a slave; one
        that settings do not trust any more is a stranger."""
        self.membership.become("127.0.0.1")
        slave = self.slave(17)
        self.tell(slave, 35)
        self.membership.become()
        self.assertEqual(self.server.acked(2), 35)
        self.membership.become(anew=True)
        self.assertEqual((self.server.acked(2), self.server.replicas), (-1, []))

    def test_crowdOfStrangersMakesRoomForSlave(self) -> None:
        """Strangers that are sent the log do not keep a slave out; slaves do not make
        room for strangers."""
        known_later = self.slave(17)
        self.membership.become("127.0.0.1")
        slaves = [known_later, self.slave(17)]
        self.membership.become()
        strangers = [self.slave(17) for _ in range(few_of(descriptor_limit()))]
        self.assertEqual([each.is_gone for each in slaves], [False, False])
        self.assertTrue(strangers[0].is_gone and strangers[1].is_gone)
        self.assertFalse(strangers[2].is_gone)

    def test_notServed(self) -> None:
        """With haServeStrangers=false a stranger is sent nothing, and is let go after
        ten seconds."""
        self.membership.serves_strangers = False
        stranger = self.slave(17)
        self.network.pump([1] * 10)
        self.assertEqual((stranger.heard, stranger.is_gone), (b"", False))
        self.network.pump([1, 0])
        self.assertTrue(stranger.is_gone)
        self.assertEqual((stranger.heard, self.server.strangers), (b"", []))

    def test_notServedBefore(self) -> None:
        """A slave that connects before it is known is served as soon as it is."""
        self.membership.serves_strangers = False
        slave = self.slave(17)
        self.membership.become("127.0.0.1")
        self.network.settle()
        self.assertEqual(slave.heard, frames(17, self.log.data[17:], 32768))
        self.network.pump([1] * 11)
        self.assertFalse(slave.is_gone)

    def test_logLines(self) -> None:
        """Who stays a stranger for five seconds gets into the log, at most one of them
        in a second; a slave that is known soon does not."""
        for _ in range(3):
            self.slave(17)
        with capturedLogs() as events:
            self.network.pump([1] * 5)
            self.assertEqual(events, [])
            self.network.pump([1] * 5)
        (line,) = map(formatEvent, events)
        self.assertIn("counts as no copy", line)


class PortTests(MasterCase):
    """Listening, and its end."""

    def test_in_use(self) -> None:
        """A port that is taken is one sentence."""
        error = self.assertRaises(ConfigurationError, self.server.listen, PORT)
        self.assertIn(f":{PORT}: the port is in use", str(error))

    def test_any(self) -> None:
        """A negative port is any, as 0 is."""
        for port in (0, -1):
            server = ReplicaServer(
                self.network,
                self.log,
                StoreOptions(),
                self.threads,
                lambda: 0,
                self.membership,
            )
            self.assertGreater(server.listen(port), 0)
            self.successResultOf(server.stop())

    def test_connectionThatNeverReportsIsClosed(self) -> None:
        """Bytes that are no report do not keep it open, and it is not called a slave
        that has gone."""
        slave = self.slave()
        assert slave.transport is not None
        with capturedLogs() as events:
            for _ in range(5):
                slave.transport.write(b"x")
                self.network.advance(FIRST_REPORT_SECONDS / 4)
            self.network.settle()
        self.assertTrue(slave.is_gone)
        (event,) = events
        self.assertIn("Closed 1 connections to the port of repl", formatEvent(event))

    def test_stop(self) -> None:
        """All slaves are let go, and none is accepted any more."""
        slave = self.slave(17)
        self.server.appended()
        stopped = self.server.stop()
        self.assertNoResult(stopped)
        self.network.settle()
        self.successResultOf(stopped)
        self.assertTrue(slave.is_gone)
        self.assertEqual(self.network.ports, {})
        self.assertEqual(self.network.getDelayedCalls(), [])

    def test_stop_full(self) -> None:
        """One that takes nothing does not hinder the stop."""
        slave = self.slave(17)
        assert slave.transport is not None
        slave.transport.pauseProducing()  # type: ignore[attr-defined]  # it has it
        self.put(b"third")
        stopped = self.server.stop()
        self.network.settle()
        self.successResultOf(stopped)
