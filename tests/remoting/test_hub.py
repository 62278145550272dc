"""The hub: hot responders, turns over many connections, and what it survives."""

from __future__ import annotations

import socket
from select import select

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from rocketbroker.remoting.buffers import RECEIVE_BYTES
from rocketbroker.remoting.command_channel import CommandChannel
from rocketbroker.remoting.connection_group import ConnectionGroup, ConnectionLimits
from rocketbroker.remoting.hubconnection import LARGE_FRAME
from rocketbroker.remoting.interfaces import Answer, IConnection, ITurns
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.wire.command import ONEWAY, RESPONSE, Command, response_to
from rocketbroker.wire.connection import Connection
from rocketbroker.wire.frames import decode, encode
from tests.remoting.wires import HubWire

SEND = 310
PULL = 11


def read(peer: socket.socket) -> list[Command]:
    """The whole frames that a peer can receive now."""
    try:
        return Connection().receive(peer.recv(1 << 20))
    except BlockingIOError:
        return []


class HubTests(SynchronousTestCase):
    """Over socket pairs, turn by turn."""

    def setUp(self) -> None:
        """Hot responders for two codes, and a general one for each."""
        self.hot_seen: list[tuple[bytes, bytes]] = []
        self.seen: list[int] = []
        self.queued: list[tuple[IConnection, Command]] = []
        table = ResponderTable()
        table.register_hot(SEND, self.hot)
        table.register_hot(PULL, self.hot)
        table.register(SEND, self.general)
        table.register(PULL, self.general)
        table.register(105, self.general)
        self.table = table
        limits = ConnectionLimits(high_water=500_000, low_water=100_000)
        self.wire = HubWire(table, limits)
        self.hub = self.wire.hub
        self.group = self.wire.group
        self.hub.watch_turn_end(self.answer_all)
        self.readable = True

    def tearDown(self) -> None:
        """No descriptor is left open."""
        self.wire.end()

    def hot(self, connection: IConnection, header: bytes, body: bytes) -> bool:
        if not self.readable:
            return False
        self.hot_seen.append((header, body))
        words = len(header).to_bytes(4, "big") + header + body
        self.queued.append((connection, decode(words)))
        return True

    def general(self, connection: IConnection, command: Command) -> Answer:
        self.seen.append(command.code)
        return response_to(command, body=b"general")

    def answer_all(self) -> None:
        for connection, command in self.queued:
            connection.send(encode(response_to(command, body=b"hot")))
        self.queued.clear()

    def exchange(self, *commands: Command, serialization: int = 0) -> list[Command]:
        frames = [encode(command, serialization) for command in commands]
        self.wire.feed(b"".join(frames))
        return self.wire.commands()

    def test_interface(self) -> None:
        """It is what services register their turn ends with."""
        verifyObject(ITurns, self.hub)

    def test_within(self) -> None:
        """What a timer answers within a turn of its own goes out at its end, not in the
        reactor's next round; and what it asks for at the end of a turn is done."""
        command = Command(SEND, flag=RESPONSE)

        def work() -> None:
            self.wire.connection.send(encode(command))
            self.queued.append((self.wire.connection, command))

        self.hub.within(work)
        self.assertEqual(len(read(self.wire.peer)), 2)
        self.wire.connection.send(encode(command))
        self.assertEqual(read(self.wire.peer), [])

    def test_withinTurn(self) -> None:
        """Within a turn it belongs to that: what is sent goes out together."""
        sent: list[int] = []

        def work() -> None:
            self.wire.connection.send(encode(Command(SEND, flag=RESPONSE)))
            sent.append(len(read(self.wire.peer)))

        self.hub.watch_turn_end(lambda: self.hub.within(work))
        self.hub.turn()
        self.assertEqual(sent, [0])
        self.assertEqual(len(read(self.wire.peer)), 1)

    def test_withinFails(self) -> None:
        """An error in it is the caller's; what was sent before goes out."""

        def work() -> None:
            self.wire.connection.send(encode(Command(SEND, flag=RESPONSE)))
            raise ValueError("wrong")

        self.assertRaises(ValueError, self.hub.within, work)
        self.assertEqual(len(read(self.wire.peer)), 1)

    # Hot responders.

    def test_hot(self) -> None:
        """A hot responder gets header and body, and answers within the turn."""
        request = Command(SEND, {"b": "T"}, b"body", opaque=7)
        (answer,) = self.exchange(request)
        self.assertEqual((answer.opaque, answer.body), (7, b"hot"))
        ((header, body),) = self.hot_seen
        self.assertEqual(encode(request)[8:], header + body)
        self.assertEqual(body, b"body")
        self.assertEqual(self.seen, [])

    def test_hotTwoDigits(self) -> None:
        """So does one for a code of two digits."""
        (answer,) = self.exchange(Command(PULL, {}))
        self.assertEqual(answer.body, b"hot")

    def test_hotCounted(self) -> None:
        """What it took is counted, with the duration of the turn."""
        self.exchange(Command(SEND), Command(SEND), Command(PULL), Command(105))
        counted = {key: each.count for key, each in self.table.latencies.items()}
        self.assertEqual(counted, {(SEND, 0): 2, (PULL, 0): 1, (105, 0): 1})
        self.assertEqual(self.group.counts.frames_in, 4)

    def test_hotDeclines(self) -> None:
        """What a hot responder cannot read goes to the general one."""
        self.readable = False
        (answer,) = self.exchange(Command(SEND, opaque=7))
        self.assertEqual((answer.opaque, answer.body), (7, b"general"))
        self.assertEqual(self.table.latencies[SEND, 0].count, 1)

    def test_hotOnlyJson(self) -> None:
        """A binary header goes the general way."""
        (answer,) = self.exchange(Command(SEND, opaque=7), serialization=1)
        self.assertEqual((answer.opaque, answer.body), (7, b"general"))

    def test_hotOtherForms(self) -> None:
        """So does a header that does not begin with its code."""
        header = b'{ "code":310,"opaque":7}'
        words = (4 + len(header)).to_bytes(4, "big") + len(header).to_bytes(4, "big")
        self.wire.feed(words + header)
        (answer,) = self.wire.commands()
        self.assertEqual(answer.body, b"general")

    def test_hotFails(self) -> None:
        """One that raises is answered code 1, and only this request is."""

        def wrong(connection: IConnection, header: bytes, body: bytes) -> bool:
            raise ValueError("wrong")

        self.table.register_hot(320, wrong)
        answers = self.exchange(Command(320, opaque=1), Command(SEND, opaque=2))
        self.assertEqual([(a.opaque, a.code) for a in answers], [(1, 1), (2, 0)])
        self.assertEqual(answers[0].remark, "ValueError: wrong")
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)

    def test_hotFailsUnreadable(self) -> None:
        """One that raises on what is no header closes the connection, as ever."""

        def wrong(connection: IConnection, header: bytes, body: bytes) -> bool:
            raise ValueError("wrong")

        self.table.register_hot(320, wrong)
        header = b'{"code":320,"'
        words = (4 + len(header)).to_bytes(4, "big") + len(header).to_bytes(4, "big")
        self.wire.feed(words + header)
        self.assertTrue(self.wire.ended())
        self.assertEqual(self.group.counts.broken, 1)

    def test_hotHeaderBeyondFrame(self) -> None:
        """A header longer than its frame is not given to a hot responder."""
        header = b'{"code":310,"opaque":1}'
        words = (4 + len(header)).to_bytes(4, "big") + (99).to_bytes(4, "big")
        self.wire.feed(words + header + encode(Command(SEND)))
        self.assertEqual(self.hot_seen, [])
        self.assertTrue(self.wire.ended())

    # Turns.

    def test_oneTurn(self) -> None:
        """One turn serves all that are ready, and each with one write."""
        peers = [self.wire.another()[0] for _ in range(5)]
        for peer in peers:
            peer.send(encode(Command(SEND, opaque=1)) + encode(Command(105, opaque=2)))
        before = self.hub.turn_count
        self.hub.doRead()
        self.assertEqual(self.hub.turn_count, before + 1)
        for peer in peers:
            # the general answer was queued first, the hot one at the turn's end
            self.assertEqual([a.opaque for a in read(peer)], [2, 1])
            peer.close()

    def test_oneWrite(self) -> None:
        """Answers wait for the end of the turn."""
        peer, _ = self.wire.another()
        early: list[int] = []

        def send(other: IConnection, command: Command) -> Answer:
            other.send(encode(Command(0, opaque=1, flag=RESPONSE)))
            early.append(len(read(peer)))
            return None

        self.table.register(105, send)
        peer.send(encode(Command(105)) * 2)
        self.hub.doRead()
        self.assertEqual(early, [0, 0])
        self.assertEqual(len(read(peer)), 2)
        self.assertEqual(self.group.counts.frames_out, 2)
        peer.close()

    def test_receivesOnce(self) -> None:
        """A connection that sends much does not keep a turn to itself."""
        self.wire.peer.send(encode(Command(105, body=bytes(10000), flag=ONEWAY)) * 12)
        self.hub.doRead()
        self.assertEqual(self.group.counts.bytes_in, RECEIVE_BYTES)
        self.wire.step()
        self.assertEqual(len(self.seen), 12)

    def test_sendOutsideTurn(self) -> None:
        """What is sent outside a turn goes out with the next call of the reactor."""
        self.wire.connection.send(encode(Command(0, opaque=1)))
        self.wire.connection.send(encode(Command(0, opaque=2)))
        self.assertEqual(read(self.wire.peer), [])
        self.assertEqual(len(self.wire.reactor.getDelayedCalls()), 2)  # and idleness
        self.wire.reactor.advance(0)
        self.assertEqual([c.opaque for c in read(self.wire.peer)], [1, 2])

    def test_turnEndFails(self) -> None:
        """A service that fails at the end of a turn does not stop the hub."""

        def wrong() -> None:
            raise ValueError("wrong")

        self.hub.watch_turn_end(wrong)
        self.assertEqual(len(self.exchange(Command(SEND))), 1)
        self.assertTrue(self.flushLoggedErrors(ValueError))

    def test_largeAnswers(self) -> None:
        """Large answers and small ones keep their order."""
        connection = self.wire.connection
        sizes = [LARGE_FRAME * 2, 10, LARGE_FRAME * 3, 20]
        for n, size in enumerate(sizes):
            connection.send(encode(Command(0, opaque=n, body=bytes(size))))
        answers = self.wire.commands()
        self.assertEqual(
            [(a.opaque, len(a.body)) for a in answers], list(enumerate(sizes))
        )
        self.assertEqual(self.group.counts.frames_out, 4)

    # Congestion.

    def test_congestedBytesWait(self) -> None:
        """Frames that came before a congestion wait, and are served after it."""

        def big(connection: IConnection, command: Command) -> Answer:
            self.seen.append(command.opaque)
            return response_to(command, body=bytes(300_000))

        self.table.register(105, big)
        self.wire.pause()
        self.wire.feed(b"".join(encode(Command(105, opaque=n)) for n in range(9)))
        self.assertEqual(self.seen, [0, 1])
        self.assertTrue(self.wire.connection.congested)
        self.wire.resume()
        self.assertEqual([a.opaque for a in self.wire.commands()], list(range(9)))

    def test_congestedQuiet(self) -> None:
        """Requests of a peer that became congested answer by answer wake nobody."""
        self.wire.pause()
        for _ in range(4):
            self.wire.connection.send(bytes(200_000))
            self.wire.step()
        self.assertTrue(self.wire.connection.congested)
        self.wire.peer.sendall(encode(Command(105)))
        self.assertEqual(select([self.hub], [], [], 0)[0], [])
        self.assertEqual(self.seen, [])

    def test_congestedAndGone(self) -> None:
        """A congested peer that goes away is noticed."""
        self.wire.pause()
        self.wire.connection.send(encode(Command(0, body=bytes(600_000))))
        self.wire.step()
        self.assertTrue(self.wire.connection.congested)
        self.wire.hang_up()
        self.assertTrue(self.wire.connection.closed)
        self.assertEqual(self.group.connections, set())

    def test_othersGoOn(self) -> None:
        """One that does not read disturbs nobody else."""
        peer, _ = self.wire.another()
        self.wire.pause()
        self.wire.connection.send(encode(Command(0, body=bytes(600_000))))
        self.wire.step()
        peer.send(encode(Command(SEND, opaque=3)))
        self.wire.step()
        self.assertEqual([a.opaque for a in read(peer)], [3])
        peer.close()

    # Ends.

    def test_brokenAlone(self) -> None:
        """Garbage closes its own connection and no other."""
        peer, other = self.wire.another()
        self.wire.feed(b"\xff" * 100)
        self.assertTrue(self.wire.connection.closed)
        peer.send(encode(Command(SEND, opaque=3)))
        self.wire.step()
        self.assertEqual([a.opaque for a in read(peer)], [3])
        self.assertFalse(other.closed)
        peer.close()

    def test_closedByAnother(self) -> None:
        """A connection that another one's request closes is served no more."""
        peer, other = self.wire.another()

        def close_all(connection: IConnection, command: Command) -> Answer:
            self.seen.append(command.code)
            self.wire.connection.close()
            other.close()
            return None

        self.table.register(105, close_all)
        peer.send(encode(Command(105)))
        self.wire.feed(encode(Command(105)))
        self.assertEqual(self.seen, [105])
        self.assertEqual(self.group.connections, set())
        peer.close()

    def test_ourMistake(self) -> None:
        """An error of our own ends that connection only, and is logged."""
        # A group without limits stands for whatever we did not foresee.
        group = ConnectionGroup(
            self.group.clock, self.table, ConnectionLimits(), self.group.turns
        )
        ours, peer = socket.socketpair()
        connection = self.hub.adopt(ours, group, "127.0.0.1", 1)
        group.limits = None  # type: ignore[assignment]
        peer.send(encode(Command(105)))
        self.wire.feed(encode(Command(SEND, opaque=3)))
        self.assertEqual([a.opaque for a in self.wire.commands()], [3])
        self.assertTrue(connection.closed)
        self.assertEqual(len(self.flushLoggedErrors(AttributeError)), 1)
        peer.close()

    def test_reader(self) -> None:
        """The reactor sees one reader, whatever the number of connections."""
        self.wire.another()[0].close()
        self.assertEqual(self.wire.reactor.getReaders(), [self.hub])
        self.hub.shut()
        self.assertEqual(self.wire.reactor.getReaders(), [])

    def test_shut(self) -> None:
        """Shutting closes everybody; twice does no harm."""
        heard: list[IConnection] = []
        self.wire.connection.watch_close(heard.append)
        self.wire.connection.send(b"lost")
        self.hub.connectionLost(None)
        self.hub.shut()
        self.assertEqual(heard, [self.wire.connection])
        self.assertEqual(self.wire.reactor.getDelayedCalls(), [])

    def test_noDictionary(self) -> None:
        """
        A connection has no dictionary of its own: with as many attributes as it has,
        Python would not share the keys, and each would cost 1.3 KiB more.
        """
        self.assertFalse(hasattr(self.wire.connection, "__dict__"))

    def test_idleOne(self) -> None:
        """Each connection has its own idle time."""
        self.wire.pass_time(60)
        peer, other = self.wire.another()
        self.wire.pass_time(61)
        self.assertTrue(self.wire.connection.closed)
        self.assertFalse(other.closed)
        self.wire.pass_time(58)
        self.assertFalse(other.closed)
        self.wire.pass_time(2)
        self.assertTrue(other.closed)
        peer.close()


class PartialTests(SynchronousTestCase):
    """Frames in pieces, at every cut."""

    def test_everyCut(self) -> None:
        """Two frames cut anywhere are two frames."""
        first = encode(Command(105, {"k": "v"}, b"body", opaque=1))
        frames = first + encode(Command(106, opaque=2))
        for cut in range(1, len(frames)):
            seen: list[int] = []
            table = ResponderTable()

            def note(
                connection: IConnection, command: Command, seen: list[int] = seen
            ) -> Answer:
                seen.append(command.opaque)
                return None

            table.register(105, note)
            table.register(106, note)
            wire = HubWire(table, ConnectionLimits())
            self.addCleanup(wire.end)
            wire.feed(frames[:cut])
            self.assertEqual(seen, [1] if cut >= len(first) else [])
            wire.feed(frames[cut:])
            self.assertEqual(seen, [1, 2])
            self.assertIsInstance(wire.connection, CommandChannel)
