"""Turns of the hub that wait a moment for those who are about to ask."""

from __future__ import annotations

import socket
from typing import Any, cast

from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.remoting.connection_group import ConnectionGroup, ConnectionLimits
from rocketbroker.remoting.hub import (
    GATHER_FROM,
    GATHER_SECONDS,
    GATHER_WITHIN,
    Hub,
)
from rocketbroker.remoting.interfaces import Answer, IConnection
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.frames import encode

ASK = 105


class GatherTests(SynchronousTestCase):
    """Many clients that wait for one answer each, and then ask again."""

    def setUp(self) -> None:
        """A hub, and its connections' other ends."""
        self.clock = MemoryReactorClock()
        self.hub = Hub(cast(Any, self.clock), sleep=self.sleep)
        self.addCleanup(self.hub.shut)
        self.slept: list[float] = []
        self.late: list[socket.socket] = []
        self.served = 0
        self.at_once = False
        table = ResponderTable()
        table.register(ASK, self.respond)
        group = ConnectionGroup(self.clock, table, ConnectionLimits(), self.hub.turns)
        self.peers = []
        for _ in range(GATHER_FROM):
            ours, peer = socket.socketpair()
            self.addCleanup(peer.close)
            self.hub.adopt(ours, group, "1.2.3.4", 5)
            self.peers.append(peer)

    def respond(self, connection: IConnection, command: Command) -> Answer:
        """Count."""
        self.served += 1
        if self.at_once:
            connection.send_now(encode(response_to(command)))
            return None
        return response_to(command)

    def sleep(self, seconds: float) -> None:
        """Time passes, in which the late ones ask."""
        self.slept.append(seconds)
        self.clock.rightNow += seconds
        self.ask(*self.late)

    def ask(self, *peers: socket.socket) -> None:
        """Each asks once."""
        for peer in peers:
            peer.sendall(encode(Command(ASK)))

    def turn(self) -> int:
        """How many are served in one turn."""
        self.served = 0
        self.hub.turn()
        return self.served

    def test_few(self) -> None:
        """If few of them are ready, the turn waits for the others, once."""
        self.ask(*self.peers)
        self.assertEqual(self.turn(), GATHER_FROM)
        self.late = self.peers[1:]
        self.ask(self.peers[0])
        self.assertEqual(self.turn(), GATHER_FROM)
        self.assertEqual(self.slept, [GATHER_SECONDS])

    def test_answeredAtOnce(self) -> None:
        """Those count that were answered before the end of the turn, too."""
        self.at_once = True
        self.test_few()
        self.ask(self.peers[0])
        self.assertEqual(self.turn(), GATHER_FROM)
        self.at_once = False
        self.late = []
        self.ask(*self.peers[1:])
        self.turn()
        self.ask(self.peers[0])
        self.assertEqual(self.turn(), 1)
        self.assertEqual(len(self.slept), 2)

    def test_once(self) -> None:
        """It waits only once: for those that have nothing to ask, nobody waits."""
        self.ask(*self.peers)
        self.turn()
        self.late = [self.peers[0]]
        self.ask(self.peers[1])
        self.assertEqual(self.turn(), 2)
        self.ask(self.peers[1])
        self.assertEqual(self.turn(), 1)
        self.assertEqual(len(self.slept), 1)

    def test_half(self) -> None:
        """Half of them are enough."""
        self.ask(*self.peers)
        self.turn()
        self.ask(*self.peers[: GATHER_FROM // 2])
        self.assertEqual(self.turn(), GATHER_FROM // 2)
        self.assertEqual(self.slept, [])

    def test_later(self) -> None:
        """If the answers went out a while ago, nobody is about to ask."""
        self.ask(*self.peers)
        self.turn()
        self.clock.rightNow += 2 * GATHER_WITHIN
        self.ask(self.peers[0])
        self.assertEqual(self.turn(), 1)
        self.assertEqual(self.slept, [])

    def test_fewClients(self) -> None:
        """Fewer clients are served as they come."""
        self.ask(*self.peers[1:])
        self.turn()
        self.ask(self.peers[0])
        self.assertEqual(self.turn(), 1)
        self.assertEqual(self.slept, [])
