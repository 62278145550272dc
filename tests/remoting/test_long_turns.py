"""Turns of the hub in which too much is asked."""

from __future__ import annotations

import socket
from typing import Any, cast

from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.remoting.connection_group import ConnectionGroup, Limits
from rocketbroker.remoting.hub import MAX_SECONDS, Hub
from rocketbroker.remoting.interfaces import Answer, IConnection
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.wire.command import Command
from rocketbroker.wire.frames import encode


class LongTurnTests(SynchronousTestCase):
    """Peers that ask for dear things."""

    def test_nextTurn(self) -> None:
        """After MAX_SECONDS the others are served in the next turn, and first."""
        clock = MemoryReactorClock()
        hub = Hub(cast(Any, clock))
        served: list[int] = []

        def dear(connection: IConnection, command: Command) -> Answer:
            served.append(command.opaque)
            clock.rightNow += MAX_SECONDS
            return None

        table = ResponderTable()
        table.register(1, dear)
        group = ConnectionGroup(clock, table, Limits(), hub.turns)
        self.addCleanup(hub.shut)
        peers: list[socket.socket] = []
        for _ in range(5):
            ours, peer = socket.socketpair()
            self.addCleanup(peer.close)
            hub.adopt(ours, group, "1.2.3.4", 5)
            peer.sendall(encode(Command(1, opaque=len(peers))))
            peers.append(peer)
        for count in (2, 4, 5):
            hub.turn()
            self.assertEqual(len(served), count)
        self.assertEqual(sorted(served), [0, 1, 2, 3, 4])
