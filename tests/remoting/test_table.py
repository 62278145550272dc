"""The responder table and its counters."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from rocketbroker.remoting.counts import Latencies, Longest
from rocketbroker.remoting.interfaces import IConnection, IResponderTable
from rocketbroker.remoting.table import NOT_SERVED, ResponderTable
from rocketbroker.wire.command import Command
from rocketbroker.wire.frames import encode


def take(connection: IConnection, header: bytes, body: bytes) -> bool:
    """A hot responder."""
    return True


class TableTests(SynchronousTestCase):
    """Of responders."""

    def test_interface(self) -> None:
        """It is what services register with."""
        verifyObject(IResponderTable, ResponderTable())

    def test_hotKeys(self) -> None:
        """A hot responder stands under the first bytes of a header with its code."""
        for code in (10, 11, 310, 320, 999, 200051):
            table = ResponderTable()
            table.register_hot(code, take)
            header = encode(Command(code, {"a": "b"}))[8:]
            self.assertEqual(list(table.hot), [header[:12]])

    def test_hotCodes(self) -> None:
        """A code of one digit cannot be hot, nor two that begin alike."""
        table = ResponderTable()
        table.register_hot(200051, take)
        table.register_hot(200051, take)
        for code in (9, 200053):
            with self.assertRaises(AssertionError):
                table.register_hot(code, take)

    def test_turns(self) -> None:
        """What hot responders took in a turn counts with the turn's duration."""
        table = ResponderTable()
        table.register_hot(310, take)
        (entry,) = table.hot.values()
        entry.taken += 3
        table.turn_ended(0.002)
        table.turn_ended(5.0)
        latencies = table.latencies[310, 0]
        self.assertEqual((latencies.count, latencies.total_ms), (3, 6.0))

    def test_notServed(self) -> None:
        """Codes that nobody knows are counted as one: peers invent them."""
        table = ResponderTable()
        table.register(34, lambda connection, command: None)
        for code in range(5000, 5100):
            table.answered(code, 3, 0.001)
        table.answered(34, 3, 0.001)
        self.assertEqual(sorted(table.latencies), [(NOT_SERVED, 3), (34, 3)])
        self.assertEqual(table.latencies[NOT_SERVED, 3].count, 100)

    def test_namedNotServed(self) -> None:
        """A code that has a name is counted and refused by it."""
        table = ResponderTable()
        table.answered(1007, 3, 0.001)
        self.assertEqual(list(table.latencies), [(1007, 3)])
        self.assertEqual(
            table.refusal(1007).remark,
            " request type 1007 (GET_BROKER_EPOCH_CACHE) not supported",
        )
        self.assertEqual(table.refusal(4711).remark, " request type 4711 not supported")


class LatenciesTests(SynchronousTestCase):
    """A histogram."""

    def test_buckets(self) -> None:
        """A bound belongs to its own bucket; what is longer than all to the last."""
        latencies = Latencies()
        for elapsed_ms in (0.2, 1.0, 1.1, 3000.0, 3001.0):
            latencies.add(elapsed_ms)
        self.assertEqual(latencies.buckets, [2, 1, 0, 0, 0, 0, 0, 0, 1, 1])
        self.assertEqual(latencies.count, 5)


class LongestTests(SynchronousTestCase):
    """The longest duration of the last minute or two."""

    def test_window(self) -> None:
        """Each is shown for one minute at least and two at most."""
        longest = Longest()
        self.assertEqual(longest.value(1000.0), 0.0)
        longest.note(0.5, 1010.0)
        longest.note(0.25, 1011.0)
        self.assertEqual(longest.value(1059.0), 0.5)
        longest.note(0.125, 1061.0)
        self.assertEqual(longest.value(1119.0), 0.5)
        self.assertEqual(longest.value(1122.0), 0.125)

    def test_quiet(self) -> None:
        """After two minutes without any there is none."""
        longest = Longest()
        longest.note(0.5, 1000.0)
        self.assertEqual(longest.value(1130.0), 0.0)
