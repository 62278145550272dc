"""Tests of L{rocketbroker.remoting.request_expiry}."""

from __future__ import annotations

import socket
from typing import Any, cast

from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.remoting.connection_group import ConnectionGroup, ConnectionLimits
from rocketbroker.remoting.hub import MAX_SECONDS, Hub
from rocketbroker.remoting.hubconnection import HubConnection, keep
from rocketbroker.remoting.interfaces import Answer, IConnection
from rocketbroker.remoting.request_expiry import (
    SWEEP_SECONDS,
    TIMEOUT,
    busy_remark,
    refuse_overdue,
)
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.wire.codes import ResponseCode
from rocketbroker.wire.command import ONEWAY, RESPONSE, Command, response_to
from rocketbroker.wire.connection import Connection
from rocketbroker.wire.frames import encode

SEND = 310
PULL = 11
HEARTBEAT = 34
QUERY = 12
WAITS = {SEND: 0.2, PULL: 5.0, HEARTBEAT: 31.0}


class RemarkTests(SynchronousTestCase):
    """L{busy_remark}."""

    def test_words(self) -> None:
        """RocketMQ's words come first, because tools look for them."""
        self.assertEqual(
            busy_remark(TIMEOUT, 312, 4, "requests"),
            "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, "
            "period in queue: 312ms, size of queue: 4, slow stage: requests",
        )


class OverdueTests(SynchronousTestCase):
    """Connections with more requests than the hub has time for."""

    def setUp(self) -> None:
        """A hub, each of whose requests takes a whole turn."""
        self.clock = MemoryReactorClock()
        self.hub = Hub(cast(Any, self.clock))
        self.addCleanup(self.hub.shut)
        self.served: list[int] = []
        self.cost = MAX_SECONDS
        self.table = ResponderTable()
        for code in (*WAITS, QUERY):
            self.table.register(code, self.serve)
        self.table.limit_waits(WAITS)
        self.group = ConnectionGroup(
            self.clock, self.table, ConnectionLimits(), self.hub.turns
        )

    def serve(self, connection: IConnection, command: Command) -> Answer:
        """Note the opaque."""
        self.served.append(command.opaque)
        self.clock.rightNow += self.cost
        return response_to(command)

    def peer(self) -> socket.socket:
        """One more connection, as its other end."""
        ours, peer = socket.socketpair()
        self.addCleanup(peer.close)
        peer.setblocking(False)
        self.hub.adopt(ours, self.group, "1.2.3.4", 5)
        return peer

    def begin(self, *commands: Command) -> socket.socket:
        """A connection that has brought these, behind one that took the turn."""
        peer = self.peer()
        first = Command(QUERY, opaque=1000)
        peer.sendall(b"".join(map(encode, (first, *commands))))
        self.hub.turn()
        self.assertEqual(self.served, [1000])
        self.served.clear()
        self.answers(peer)
        return peer

    def sweep_after(self, seconds: float) -> None:
        """Time passes in which no turn comes."""
        for call in self.clock.getDelayedCalls():
            if call.getTime() <= self.clock.seconds():
                call.delay(1000)
        self.clock.advance(seconds)

    def answers(self, peer: socket.socket) -> list[Command]:
        """What the peer was sent."""
        incoming = Connection()
        try:
            return incoming.receive(peer.recv(1 << 20))
        except BlockingIOError:
            return []

    def test_overdue(self) -> None:
        """A send that has waited for 200 ms is refused, not before; what is younger or
        may wait longer is served, and so is what no limit is set for."""
        peer = self.begin(
            Command(SEND, opaque=1),
            Command(PULL, opaque=2),
            Command(QUERY, opaque=3),
        )
        self.sweep_after(0.19)
        self.assertEqual(self.answers(peer), [])
        self.sweep_after(0.02)
        (answer,) = self.answers(peer)
        self.assertEqual((answer.opaque, answer.code), (1, ResponseCode.SYSTEM_BUSY))
        self.assertEqual(
            answer.remark,
            "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, period "
            f"in queue: {int((0.21 + MAX_SECONDS) * 1000)}ms, size of queue: 1, slow "
            "stage: the requests of other connections",
        )
        self.assertEqual(self.group.counts.overdue, 1)
        self.assertEqual(self.table.latencies[SEND, 2].count, 1)
        self.hub.turn()
        self.hub.turn()
        self.assertEqual(self.served, [2, 3])
        self.assertEqual(self.hub.buffers.frames, 0)

    def test_eachFamily(self) -> None:
        """Each kind has its own time."""
        peer = self.begin(Command(HEARTBEAT, opaque=1), Command(PULL, opaque=2))
        self.sweep_after(0.3)
        self.assertEqual(self.answers(peer), [])
        self.sweep_after(4.8)
        self.assertEqual([answer.opaque for answer in self.answers(peer)], [2])
        self.sweep_after(25.9)
        self.assertEqual([answer.opaque for answer in self.answers(peer)], [1])

    def test_lookedAtOnce(self) -> None:
        """A connection is looked at again when the next of its requests is due."""
        self.begin(Command(SEND, opaque=1), Command(HEARTBEAT, opaque=2))
        (connection,) = cast("set[HubConnection]", self.group.connections)
        self.assertEqual(connection.overdue_at, connection.received_at + 0.2)
        self.sweep_after(0.3)
        self.assertEqual(connection.overdue_at, connection.received_at + 31)

    def test_oneTimer(self) -> None:
        """Turn after turn leaves something, and there is one timer."""
        self.begin(Command(SEND, opaque=1), Command(HEARTBEAT, opaque=2))
        self.hub.turn()
        now = self.clock.seconds()
        calls = [call.getTime() for call in self.clock.getDelayedCalls()]
        self.assertEqual(len([at for at in calls if now < at < now + 60]), 1)

    def left(self, command: Command) -> HubConnection:
        """A connection that has this left, and is not in the queue."""
        before = set(self.group.connections)
        self.peer()
        (connection,) = self.group.connections - before
        assert isinstance(connection, HubConnection)
        keep(connection, encode(command))
        return connection

    def test_bounded(self) -> None:
        """A sweep that takes long leaves the other connections to the next."""
        several = [self.left(Command(SEND, opaque=number)) for number in range(3)]
        times = iter(range(100))
        self.assertEqual(refuse_overdue(several, 1.0, lambda: next(times)), 1.0)
        self.assertEqual(self.group.counts.overdue, 1)
        refuse_overdue(several, 1.0, lambda: 0)
        self.assertEqual(self.group.counts.overdue, 3)

    def test_congested(self) -> None:
        """Who does not read waits for himself."""
        connection = self.left(Command(SEND, opaque=1))
        connection.congested = True
        refuse_overdue([connection], 1.0, lambda: 0)
        self.assertEqual(self.group.counts.overdue, 0)

    def test_oneway(self) -> None:
        """A request that wants no answer is dropped; a response never is."""
        got: list[Command] = []
        peer = self.peer()
        (connection,) = self.group.connections
        cast(IConnection, connection).request(Command(40), 60).addCallback(got.append)
        self.hub.turn()
        self.clock.advance(0)
        (request,) = self.answers(peer)
        frames = [
            Command(QUERY, opaque=1000),
            Command(SEND, opaque=1, flag=ONEWAY),
            Command(SEND, opaque=request.opaque, flag=RESPONSE),
        ]
        peer.sendall(b"".join(map(encode, frames)))
        self.hub.turn()
        self.answers(peer)
        self.sweep_after(1.0)
        self.assertEqual(self.answers(peer), [])
        self.assertEqual(self.group.counts.overdue, 1)
        self.hub.turn()
        self.assertEqual(self.served, [1000])
        self.assertEqual(len(got), 1)

    def test_half(self) -> None:
        """An unfinished frame behind them stays, and goes on."""
        peer = self.peer()
        last = encode(Command(QUERY, opaque=7, body=b"x" * 100))
        first = encode(Command(QUERY, opaque=1000)) + encode(Command(SEND, opaque=1))
        peer.sendall(first + last[:50])
        self.hub.turn()
        self.sweep_after(0.3)
        self.assertEqual([a.opaque for a in self.answers(peer)], [1000, 1])
        peer.sendall(last[50:])
        self.hub.turn()
        self.assertEqual(self.served, [1000, 7])
        self.assertEqual(self.hub.buffers.frames, 0)

    def test_quiet(self) -> None:
        """While nothing waits there is no timer; nor where no wait is limited."""
        peer = self.peer()
        peer.sendall(encode(Command(SEND, opaque=1)))
        self.hub.turn()
        self.assertEqual(self.clock.getDelayedCalls()[1:], [])
        self.table.limit_waits({})
        peer.sendall(encode(Command(SEND, opaque=1)) * 2)
        self.hub.turn()
        delays = [call.getTime() for call in self.clock.getDelayedCalls()]
        self.assertNotIn(self.clock.seconds() + SWEEP_SECONDS, delays)

    def test_pullThatWaitsForMemory(self) -> None:
        """So is one that waits because others do not read their answers; who is behind
        it is read again."""
        self.table.register_hot(PULL, lambda *_: True)
        peer = self.peer()
        self.hub.buffers._count(0, self.hub.buffers.limit // 2 + 1)
        peer.sendall(encode(Command(PULL, {"a": "b"}, opaque=1)))
        peer.sendall(encode(Command(SEND, opaque=2)))
        self.hub.turn()
        self.assertEqual(len(self.hub.buffers.askers), 1)
        self.sweep_after(0.21)
        self.assertEqual([a.opaque for a in self.answers(peer)], [2])
        self.hub.turn()
        self.assertEqual(len(self.hub.buffers.askers), 1)
        self.sweep_after(5.0)
        self.assertEqual([a.opaque for a in self.answers(peer)], [1])
        self.assertEqual(len(self.hub.buffers.askers), 0)
        peer.sendall(encode(Command(HEARTBEAT, opaque=3)))
        self.hub.turn()
        self.assertEqual(self.served, [3])
