"""One budget of memory for all connections."""

from __future__ import annotations

import contextlib
import re
import socket
from typing import Any, cast

from twisted.internet.testing import MemoryReactorClock
from twisted.logger import capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.remoting.buffers import (
    FIRST_STALLED_SECONDS,
    FRAME_STALLED_SECONDS,
    LARGE_ANSWER_BYTES,
    LARGE_FRAME_BYTES,
    LOOK_SECONDS,
    RECEIVE_BYTES,
    STALLED_SECONDS,
    TIGHT_RECEIVE_BYTES,
)
from rocketbroker.remoting.connection_group import ConnectionGroup, ConnectionLimits
from rocketbroker.remoting.hub import Hub
from rocketbroker.remoting.hubconnection import HubConnection
from rocketbroker.remoting.interfaces import Answer, IConnection
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.frames import decode, encode

SEND = 310
BATCH = 320
PULL = 11
ANSWER_BYTES = 400_000
BUDGET = 1_000_000


class BufferCase(SynchronousTestCase):
    """A hub with a budget of a million bytes."""

    def setUp(self) -> None:
        """Sends and pulls are hot; all pulls have large answers."""
        self.clock = MemoryReactorClock()
        self.hub = Hub(cast(Any, self.clock), BUDGET)
        self.addCleanup(self.hub.shut)
        self.buffers = self.hub.buffers
        self.sent: list[int] = []
        self.pulled: list[IConnection] = []
        table = ResponderTable()
        table.register_hot(SEND, self.send, quick=True)
        table.register_hot(BATCH, self.send)
        table.register_hot(PULL, self.pull)
        table.register(RequestCode.VIEW_MESSAGE_BY_ID, self.general)
        table.register(RequestCode.HEART_BEAT, self.general)
        limits = ConnectionLimits(idle_seconds=1e6)
        self.group = ConnectionGroup(self.clock, table, limits, self.hub.turns)
        self.peers: list[socket.socket] = []
        self.connections: list[HubConnection] = []

    def send(self, connection: IConnection, header: bytes, body: bytes) -> bool:
        """Note the size."""
        self.sent.append(len(body))
        return True

    def pull(self, connection: IConnection, header: bytes, body: bytes) -> bool:
        """Answer with much."""
        self.pulled.append(connection)
        connection.send(encode(Command(0, body=bytes(ANSWER_BYTES))))
        return True

    def general(self, connection: IConnection, command: Command) -> Answer:
        """Answer with nothing."""
        return response_to(command)

    def connect(self, send_buffer: int = 8192, host: str = "1.2.3.4") -> HubConnection:
        """One more connection; its peer is the next in C{peers}.

        @param send_buffer: about as much is sent before the peer reads.
        @param host: the peer's address.
        """
        ours, peer = socket.socketpair()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
        peer.setblocking(False)
        self.addCleanup(peer.close)
        self.peers.append(peer)
        return self.hub.adopt(ours, self.group, host, len(self.peers))

    def step(self) -> None:
        """Some turns, and what is due."""
        for _ in range(8):
            self.hub.turn()
            self.clock.advance(0)

    def wait(self, seconds: float) -> None:
        """Let time pass, in which the hub is served."""
        for _ in range(round(seconds / LOOK_SECONDS)):
            self.clock.advance(LOOK_SECONDS)
            self.step()

    def feed(self, number: int, data: bytes) -> int:
        """Send as a peer, as much as goes; how many bytes did."""
        done = 0
        for _ in range(100):
            try:
                done += self.peers[number].send(data[done:])
            except BlockingIOError:
                before = self.buffers.pauses
                self.step()
                if self.connections[number].paused and self.buffers.pauses == before:
                    break
            if done == len(data):
                break
        self.step()
        return done

    def many(self, count: int) -> None:
        """So many connections, which the tests name by number."""
        while len(self.connections) < count:
            self.connections.append(self.connect())

    def closed(self) -> list[bool]:
        """Of each whether it is."""
        return [connection.closed for connection in self.connections]

    def read(self, number: int, size: int) -> int:
        """Read as a peer; how much came."""
        found = 0
        for _ in range(1000):
            if found >= size:
                break
            try:
                data = self.peers[number].recv(size - found)
            except BlockingIOError:
                self.step()
                continue
            found += len(data)
            if not data:
                break
        self.step()
        return found


class FrameTests(BufferCase):
    """Unfinished frames."""

    def setUp(self) -> None:
        """Three connections, whose frames of 400,000 bytes do not fit together."""
        super().setUp()
        self.many(3)
        self.frame = encode(Command(SEND, body=bytes(400_000)))

    def test_reserved(self) -> None:
        """A large frame reserves its length; what does not fit waits, and is stored."""
        half = len(self.frame) // 2
        for number in range(3):
            self.feed(number, self.frame[:half])
        paused = [connection.paused for connection in self.connections]
        self.assertEqual(paused, [False, False, True])
        self.assertLessEqual(self.buffers.frames, BUDGET)
        self.assertEqual(self.group.counts.pauses, 1)
        self.feed(0, self.frame[half:])
        self.assertFalse(self.connections[2].paused)
        self.feed(1, self.frame[half:])
        self.feed(2, self.frame[half:])
        self.assertEqual(self.sent, [400_000] * 3)
        self.assertEqual((self.buffers.frames, self.closed()), (0, [False] * 3))

    def test_order(self) -> None:
        """Who waits longest goes on first; a frame that fits does not pass one that
        does not."""
        large = encode(Command(SEND, body=bytes(900_000)))
        start = LARGE_FRAME_BYTES + 1
        self.feed(0, self.frame[:start])
        self.feed(1, large[:start])
        self.feed(2, self.frame[:start])
        paused = [connection.paused for connection in self.connections]
        self.assertEqual(paused, [False, True, True])
        self.feed(0, self.frame[start:])
        paused = [connection.paused for connection in self.connections]
        self.assertEqual(paused, [False, False, True])

    def test_beyondBudget(self) -> None:
        """A frame longer than the budget is read when no other is."""
        huge = encode(Command(SEND, body=bytes(3 * BUDGET)))
        self.feed(0, self.frame[:100_000])
        self.feed(1, huge[:200_000])
        self.assertTrue(self.connections[1].paused)
        self.feed(0, self.frame[100_000:])
        at = 200_000
        while at < len(huge):
            at += self.feed(1, huge[at : at + 300_000])
        self.assertEqual(self.sent, [400_000, 3 * BUDGET])

    def test_small(self) -> None:
        """Small frames count as they come; beyond the budget all wait but one."""
        self.many(25)
        small = encode(Command(SEND, body=bytes(60_000)))
        for number in range(20):
            self.feed(number, small[:52_000])
        self.assertTrue(self.buffers.is_full)
        self.feed(20, small)
        self.feed(21, small)
        self.assertEqual(self.sent, [60_000] * 2)
        for number in range(20):
            self.feed(number, small[52_000:])
        self.assertEqual(self.sent, [60_000] * 22)
        self.assertEqual(self.buffers.frames, 0)
        self.assertEqual(self.closed(), [False] * 25)

    def test_smallBeforeLarge(self) -> None:
        """Small frames do not wait for the reservations of large ones."""
        self.many(25)
        for number in range(3):
            self.feed(number, self.frame[:100_000])
        self.feed(3, encode(Command(SEND, body=b"x")))
        self.assertEqual(self.sent, [1])
        small = encode(Command(SEND, body=bytes(60_000)))
        for number in range(4, 9):
            self.feed(number, small[:52_000])
        self.assertTrue(self.buffers.is_full)
        self.feed(10, encode(Command(SEND, body=b"xx")))
        self.assertEqual(self.sent, [1])
        self.feed(0, self.frame[100_000:])
        self.assertEqual(self.sent[:3], [1, 400_000, 2])

    def test_tight(self) -> None:
        """While others wait to be read, little is received at once of whoever has no
        reservation; a large frame takes no more until it has one."""
        self.many(5)
        for number in range(4):
            self.feed(number, self.frame[:100_000])
        kept = [connection.kept for connection in self.connections]
        self.assertEqual(kept[2:4], [LARGE_FRAME_BYTES, TIGHT_RECEIVE_BYTES])
        self.feed(4, encode(Command(SEND, body=bytes(10_000))))
        self.assertEqual(self.sent, [10_000])

    def test_nearlyFull(self) -> None:
        """When frames take nearly all, pulls wait for them; who stalls is closed."""
        huge = encode(Command(SEND, body=bytes(950_000)))
        self.feed(0, huge[:100_000])
        self.feed(1, encode(Command(PULL)))
        self.assertEqual(self.pulled, [])
        self.wait(FIRST_STALLED_SECONDS + LOOK_SECONDS)
        self.assertEqual(self.closed(), [True, False, False])
        self.assertEqual(self.pulled, self.connections[1:2])

    def test_quit(self) -> None:
        """What a connection kept is free when it ends, and who waits goes on."""
        for number in range(3):
            self.feed(number, self.frame[:100_000])
        self.peers[0].close()
        self.step()
        self.assertFalse(self.connections[2].paused)
        self.connections[1].close()
        self.connections[2].abort()
        self.assertEqual(self.buffers.frames, 0)

    def test_pausedGone(self) -> None:
        """One that ends while it waits is forgotten."""
        for number in range(3):
            self.feed(number, self.frame[:100_000])
        self.peers[2].close()
        self.connections[2].abort()
        self.feed(0, self.frame[100_000:])
        self.assertFalse(self.buffers.is_short)

    def test_stalled(self) -> None:
        """Who has a reservation and sends nothing is closed, but only for others."""
        self.feed(0, self.frame[:100_000])
        self.feed(1, self.frame[:100_000])
        self.clock.advance(3 * STALLED_SECONDS)
        self.assertEqual(self.closed(), [False] * 3)
        self.feed(2, self.frame[:100_000])
        self.wait(FIRST_STALLED_SECONDS / 2)
        self.feed(1, self.frame[100_000:350_000])
        self.assertEqual(self.closed(), [False] * 3)
        self.wait(FIRST_STALLED_SECONDS / 2 + LOOK_SECONDS)
        self.assertEqual(self.closed(), [True, False, False])
        self.assertEqual(self.group.counts.stalled, 1)
        self.step()
        self.feed(2, self.frame[100_000:])
        self.assertEqual(self.sent, [400_000])

    def test_senderOfWholeFramesMayPauseForLonger(self) -> None:
        """Who has sent a large frame to its end is not closed as soon as others."""
        self.many(5)
        self.feed(0, self.frame)
        for number in range(5):
            self.feed(number, self.frame[:100_000])
        self.wait(FIRST_STALLED_SECONDS + LOOK_SECONDS)
        self.assertEqual(self.closed(), [False, True, False, False, False])
        self.wait(FRAME_STALLED_SECONDS - FIRST_STALLED_SECONDS)
        self.assertTrue(self.connections[0].closed)

    def test_stalledEnough(self) -> None:
        """Of those who stall only as many are closed as others need, the largest
        first."""
        longer = encode(Command(SEND, body=bytes(450_000)))
        self.feed(0, self.frame[:100_000])
        self.feed(1, longer[:100_000])
        self.feed(2, self.frame[:100_000])
        self.wait(FIRST_STALLED_SECONDS + LOOK_SECONDS)
        self.assertEqual(self.closed(), [False, True, False])
        self.assertFalse(self.connections[2].paused)

    def test_nextFrame(self) -> None:
        """Who has ended a frame has moved, however little there is of the next."""
        self.many(4)
        small = encode(Command(SEND, body=bytes(60_000)))
        self.feed(3, small[:50_000])
        for number in range(3):
            self.feed(number, self.frame[:100_000])
        self.wait(FIRST_STALLED_SECONDS / 2)
        self.feed(0, self.frame[100_000:200_000])
        self.feed(1, self.frame[100_000:200_000])
        self.feed(3, small[50_000:] + small[:1000])
        self.wait(FIRST_STALLED_SECONDS / 2 + LOOK_SECONDS)
        self.assertEqual(self.closed(), [False] * 4)

    def test_notServed(self) -> None:
        """Who has sent what a long turn has left for the next does not stall: it waits
        for us."""
        self.many(4)

        def slow(connection: IConnection, command: Command) -> Answer:
            self.clock.rightNow += 2 * LOOK_SECONDS
            return response_to(command)

        self.group.table.register(RequestCode.VIEW_MESSAGE_BY_ID, slow)
        for number in range(3):
            self.feed(number, self.frame[:100_000])
        self.wait(FIRST_STALLED_SECONDS - LOOK_SECONDS)
        self.peers[3].sendall(encode(Command(RequestCode.VIEW_MESSAGE_BY_ID)))
        self.peers[0].send(self.frame[100_000:])
        self.hub.turn()
        self.assertTrue(self.connections[0].queued)
        self.clock.advance(0)
        self.assertEqual(self.closed(), [False, True, False, False])

    def test_longTurn(self) -> None:
        """A time in which nobody was served does not count as silence."""
        for number in range(3):
            self.feed(number, self.frame[:100_000])
        for _ in range(3):
            self.clock.advance(10 * FIRST_STALLED_SECONDS)
        self.assertEqual(self.closed(), [False] * 3)

    def test_notIdle(self) -> None:
        """Who waits for memory is not closed for being idle."""
        limits = ConnectionLimits(idle_seconds=8 * FIRST_STALLED_SECONDS)
        self.group.limits = limits
        self.group.left(self.connections[0])  # the timer of the old limit
        for connection in self.connections[1:]:
            self.group.left(connection)
        for connection in self.connections:
            self.group.joined(connection)
        for number in range(3):
            self.feed(number, self.frame[:100_000])
        for at in range(22):
            self.wait(2 * LOOK_SECONDS)
            for number in range(2):
                self.feed(number, self.frame[100_000 + at * 13_500 :][:13_500])
        self.assertEqual(self.closed(), [False] * 3)
        self.assertTrue(self.connections[2].paused)

    def test_timerEnds(self) -> None:
        """When nobody waits any more, nobody is watched, and all is received again."""
        for number in range(3):
            self.feed(number, self.frame[:100_000])
        for number in range(3):
            self.feed(number, self.frame[100_000:])
        self.assertEqual(self.buffers.receive_bytes, RECEIVE_BYTES)
        self.clock.advance(STALLED_SECONDS)
        self.clock.advance(STALLED_SECONDS)
        (idle,) = self.clock.getDelayedCalls()
        self.assertGreater(idle.getTime(), 1000)

    def test_shut(self) -> None:
        """When the hub is shut, nobody is watched any more."""
        for number in range(3):
            self.feed(number, self.frame[:100_000])
        self.hub.shut()
        self.assertEqual(self.clock.getDelayedCalls(), [])


class CrowdTests(BufferCase):
    """Many who send part of a large frame, beside one who sends whole ones."""

    def setUp(self) -> None:
        """Two frames of 400,000 bytes fit at once."""
        super().setUp()
        self.frame = encode(Command(SEND, body=bytes(400_000)))

    def crowd(self, count: int) -> None:
        """So many more send 100,000 bytes, or as much as is read, and stop."""
        first = len(self.connections)
        self.many(first + count)
        for number in range(first, first + count):
            self.feed(number, self.frame[:100_000])

    def seconds_until_sent(self, number: int, trickle: int = 0) -> float:
        """How long it takes until a whole frame of a connection is taken.

        @param trickle: so many bytes more all others send each time they are looked at.
        """
        done, before, began = 0, len(self.sent), self.clock.seconds()
        while len(self.sent) == before:
            done += self.feed(number, self.frame[done:])
            self.wait(LOOK_SECONDS)
            if trickle:
                for peer in self.peers[:number] + self.peers[number + 1 :]:
                    with contextlib.suppress(OSError):
                        peer.send(bytes(trickle))
            self.assertLessEqual(self.buffers.frames, BUDGET + RECEIVE_BYTES)
            self.assertLess(self.clock.seconds() - began, 60)
        return self.clock.seconds() - began

    def test_senderOfWholeFramesDoesNotWaitForCrowd(self) -> None:
        """Who has sent a large frame to its end waits for two that stall, not for the
        many that came before."""
        self.many(1)
        self.feed(0, self.frame)
        self.crowd(40)
        self.assertLess(self.seconds_until_sent(0), 8)
        self.assertLess(self.seconds_until_sent(0), 8)
        self.assertFalse(self.connections[0].closed)

    def test_otherAddressDoesNotWaitForCrowd(self) -> None:
        """Who has sent nothing yet does not wait for the many of another address."""
        self.crowd(40)
        self.connections.append(self.connect(host="5.6.7.8"))
        self.assertLess(self.seconds_until_sent(40), 8)

    def test_crowdOfOneNetworkIsOneLine(self) -> None:
        """The addresses that one host may choose in its IPv6 network count as one."""
        for number in range(40):
            self.connections.append(self.connect(host=f"2001:db8::{number:x}"))
            self.feed(number, self.frame[:100_000])
        self.connections.append(self.connect(host="2001:db8:0:1::1"))
        self.assertLess(self.seconds_until_sent(40), 8)

    def test_trickleIsNoMovement(self) -> None:
        """A frame that would take longer than half a minute is closed for others."""
        self.many(1)
        self.feed(0, self.frame)
        self.crowd(40)
        self.assertLess(self.seconds_until_sent(0, trickle=3000), 8)

    def test_logHasOneLineInSecond(self) -> None:
        """However many are closed, and whenever; the first of them are named."""
        self.crowd(40)
        with capturedLogs() as events:
            self.wait(8)
        lines = [formatEvent(each) for each in events]
        self.assertLess(len(lines), 10)
        found = re.findall("Closed ([0-9]+) connections that kept memory, ", str(lines))
        self.assertEqual(len(found), len(lines))
        self.assertGreater(sum(map(int, found)), 4)
        self.assertIn("moved next to nothing: 1.2.3.4:1 (", lines[0])

    def test_closedCrowdIsForgotten(self) -> None:
        """Those who wait and are closed leave their places."""
        self.crowd(40)
        for connection in self.connections[10:]:
            connection.abort()
        self.wait(LOOK_SECONDS)
        self.assertLess(self.buffers.waiting, 10)


class AnswerTests(BufferCase):
    """Answers that nobody reads."""

    def setUp(self) -> None:
        """Two of four pulls fill half of the budget."""
        super().setUp()
        self.many(5)

    def pull_all(self, count: int) -> None:
        """One pull by each of so many."""
        for number in range(count):
            self.feed(number, encode(Command(PULL, opaque=number)))

    def test_wait(self) -> None:
        """While half of the budget is unread, no pull is begun; then they are."""
        self.pull_all(4)
        self.assertEqual(self.pulled, self.connections[:2])
        self.assertTrue(self.connections[0].crowded)
        self.read(0, ANSWER_BYTES)
        self.assertEqual(self.pulled, self.connections[:3])
        self.read(1, ANSWER_BYTES)
        self.assertEqual(self.pulled, self.connections[:4])
        self.assertEqual(self.closed(), [False] * 5)

    def test_sendsGoOn(self) -> None:
        """Sends, also of batches, and others with small answers go on meanwhile."""
        self.pull_all(2)
        self.feed(4, encode(Command(SEND, body=b"x")))
        self.feed(4, encode(Command(BATCH, body=b"xx")))
        self.feed(4, encode(Command(RequestCode.HEART_BEAT)))
        self.assertEqual(self.sent, [1, 2])
        answer = decode(self.peers[4].recv(1000)[4:])
        self.assertEqual(answer.code, ResponseCode.SUCCESS)

    def test_general(self) -> None:
        """Other requests with large answers are refused with a sentence."""
        self.pull_all(2)
        self.feed(4, encode(Command(RequestCode.VIEW_MESSAGE_BY_ID, opaque=7)))
        answer = decode(self.peers[4].recv(1000)[4:])
        self.assertEqual((answer.opaque, answer.code), (7, ResponseCode.SYSTEM_BUSY))
        self.assertEqual(
            answer.remark,
            "[OVERLOAD]system busy, start flow control for a while, unread answers "
            "take too much memory",
        )

    def test_frameAfter(self) -> None:
        """Requests behind a pull that waits wait with it, in their order."""
        self.pull_all(2)
        frames = [Command(PULL), Command(SEND, body=b"x"), Command(SEND, body=b"xx")]
        self.feed(2, b"".join(map(encode, frames)))
        self.assertEqual(self.sent, [])
        self.read(0, ANSWER_BYTES)
        self.assertEqual(self.sent, [1, 2])

    def test_stalled(self) -> None:
        """Who reads nothing while others wait is closed; who reads slowly is not."""
        self.pull_all(2)
        self.clock.advance(3 * STALLED_SECONDS)
        self.assertEqual(self.closed(), [False] * 5)
        self.feed(2, encode(Command(PULL)))
        self.wait(STALLED_SECONDS / 2)
        self.read(1, 170_000)
        self.wait(STALLED_SECONDS / 2 + LOOK_SECONDS)
        self.assertEqual(self.closed(), [True, False, False, False, False])
        self.step()
        self.assertEqual(self.pulled[2:], self.connections[2:3])

    def test_memoryOfRest(self) -> None:
        """A rest counts as what it keeps in memory, and keeps no more than twice it."""
        self.pull_all(1)
        connection = self.connections[0]
        whole = self.buffers.answers
        self.assertGreater(whole, ANSWER_BYTES)
        self.read(0, ANSWER_BYTES // 4)
        self.assertEqual(self.buffers.answers, whole)
        self.read(0, ANSWER_BYTES // 2)
        self.assertLess(self.buffers.answers, 2 * connection.unsent + 1)
        self.read(0, ANSWER_BYTES)
        self.assertEqual((self.buffers.answers, connection.unsent), (0, 0))

    def congest(self) -> None:
        """A pull of connection 2 waits; then it is congested by an older answer."""
        self.group.limits = ConnectionLimits(idle_seconds=1e6, high_water=200_000)
        self.pull_all(3)
        self.connections[2].send(encode(Command(0, body=bytes(300_000))))
        self.step()
        self.assertTrue(self.connections[2].congested)

    def test_pausedAfterCongested(self) -> None:
        """Who has read enough waits for memory all the same, and is left alone."""
        self.congest()
        self.read(2, 300_000)
        self.assertFalse(self.connections[2].congested)
        self.assertEqual((len(self.pulled), self.buffers.pauses), (2, 1))
        self.read(0, ANSWER_BYTES)
        self.assertEqual(len(self.pulled), 3)

    def test_congestedAfterPaused(self) -> None:
        """When there is memory again, who does not read its answers waits for that."""
        self.congest()
        self.read(0, ANSWER_BYTES)
        self.read(1, ANSWER_BYTES)
        self.assertFalse(self.connections[2].paused)
        self.assertEqual(len(self.pulled), 2)
        self.read(2, 300_000)
        self.assertEqual(len(self.pulled), 3)

    def test_taken(self) -> None:
        """A large answer counts until the kernel takes it, small ones if it does not;
        they are sent together."""
        connection = self.connect(1 << 18)
        connection.send(bytes(LARGE_ANSWER_BYTES))
        self.assertEqual(self.buffers.answers, LARGE_ANSWER_BYTES)
        self.hub.turn()
        self.assertEqual(self.buffers.answers, 0)
        for _ in range(4):
            self.connections[0].send(bytes(LARGE_ANSWER_BYTES - 1))
        self.assertEqual(self.buffers.answers, 0)
        self.hub.turn()
        self.assertGreater(self.buffers.answers, 0)

    def test_outsideTurn(self) -> None:
        """Answers that are sent outside turns count at once."""
        for connection in self.connections[:2]:
            connection.send(encode(Command(0, body=bytes(ANSWER_BYTES))))
        self.assertTrue(self.buffers.is_crowded)
        for connection in self.connections[:2]:
            connection.abort()
        self.assertEqual(self.buffers.answers, 0)


class LongHeaderTests(BufferCase):
    """Headers that are not read."""

    def test_closed(self) -> None:
        """A frame whose header is too long is no frame, as soon as that is known."""
        self.many(2)
        start = (1_000_000).to_bytes(4, "big")
        self.feed(0, start)
        self.assertFalse(self.connections[0].closed)
        self.feed(0, (999_000).to_bytes(4, "big"))
        self.assertTrue(self.connections[0].closed)
        self.assertEqual((self.group.counts.broken, self.buffers.frames), (1, 0))
