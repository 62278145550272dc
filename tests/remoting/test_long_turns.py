"""Turns of the hub in which too much is asked."""

from __future__ import annotations

import socket
from typing import Any, cast

from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.remoting.connection_group import ConnectionGroup, ConnectionLimits
from rocketbroker.remoting.hub import CONNECTION_SECONDS, MAX_SECONDS, Hub
from rocketbroker.remoting.hubconnection import HubConnection
from rocketbroker.remoting.interfaces import Answer, IConnection
from rocketbroker.remoting.table import QUICK_REQUESTS, ResponderTable
from rocketbroker.remoting.turns import TURN_END
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.frames import encode

DEAR = 105
HOT = 11
QUICK = 310


class LongTurnTests(SynchronousTestCase):
    """Peers that ask for dear things: each takes some time of the clock."""

    def setUp(self) -> None:
        """A hub with a general, a hot and a quick responder."""
        self.clock = MemoryReactorClock()
        self.hub = Hub(cast(Any, self.clock))
        self.addCleanup(self.hub.shut)
        self.served: list[int] = []
        self.cost = MAX_SECONDS / 2
        table = ResponderTable()
        table.register(DEAR, self.dear)
        table.register_hot(HOT, self.hot)
        table.register_hot(QUICK, self.hot, quick=True)
        self.group = ConnectionGroup(
            self.clock, table, ConnectionLimits(), self.hub.turns
        )

    def dear(self, connection: IConnection, command: Command) -> Answer:
        """Note the opaque."""
        self.served.append(command.opaque)
        self.clock.rightNow += self.cost
        return response_to(command)

    def hot(self, connection: IConnection, header: bytes, body: bytes) -> bool:
        """Note the body's first byte."""
        self.served.append(body[0])
        self.clock.rightNow += self.cost
        return True

    def peer(self) -> socket.socket:
        """One more connection, as its other end."""
        ours, peer = socket.socketpair()
        self.addCleanup(peer.close)
        self.hub.adopt(ours, self.group, "1.2.3.4", 5)
        return peer

    def ask(self, peer: socket.socket, number: int, code: int = DEAR) -> None:
        """Send one request."""
        peer.sendall(encode(Command(code, opaque=number, body=bytes([number]))))

    def turns_served(self, count: int) -> list[list[int]]:
        """What was served in each of so many turns."""
        turns = []
        for _ in range(count):
            self.served.clear()
            self.hub.turn()
            turns.append(list(self.served))
        return turns

    def test_nextTurn(self) -> None:
        """After MAX_SECONDS the others are served in the next turn, and first."""
        for number in range(5):
            self.ask(self.peer(), number)
        self.assertEqual(self.turns_served(3), [[0, 1], [2, 3], [4]])

    def test_withinConnection(self) -> None:
        """A connection that has had its time goes on after the others."""
        self.cost = CONNECTION_SECONDS
        greedy, modest = self.peer(), self.peer()
        for number in range(3):
            self.ask(greedy, number)
        self.ask(modest, 9)
        self.assertEqual(self.turns_served(1), [[0, 9, 1, 2]])

    def test_flood(self) -> None:
        """So many requests of one that they fill turns keep nobody else waiting."""
        greedy, modest = self.peer(), self.peer()
        for number in range(10):
            self.ask(greedy, number)
        self.assertEqual(self.turns_served(2), [[0, 1], [2, 3]])
        self.ask(modest, 99)
        self.assertEqual(self.turns_served(2), [[99, 4], [5, 6]])

    def test_light(self) -> None:
        """Who asks now is served before those that earlier turns have left, and they
        are served all the same."""
        self.cost = MAX_SECONDS
        peers = [self.peer() for _ in range(4)]
        for number in range(4):
            self.ask(peers[number], number)
        self.assertEqual(self.turns_served(1), [[0]])
        self.ask(peers[0], 9)
        self.assertEqual(self.turns_served(3), [[9, 1], [2], [3]])

    def test_hot(self) -> None:
        """Requests of hot responders count too."""
        greedy, modest = self.peer(), self.peer()
        for number in range(3):
            self.ask(greedy, number, HOT)
        self.ask(modest, 9)
        self.assertEqual(self.turns_served(2), [[0, 9], [1, 2]])

    def test_quick(self) -> None:
        """For quick ones the clock is looked at now and then."""
        self.cost = CONNECTION_SECONDS
        greedy, modest = self.peer(), self.peer()
        for number in range(QUICK_REQUESTS + 2):
            self.ask(greedy, number, QUICK)
        self.ask(modest, 99, QUICK)
        first, second = self.turns_served(2)
        self.assertEqual(first, [*range(QUICK_REQUESTS)])
        self.assertEqual(second, [99, QUICK_REQUESTS, QUICK_REQUESTS + 1])

    def test_failures(self) -> None:
        """So do requests whose responder fails."""

        def wrong(connection: IConnection, header: bytes, body: bytes) -> bool:
            self.hot(connection, header, body)
            raise ValueError

        self.group.table.register_hot(HOT, wrong)
        greedy, modest = self.peer(), self.peer()
        for number in range(2):
            self.ask(greedy, number, HOT)
        self.ask(modest, 9)
        self.assertEqual(self.turns_served(2), [[0, 9], [1]])
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 2)

    def test_goesOn(self) -> None:
        """What is left is served although nothing more comes; then all is quiet."""
        peer = self.peer()
        for number in range(5):
            self.ask(peer, number)
        self.hub.turn()
        self.clock.advance(0)
        self.assertEqual(self.served, [0, 1, 2, 3, 4])
        self.assertEqual(self.hub.buffers.frames, 0)

    def test_notRead(self) -> None:
        """A connection is not received from while frames of it are left."""
        peer = self.peer()
        for number in range(4):
            self.ask(peer, number)
        self.hub.turn()
        self.ask(peer, 4)
        received = self.group.counts.bytes_in
        self.hub.turn()
        self.assertEqual(self.served, [0, 1, 2, 3])
        self.assertEqual(self.group.counts.bytes_in, received)
        self.hub.turn()
        self.assertEqual(self.served, [0, 1, 2, 3, 4])

    def test_congested(self) -> None:
        """Who gets more than he reads while he waits for his turn is not served."""
        self.cost = MAX_SECONDS
        self.ask(self.peer(), 0)
        self.ask(self.peer(), 1)
        self.hub.turn()
        adopted = [cast(HubConnection, each) for each in self.group.connections]
        (waiting,) = [each for each in adopted if each.queued]
        waiting.send(bytes(self.group.limits.high_water + 1))
        received = self.group.counts.bytes_in
        self.hub.turn()
        self.assertEqual(self.served, [0])
        self.assertEqual(self.group.counts.bytes_in, received)

    def test_closed(self) -> None:
        """One that is closed meanwhile is forgotten."""
        peer = self.peer()
        for number in range(4):
            self.ask(peer, number)
        self.hub.turn()
        for connection in list(self.group.connections):
            connection.abort()
        self.assertEqual(self.turns_served(1), [[]])
        self.assertEqual(self.hub.buffers.frames, 0)

    def test_unfinishedRest(self) -> None:
        """Half a frame after the frames that are left is no reason for a turn."""
        peer = self.peer()
        for number in range(3):
            self.ask(peer, number)
        peer.sendall(encode(Command(DEAR, opaque=3))[:-1])
        self.hub.turn()
        self.clock.advance(0)
        self.assertEqual(self.served, [0, 1, 2])
        timers = [each.getTime() for each in self.clock.getDelayedCalls()]
        self.assertTrue(all(time > self.clock.seconds() for time in timers))

    def longest(self) -> dict[int | str, float]:
        """The longest turns, by what took most of each."""
        now = self.clock.seconds()
        found = self.hub.turns.longest.items()
        return {work: longest.value(now) for work, longest in found}

    def test_named(self) -> None:
        """The longest turn has the name of the request that took most of it."""
        self.cost = CONNECTION_SECONDS
        self.ask(self.peer(), 1, HOT)
        self.ask(self.peer(), 2, QUICK)
        self.hub.turn()
        self.cost *= 2
        self.ask(self.peer(), 3, DEAR)
        self.ask(self.peer(), 4, HOT)
        self.hub.turn()
        self.assertEqual(
            self.longest(),
            {HOT: 2 * CONNECTION_SECONDS, DEAR: 4 * CONNECTION_SECONDS},
        )

    def test_turnEnd(self) -> None:
        """What is done at the end for all has its own name."""

        def append() -> None:
            self.clock.rightNow += 1

        self.hub.watch_turn_end(append)
        self.ask(self.peer(), 1, QUICK)
        self.hub.turn()
        self.assertEqual(self.longest(), {TURN_END: 1 + self.cost})
