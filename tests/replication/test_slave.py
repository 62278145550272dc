"""Tests of L{rocketbroker.replication.slave}."""

from __future__ import annotations

from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import ServerFactory
from twisted.logger import capturedLogs
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from rocketbroker.config.store import StoreOptions
from rocketbroker.errors import ServiceNotAvailable
from rocketbroker.replication.interfaces import IMasterLink
from rocketbroker.replication.join import JOIN_BYTES, JOIN_GROWTH
from rocketbroker.replication.slave import MAX_RECORD_BYTES, MasterLink
from rocketbroker.testing.network import MemoryNetwork
from rocketbroker.wire.hastream import frames, report
from tests.replication.logs import SEGMENT, MemoryLog, Peer, records

PORT = 10912
ADDRESS = f"127.0.0.1:{PORT}"


class Masters(ServerFactory):
    """All connections that a slave has made."""

    def __init__(self) -> None:
        self.all: list[Peer] = []

    def buildProtocol(self, addr: IAddress | None) -> Peer:
        self.all.append(Peer())
        return self.all[-1]


class SlaveCase(SynchronousTestCase):
    """A slave, and a master played by the test."""

    bodies: tuple[bytes, ...] = ()

    def setUp(self) -> None:
        self.network = MemoryNetwork()
        self.log = MemoryLog(*self.bodies)
        self.masters = Masters()
        self.network.listenTCP(PORT, self.masters)
        self.appends = 0
        self.link = MasterLink(
            self.network,
            self.log,
            StoreOptions(mapped_file_size_commit_log=SEGMENT),
            lambda: int(self.network.seconds() * 1000) + 1,
        )
        self.link.watch(self.appended)
        self.link.follow(ADDRESS)
        self.link.start()
        self.network.settle()

    def appended(self) -> None:
        self.appends += 1

    @property
    def master(self) -> Peer:
        """The last connection."""
        return self.masters.all[-1]

    def send(self, *data: bytes) -> bytes:
        """Send as the master; what the slave answers."""
        self.master.taken()
        self.master.send(b"".join(data))
        self.network.settle()
        return self.master.taken()

    def refused(self, problem: str) -> None:
        """The connection was closed for that, and is tried again."""
        before = len(self.masters.all)
        self.assertTrue(self.master.is_gone)
        self.assertIn(problem, self.link.problem)
        self.assertEqual(self.link.state, "READY")
        self.network.advance(4.9)
        self.assertEqual(len(self.masters.all), before)
        self.network.advance(0.1)
        self.network.settle()
        self.assertEqual(len(self.masters.all), before + 1)


class EmptyTests(SlaveCase):
    """A slave without a log."""

    def test_interface(self) -> None:
        """It has what a broker expects of it."""
        verifyObject(IMasterLink, self.link)

    def test_report(self) -> None:
        """It reports at once, that it has nothing."""
        self.assertEqual(self.master.heard, report(0))
        self.assertEqual(self.link.state, "TRANSFER")
        self.assertEqual(self.link.problem, "")
        self.assertEqual(self.link.last_write_ms, 1)

    def test_first(self) -> None:
        """It begins with the segment that the master sends first."""
        log = records(SEGMENT, b"a", b"bc")
        answer = self.send(frames(SEGMENT, log, 9))
        self.assertEqual((self.log.min_position, self.log.data), (SEGMENT, log))
        self.assertEqual(answer, report(SEGMENT + len(log)))
        self.assertEqual(self.link.received, len(log))
        self.assertEqual(self.appends, 1)
        self.assertEqual(self.link.last_read_ms, 1)

    def test_byte_by_byte(self) -> None:
        """Whole records are stored as they become whole, and reported."""
        self.network.max_bytes = 1
        log = records(0, b"a", b"bc")
        answer = self.send(frames(0, log, 9), frames(len(log), b"", 9))
        self.assertEqual(self.log.data, log)
        self.assertEqual(answer, report(13) + report(27))

    def test_large_record(self) -> None:
        """A record that comes in many pieces is looked at when it is whole."""
        log = records(0, bytes(SEGMENT * 8), b"x")
        self.network.max_bytes = 1000
        answer = self.send(frames(0, log, 32768))
        self.assertEqual(self.log.data, log)
        self.assertEqual(answer[-8:], report(len(log)))
        self.assertEqual(self.log.appends, 2)

    def test_too_large(self) -> None:
        """A record of any size is not waited for."""
        log = (MAX_RECORD_BYTES + 1).to_bytes(4) + bytes(8)
        self.send(frames(0, log, 32768))
        self.refused(f"a record of {MAX_RECORD_BYTES + 1} bytes")

    def test_heartbeat(self) -> None:
        """A master's heartbeat is no position of the log yet."""
        self.assertEqual(self.send(frames(SEGMENT, b"", 9)), b"")
        self.assertFalse(self.master.is_gone)

    def test_idle(self) -> None:
        """It reports again after five seconds, and hangs up after 20 without a word,
        to try again at once."""
        self.network.pump([1] * 6)
        self.assertEqual(self.master.heard, report(0) * 2)
        self.network.pump([1] * 15)
        self.network.settle()
        self.assertTrue(self.masters.all[0].is_gone)
        self.assertEqual(len(self.masters.all), 2)
        self.assertEqual(self.link.state, "TRANSFER")

    def test_rate(self) -> None:
        """What comes is counted by the second."""
        self.send(frames(0, records(0, b"a"), 99))
        self.network.advance(1)
        self.assertEqual(self.link.bytes_per_second, 25)


class JoinTests(SlaveCase):
    """A slave with a log, which asks for the end of it once more."""

    bodies = (b"first", b"second")

    def test_same(self) -> None:
        """It goes on when the master has sent the same."""
        self.assertEqual(self.master.heard, report(1))
        answer = self.send(frames(1, self.log.data[1:], 9))
        self.assertEqual(answer, report(35))
        more = records(35, b"third")
        self.assertEqual(self.send(frames(35, more, 9)), report(35 + len(more)))
        self.assertEqual(self.log.data[35:], more)

    def test_more(self) -> None:
        """What follows in the same bytes is stored at once."""
        more = records(35, b"third")
        answer = self.send(frames(1, self.log.data[1:] + more, 99))
        self.assertEqual(answer, report(35) + report(35 + len(more)))
        self.assertEqual(self.link.problem, "")

    def test_window(self) -> None:
        """It asks for so much at most, and for nothing of an earlier segment."""
        self.log.put(bytes(SEGMENT))
        for _ in range(2):
            self.link.follow("127.0.0.1:1")
            self.link.follow(ADDRESS)
            self.network.settle()
            end = self.log.published_position
            begin = max(end - JOIN_BYTES, SEGMENT)
            self.assertEqual(self.master.heard, report(begin))
            self.log.put(bytes(JOIN_BYTES))

    def test_differs(self) -> None:
        """Other bytes at the same positions are never appended to."""
        other = records(0, b"first", b"SECOND", b"third")
        self.assertEqual(self.send(frames(1, other[1:], 99)), b"")
        self.assertEqual(self.log.data, records(0, b"first", b"second"))
        self.refused("the logs differ at 1 already, and this broker's ends at 35. If")
        self.assertIn("rocketbroker store truncate", self.link.problem)

    def test_wider(self) -> None:
        """Where they part before what was asked for, more is asked for the next time,
        until it has joined."""
        self.log.put(*[bytes(1000)] * 60)
        end = self.log.published_position
        for size in (JOIN_BYTES, min(end, JOIN_BYTES * JOIN_GROWTH) - 1):
            self.link.follow(None)
            self.link.follow(ADDRESS)
            self.network.settle()
            self.assertEqual(self.master.taken(), report(end - size))
            self.send(frames(end - size, b"?", 99))
            self.refused(f"the logs differ at {end - size} already")
        self.send(frames(1, self.log.data[1:], 32768))
        self.assertEqual(self.link.join_bytes, JOIN_BYTES)

    def test_shorter(self) -> None:
        """A master whose log is shorter shows it by its heartbeats."""
        self.send(frames(1, self.log.data[1:20], 99))
        self.network.advance(5)
        self.send(frames(20, b"", 99))
        self.assertFalse(self.master.is_gone)
        self.network.advance(5)
        self.send(frames(20, b"", 99))
        self.refused("the master's log ends at 20, and this broker's at 35")

    def test_nothing(self) -> None:
        """So does one that has nothing of what was asked for."""
        self.send(frames(1, b"", 99))
        self.network.advance(5)
        self.send(frames(1, b"", 99))
        self.refused("the master has nothing at 1, and this broker's log ends at 35")

    def test_patience(self) -> None:
        """It does not report again before it has joined: a master with a shorter log
        would end the connection, and not say where it ends."""
        self.network.pump([1] * 8)
        self.assertEqual(self.master.heard, report(1))
        self.assertEqual(self.send(frames(1, self.log.data[1:], 99)), report(35))

    def test_early_heartbeat(self) -> None:
        """A heartbeat from before the report was read says nothing."""
        self.send(frames(1, b"", 99))
        self.network.advance(1)
        self.send(frames(1, self.log.data[1:], 99))
        self.assertFalse(self.master.is_gone)

    def test_misplaced(self) -> None:
        """A frame for another position is refused; so is a heartbeat."""
        for _ in range(2):
            self.send(frames(35, b"", 99))
            self.refused("a frame at position 35 where 1 was to follow")

    def test_again(self) -> None:
        """When it has joined, nothing is wrong any more; the log tells all once."""
        for _ in range(3):
            self.send(frames(2, b"", 99))
            self.refused("where 1 was to follow")
        self.send(frames(1, self.log.data[1:], 99))
        self.assertEqual(self.link.problem, "")

    def test_unreadable(self) -> None:
        """A log that cannot be read cannot be compared."""
        self.link.follow("127.0.0.1:1")
        self.log.broken = OSError(5, "Input/output error")
        self.link.follow(ADDRESS)
        self.network.settle()
        self.send(frames(1, self.log.data[1:], 99))
        self.refused("Input/output error")


class RefusalTests(SlaveCase):
    """What cannot be stored."""

    def test_disk_full(self) -> None:
        """A store that takes nothing now is asked again later, from where it was; the
        problem stays until it takes something, and is logged once."""
        self.log.refusal = ServiceNotAvailable("the disk is full")
        log = records(0, b"a")
        with capturedLogs() as events:
            for _ in range(3):
                self.assertEqual(self.send(frames(0, log, 99)), b"")
                self.refused("the disk is full.")
                self.assertIn("the disk is full", self.link.problem)
        self.assertEqual(len([each for each in events if "problem" in each]), 1)
        self.log.refusal = None
        self.assertEqual(self.send(frames(0, log, 99)), report(13))
        self.assertEqual(self.link.problem, "")

    def test_no_record(self) -> None:
        """Bytes that are no records are refused."""
        self.send(frames(0, bytes(99), 99))
        self.refused("no record at 0")


class ConnectingTests(SlaveCase):
    """Reaching a master, and changing it."""

    def test_refused(self) -> None:
        """A master that is not there is tried again after five seconds."""
        self.link.follow("127.0.0.1:9")
        self.network.settle()
        self.assertIn("Cannot connect to the master 127.0.0.1:9: ", self.link.problem)
        self.assertTrue(self.master.is_gone)
        masters = Masters()
        self.network.listenTCP(9, masters)
        self.network.advance(4)
        self.assertEqual(self.link.state, "READY")
        self.network.advance(1)
        self.network.settle()
        self.assertEqual(self.link.state, "TRANSFER")

    def test_bad_address(self) -> None:
        """An address that is none is said to be none."""
        self.link.follow("nowhere")
        self.assertIn("'nowhere' is not an address", self.link.problem)

    def test_nobody(self) -> None:
        """Without a master it waits for one."""
        self.link.follow(None)
        self.network.settle()
        self.assertEqual((self.link.state, self.link.problem), ("READY", ""))
        self.link.follow(ADDRESS)
        self.network.settle()
        self.assertEqual(self.link.state, "TRANSFER")

    def test_same(self) -> None:
        """The same address again changes nothing."""
        self.link.follow(ADDRESS)
        self.network.settle()
        self.assertEqual(len(self.masters.all), 1)

    def test_lost(self) -> None:
        """A connection that ends is made again after five seconds."""
        assert self.master.transport is not None
        self.master.transport.loseConnection()
        self.network.settle()
        self.refused(f"The connection to the master {ADDRESS} ended: ")

    def test_stop(self) -> None:
        """Nothing is stored after it has stopped; it can start again."""
        self.master.send(frames(0, records(0, b"a"), 99))
        self.successResultOf(self.link.stop())
        self.network.settle()
        self.assertEqual((self.log.data, self.link.state), (b"", "SHUTDOWN"))
        self.assertTrue(self.master.is_gone)
        self.assertEqual(self.network.getDelayedCalls(), [])
        self.link.start()
        self.network.settle()
        self.assertEqual(self.link.state, "TRANSFER")

    def test_stop_connecting(self) -> None:
        """An attempt to connect ends, too, and a wait for the next."""
        self.network.silent.add(9)
        for seconds in (0, 5):
            self.link.follow("127.0.0.1:9")
            self.link.start()
            self.network.advance(seconds)
            self.successResultOf(self.link.stop())
            self.network.settle()
            self.assertEqual(self.network.getDelayedCalls(), [])
