"""A relayed connection under test: client, worker and owner in one process."""

from __future__ import annotations

import socket
from itertools import count
from select import select
from typing import Any, cast

from twisted.internet.testing import MemoryReactorClock

from rocketbroker.remoting.command_channel import CommandChannel
from rocketbroker.remoting.connection_group import ConnectionGroup, ConnectionLimits
from rocketbroker.remoting.hub import Hub
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.workers.link import LinkStream, link_pair
from rocketbroker.workers.link_frames import LinkFrame
from rocketbroker.workers.owner_link import WorkerLink
from rocketbroker.workers.relay import OwnerRelay
from tests.remoting.wires import HubWire


class RelayWire(HubWire):
    """A connection of the owner that a worker relays; the peer is its client.

    @ivar hub: the owner's.
    @ivar group: the owner's.
    @ivar worker_hub: the worker's.
    @ivar link: the owner's end.
    @ivar relay: the worker's end.
    @ivar told: what the owner has told the worker of itself.
    """

    def __init__(self, table: ResponderTable, limits: ConnectionLimits) -> None:
        self.reactor = MemoryReactorClock()
        clock = cast(Any, self.reactor)
        self.hub = Hub(clock)
        self.group = ConnectionGroup(clock, table, limits, self.hub.turns)
        self.worker_hub = Hub(clock)
        self.worker_table = ResponderTable()
        self.worker_group = ConnectionGroup(
            clock, self.worker_table, limits, self.worker_hub.turns
        )
        self.told: list[LinkFrame] = []
        self.gone: list[str] = []
        owner, worker = (LinkStream(end) for end in link_pair())
        self.link = WorkerLink(
            clock,
            self.hub,
            owner,
            "worker 1",
            count(1),
            lambda: self.gone.append("worker"),
        )
        self.relay = OwnerRelay(
            self.worker_hub,
            self.worker_group,
            worker,
            self.told.append,
            lambda: self.gone.append("owner"),
        )
        self._paused = False
        self._ended = False
        self._received = bytearray()
        self.peer, self.connection = self.another()

    def another(self) -> tuple[socket.socket, CommandChannel]:
        """One more connection, and its client."""
        ours, peer = socket.socketpair()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
        peer.setblocking(False)
        connection = self.link.hand_over(ours, self.group, "127.0.0.1", 5678)
        return peer, connection

    def step(self) -> None:
        """Turns of both, and what is due, until nothing happens."""
        while True:
            self.reactor.advance(0)
            self._read()
            ready = select([self.hub, self.worker_hub], [], [], 0)[0]
            for hub in ready:
                hub.doRead()
            if not ready and not self._due():
                return

    def end(self) -> None:
        """Close all."""
        self.peer.close()
        self.link.abort()
        self.relay.abort()
        self.hub.shut()
        self.worker_hub.shut()
