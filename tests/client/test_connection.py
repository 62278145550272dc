"""One server, and the requests under way."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.connections import Connections
from rocketbroker.errors import (
    ClientClosed,
    ConnectionLost,
    RequestTimeout,
    SystemBusy,
)
from rocketbroker.testing.runtime import MemoryRuntime, PuppetLink
from rocketbroker.testing.scripted import answer
from rocketbroker.wire.command import Command

ADDRESS = "b1:10911"


def echo(link: PuppetLink, command: Command) -> Command:
    """A server that answers with what it got."""
    return answer(body=command.body)


class ConnectionTests(SynchronousTestCase):
    """Requests over a connection that comes and goes."""

    def setUp(self) -> None:
        self.runtime = MemoryRuntime()
        self.runtime.servers[ADDRESS] = echo
        self.made: list[str] = []
        self.connections = Connections(self.runtime)
        self.connections.watch_made(self.made.append)
        self.connection = self.connections.to(ADDRESS)

    def test_answersFindTheirRequests(self) -> None:
        """In whatever order and pieces they come."""
        held: list[Command] = []

        def reversing(link: PuppetLink, command: Command) -> list[Command]:
            held.insert(0, answer(body=command.body, opaque=command.opaque))
            return held if len(held) == 2 else []

        self.runtime.servers[ADDRESS] = reversing
        self.runtime.max_bytes = 3
        both = [
            self.runtime.start(self.connection.request(Command(1, None, body), 3.0))
            for body in (b"one", b"two")
        ]
        self.runtime.settle()
        self.assertEqual([one.value().body for one in both], [b"one", b"two"])
        self.assertEqual(self.made, [ADDRESS])

    def test_lostConnectionIsMadeAgain(self) -> None:
        """What was under way fails; the next request connects again, unseen."""
        self.runtime.servers[ADDRESS] = lambda link, command: None
        under_way = self.runtime.start(self.connection.request(Command(1), 3.0))
        self.runtime.settle()
        self.runtime.cut(ADDRESS)
        self.runtime.settle()
        self.assertRaises(ConnectionLost, under_way.value)
        self.runtime.servers[ADDRESS] = echo
        self.runtime.finish(self.connection.request(Command(1), 3.0))
        self.assertEqual((self.connection.connects, self.made), (2, [ADDRESS] * 2))

    def test_endThatNobodyHasSeenYetIsSeen(self) -> None:
        """The server has closed a connection that rested, and the loop was busy."""
        self.runtime.finish(self.connection.request(Command(1), 3.0))
        self.runtime.advance(120.0)
        asking = self.runtime.start(self.connection.request(Command(1), 3.0))
        self.runtime.cut(ADDRESS)
        self.runtime.settle()
        asking.value()
        self.assertEqual(self.connection.connects, 2)

    def test_refusedConnectionFailsAllThatWaitForIt(self) -> None:
        """One attempt for all of them; the next request is another attempt."""
        del self.runtime.servers[ADDRESS]
        both = [
            self.runtime.start(self.connection.request(Command(1), 3.0))
            for _ in range(2)
        ]
        self.runtime.settle()
        for one in both:
            self.assertRaises(ConnectionLost, one.value)
        self.assertEqual(self.runtime.connects, [ADDRESS])

    def test_silentServerIsLeft(self) -> None:
        """A server that says nothing at all may be gone without a word."""
        self.runtime.servers[ADDRESS] = lambda link, command: None
        late = self.runtime.start(self.connection.request(Command(1), 3.0))
        self.runtime.advance(2.9)
        self.assertFalse(late.ended)
        self.runtime.advance(0.1)
        self.assertRaises(RequestTimeout, late.value)
        self.assertFalse(self.connection.is_up)

    def test_slowAnswerLeavesTheConnectionAlone(self) -> None:
        """If the server answers others meanwhile; the answer that comes late goes."""

        def slow(link: PuppetLink, command: Command) -> Command | None:
            return None if command.code == 11 else answer()

        self.runtime.servers[ADDRESS] = slow
        late = self.runtime.start(self.connection.request(Command(11), 3.0))
        self.runtime.advance(1.0)
        self.runtime.finish(self.connection.request(Command(1), 3.0))
        self.runtime.advance(2.0)
        self.assertRaises(RequestTimeout, late.value)
        self.assertTrue(self.connection.is_up)
        (link,) = self.runtime.links
        link.send(answer(opaque=link.requests[0].opaque))
        self.runtime.settle()
        self.assertEqual(self.connection.dropped, 1)

    def test_nonsenseEndsTheConnection(self) -> None:
        """What came whole before it still counts."""

        def nonsense(link: PuppetLink, command: Command) -> None:
            link.send(answer(opaque=command.opaque, body=b"good"))
            link.send_bytes(b"\xff" * 8)

        self.runtime.servers[ADDRESS] = nonsense
        good = self.runtime.finish(self.connection.request(Command(1), 3.0))
        self.assertEqual(good.body, b"good")
        self.assertFalse(self.connection.is_up)

    def test_congestedConnectionHoldsRequestsBack(self) -> None:
        """Nothing more is written until the server takes it again, or time is over."""
        self.runtime.finish(self.connection.request(Command(1), 3.0))
        (link,) = self.runtime.links
        link.congest(True)
        held = self.runtime.start(self.connection.request(Command(2), 3.0))
        late = self.runtime.start(self.connection.request(Command(3), 1.0))
        self.runtime.advance(1.0)
        self.assertEqual(len(link.requests), 1)
        self.assertRaises(RequestTimeout, late.value)
        link.congest(False)
        self.runtime.settle()
        held.value()

    def test_nobodyOvertakesThoseThatWait(self) -> None:
        """When a congestion ends."""
        self.runtime.finish(self.connection.request(Command(1), 3.0))
        (link,) = self.runtime.links
        link.congest(True)
        first = self.runtime.start(self.connection.request(Command(2), 3.0))
        self.runtime.settle()
        second = self.runtime.start(self.connection.request(Command(3), 3.0))
        link.congest(False)
        self.runtime.settle()
        first.value()
        second.value()
        self.assertEqual(self.runtime.codes(), [1, 2, 3])

    def test_oneThatGaveUpHoldsNobodyUp(self) -> None:
        """Its place is free."""
        self.runtime.finish(self.connection.request(Command(1), 3.0))
        (link,) = self.runtime.links
        link.congest(True)
        late, gone, held = (
            self.runtime.start(self.connection.request(Command(number), seconds))
            for number, seconds in ((2, 1.0), (3, 3.0), (4, 3.0))
        )
        self.runtime.settle()
        gone.cancel()
        self.runtime.advance(1.0)
        self.assertRaises(RequestTimeout, late.value)
        link.congest(False)
        self.runtime.settle()
        held.value()
        self.assertEqual(self.runtime.codes(), [1, 4])

    def test_cancelledRequestIsForgotten(self) -> None:
        """Its answer is dropped, and disturbs nobody."""
        held: list[Command] = []
        self.runtime.servers[ADDRESS] = lambda link, command: held.append(command)
        gone = self.runtime.start(self.connection.request(Command(1), 3.0))
        self.runtime.settle()
        gone.cancel()
        self.runtime.settle()
        self.runtime.links[0].send(answer(opaque=held[0].opaque))
        self.runtime.settle()
        self.assertEqual(self.connection.dropped, 1)

    def test_closedConnectionTakesNothing(self) -> None:
        """A oneway that was sent before still goes out."""
        self.runtime.finish(self.connection.oneway(Command(15)))
        self.runtime.start(self.connection.oneway(Command(15)))
        self.runtime.finish(self.connections.close())
        self.assertEqual(self.runtime.codes(), [15, 15])
        with self.assertRaises(ClientClosed):
            self.connections.to("other:1")
        with self.assertRaises(ClientClosed):
            self.runtime.finish(self.connection.request(Command(1), 3.0))

    def test_requestsOfServersReachTheirTakers(self) -> None:
        """A code that nobody watches is refused, unless no answer is wanted."""
        taken: list[int] = []
        self.connections.watch(40, lambda connection, command: taken.append(40))
        self.runtime.finish(self.connection.request(Command(1), 3.0))
        (link,) = self.runtime.links
        link.send(Command(40, opaque=5, flag=2))
        link.send(Command(41, opaque=6, flag=2))
        link.send(Command(42, opaque=7))
        self.runtime.settle()
        self.assertEqual(taken, [40])
        (refusal,) = link.requests[1:]
        self.assertEqual((refusal.code, refusal.opaque), (3, 7))

    def test_refusalBecomesAnError(self) -> None:
        """C{ask} wants success."""
        self.runtime.servers[ADDRESS] = lambda link, command: answer(2, remark="busy")
        with self.assertRaises(SystemBusy):
            self.runtime.finish(self.connections.ask(ADDRESS, Command(1), 3.0))
