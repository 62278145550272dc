# -*- test-case-name: tests.remoting.test_contract -*-
"""The contract of connections: what each does, whichever way its bytes travel.

Our own connections that run it: one of the hub, over a socket pair whose turns the test
makes by hand, one of the memory network, and one that a worker relays.
"""

from __future__ import annotations

from twisted.internet.defer import Deferred
from zope.interface.verify import verifyObject

from rocketbroker.errors import (
    ConnectionLost,
    RemoteProtocolError,
    RequestTimeout,
    SystemBusy,
)
from rocketbroker.remoting.connection_group import ConnectionLimits
from rocketbroker.remoting.interfaces import Answer, IConnection
from rocketbroker.remoting.response_table import TooManyRequests
from rocketbroker.remoting.table import NOT_SERVED, ResponderTable
from rocketbroker.testing.contracts.case import Contract
from rocketbroker.testing.contracts.wire import Wire
from rocketbroker.wire.command import ONEWAY, RESPONSE, Command, response_to
from rocketbroker.wire.connection import Connection
from rocketbroker.wire.frames import encode

ECHO, LATER, BROKEN, BUSY, BIG, SILENT, LOST = range(105, 112)


class ConnectionContract(Contract):
    """The suite of L{IConnection}, with the test as the peer; a test class makes the
    connection with L{wire}.
    """

    def wire(self, table: ResponderTable, limits: ConnectionLimits) -> Wire:
        """Make a connection.

        @param table: what serves the peer's requests.
        @param limits: what its group allows.
        """
        raise AssertionError("a test class makes its own connection")

    def setUp(self) -> None:
        """Responders that show each kind of answer."""
        self.seen: list[Command] = []
        self.later: Deferred[Command | None] = Deferred()
        table = ResponderTable()
        table.register(ECHO, self.echo)
        table.register(LATER, lambda connection, command: self.later)
        table.register(BROKEN, self.broken)
        table.register(BUSY, self.busy)
        table.register(BIG, self.big)
        table.register(SILENT, lambda connection, command: None)
        self.table = table
        self.limits = ConnectionLimits(
            frame_bytes=1000_000,
            high_water=100_000,
            low_water=20_000,
            under_way=2,
            requests=3,
            idle_seconds=120,
        )
        self.w = self.wire(table, self.limits)
        self.connection = self.w.connection
        self.group = self.connection.group

    def tearDown(self) -> None:
        """Nothing is left behind."""
        self.w.end()

    def echo(self, connection: IConnection, command: Command) -> Answer:
        self.seen.append(command)
        return response_to(command, ext=command.ext, body=command.body)

    def broken(self, connection: IConnection, command: Command) -> Answer:
        raise ValueError("out of order")

    def busy(self, connection: IConnection, command: Command) -> Answer:
        raise SystemBusy("come back later")

    def big(self, connection: IConnection, command: Command) -> Answer:
        self.seen.append(command)
        return response_to(command, body=bytes(int((command.ext or {})["size"])))

    def exchange(self, *commands: Command) -> list[Command]:
        """Send commands as the peer; what comes back."""
        self.w.feed(b"".join(encode(command) for command in commands))
        return self.w.commands()

    # Who it is.

    def test_interface(self) -> None:
        """It provides IConnection."""
        verifyObject(IConnection, self.connection)

    def test_peer(self) -> None:
        """It says who the other side is, as text and as a record stores it."""
        host, _, port = self.connection.peer.rpartition(":")
        self.assertEqual(host, "127.0.0.1")
        packed = b"\x7f\x00\x00\x01" + int(port).to_bytes(4, "big")
        self.assertEqual(self.connection.peer_host, packed)

    def test_localHostIsKnownWhereThereIsOne(self) -> None:
        """A socket pair has none; nobody has one when it is closed."""
        self.assertIn(self.connection.local_host(), ("127.0.0.1", ""))
        self.connection.abort()
        self.assertEqual(self.connection.local_host(), "")

    # Requests of the peer.

    def test_answer(self) -> None:
        """An answer has the request's opaque and the response flag."""
        (answer,) = self.exchange(Command(ECHO, {"k": "v"}, b"body", opaque=-7))
        self.assertEqual((answer.opaque, answer.flag), (-7, RESPONSE))
        self.assertEqual((answer.ext, answer.body), ({"k": "v"}, b"body"))

    def test_orderAndPieces(self) -> None:
        """Frames that arrive byte by byte are answered in their order."""
        frames = b"".join(
            encode(Command(ECHO, opaque=n, body=b"x" * n)) for n in range(5)
        )
        for at in range(len(frames)):
            self.w.feed(frames[at : at + 1])
        self.assertEqual([c.opaque for c in self.w.commands()], [0, 1, 2, 3, 4])
        self.assertEqual(self.group.counts.frames_in, 5)
        self.assertEqual(self.group.counts.bytes_in, len(frames))

    def test_manyInOne(self) -> None:
        """Frames that arrive together are all answered, with bytes left over."""
        frames = b"".join(encode(Command(ECHO, opaque=n)) for n in range(50))
        self.w.feed(frames[:-1])
        self.assertEqual(len(self.w.commands()), 49)
        self.w.feed(frames[-1:])
        self.assertEqual([c.opaque for c in self.w.commands()], [49])

    def test_large(self) -> None:
        """A frame of many reads arrives whole."""
        body = bytes(range(256)) * 3000
        self.w.feed(encode(Command(ECHO, body=body, flag=ONEWAY)))
        self.assertEqual(self.seen[0].body, body)

    def test_binaryHeader(self) -> None:
        """A request with a binary header is answered with a JSON header."""
        self.w.feed(encode(Command(ECHO, {"k": "v"}, opaque=5), 1))
        frame = self.w.taken()
        self.assertEqual(frame[4], 0)
        (answer,) = Connection().receive(frame)
        self.assertEqual((answer.opaque, answer.ext), (5, {"k": "v"}))

    def test_notSupported(self) -> None:
        """A code that nobody answers: 3, with the code in the remark."""
        (answer,) = self.exchange(Command(4711, opaque=9))
        self.assertEqual((answer.code, answer.opaque), (3, 9))
        self.assertEqual(answer.remark, " request type 4711 not supported")

    def test_brokerError(self) -> None:
        """A BrokerError becomes its code and remark; nothing is logged."""
        (answer,) = self.exchange(Command(BUSY, opaque=9))
        self.assertEqual((answer.code, answer.remark), (2, "come back later"))
        self.assertEqual(answer.opaque, 9)

    def test_unexpectedError(self) -> None:
        """Any other failure: code 1 and its words; the traceback is ours alone."""
        (answer,) = self.exchange(Command(BROKEN, opaque=9))
        self.assertEqual((answer.code, answer.opaque), (1, 9))
        self.assertEqual(answer.remark, "ValueError: out of order")
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)
        self.assertEqual(self.group.counts.failed, 1)

    def test_badBody(self) -> None:
        """A body that makes no sense: code 1 and why; no traceback anywhere."""

        def refuse(connection: IConnection, command: Command) -> Answer:
            raise RemoteProtocolError("a body that is no list")

        self.table.register(LOST, refuse)
        (answer,) = self.exchange(Command(LOST))
        self.assertEqual(answer.code, 1)
        self.assertEqual(answer.remark, "RemoteProtocolError: a body that is no list")
        self.assertFalse(self.connection.closed)

    def test_oneway(self) -> None:
        """To a oneway request nothing is answered, not even an error."""
        requests = [
            Command(code, flag=ONEWAY) for code in (ECHO, BUSY, BROKEN, 4711, LATER)
        ]
        self.assertEqual(self.exchange(*requests), [])
        self.later.errback(SystemBusy("no"))
        self.assertEqual(self.w.commands(), [])
        self.flushLoggedErrors(ValueError)

    def test_later(self) -> None:
        """A Deferred answer goes out when it fires; others overtake it."""
        (first,) = self.exchange(Command(LATER, opaque=1), Command(ECHO, opaque=2))
        self.assertEqual(first.opaque, 2)
        self.later.callback(Command(0, body=b"at last"))
        (second,) = self.w.commands()
        self.assertEqual((second.opaque, second.body), (1, b"at last"))
        self.assertEqual(self.connection.under_way, 0)

    def test_laterFails(self) -> None:
        """A Deferred that fails is answered as an exception is."""
        self.exchange(Command(LATER, opaque=1))
        self.later.errback(SystemBusy("no"))
        (answer,) = self.w.commands()
        self.assertEqual((answer.code, answer.remark), (2, "no"))

    def test_laterNothing(self) -> None:
        """A Deferred of None is no answer."""
        self.exchange(Command(LATER, opaque=1))
        self.later.callback(None)
        self.assertEqual(self.w.commands(), [])

    def test_silent(self) -> None:
        """A responder that returns None answers itself, or never."""
        self.assertEqual(self.exchange(Command(SILENT)), [])

    def test_tooManyUnderWay(self) -> None:
        """More requests under way than allowed: 2, and the others go on."""
        answers = self.exchange(*(Command(LATER, opaque=n) for n in range(3)))
        self.assertEqual([(a.opaque, a.code) for a in answers], [(2, 2)])
        remark = answers[0].remark or ""
        self.assertTrue(
            remark.startswith("[OVERLOAD]system busy, start flow control for a while")
        )
        self.assertEqual(self.group.counts.overloaded, 1)

    def test_answerTooLarge(self) -> None:
        """An answer longer than a frame may be becomes code 1 with the reason."""
        (answer,) = self.exchange(Command(BIG, {"size": "1000000"}, opaque=3))
        self.assertEqual((answer.code, answer.opaque), (1, 3))
        self.assertIn("the most is 1000000", answer.remark or "")

    def test_latencies(self) -> None:
        """Answers are counted by request code and response code."""
        self.exchange(Command(ECHO), Command(ECHO), Command(BUSY), Command(4711))
        counted = {key: each.count for key, each in self.table.latencies.items()}
        self.assertEqual(counted, {(ECHO, 0): 2, (BUSY, 2): 1, (NOT_SERVED, 3): 1})

    def test_turnEnd(self) -> None:
        """The end of a turn comes after its requests, before the answers leave."""
        order: list[int] = []

        def end() -> None:
            if len(self.seen) > len(order):
                order.append(len(self.seen))
                self.connection.send(encode(Command(0, opaque=77, flag=RESPONSE)))

        self.group.turns.watch_turn_end(end)
        answers = self.exchange(Command(ECHO, opaque=1), Command(ECHO, opaque=2))
        self.assertEqual(order, [2])
        self.assertEqual([a.opaque for a in answers], [1, 2, 77])

    # Requests of ours.

    def test_request(self) -> None:
        """The answer to a request of ours is found by its opaque."""
        first = self.connection.request(Command(40, {"a": "b"}), 5)
        second = self.connection.request(Command(41), 5)
        sent = self.w.commands()
        self.assertEqual([(c.code, c.flag) for c in sent], [(40, 0), (41, 0)])
        self.assertNotEqual(sent[0].opaque, sent[1].opaque)
        self.w.feed(encode(response_to(sent[1], body=b"two")))
        self.w.feed(encode(response_to(sent[0], 22, "none")))
        self.assertEqual(self.successResultOf(second).body, b"two")
        self.assertEqual(self.successResultOf(first).code, 22)

    def test_requestTimeout(self) -> None:
        """No answer in time: RequestTimeout; one that comes later is dropped."""
        waiting = self.connection.request(Command(40), 5)
        (sent,) = self.w.commands()
        self.w.pass_time(4.9)
        self.assertNoResult(waiting)
        self.w.pass_time(0.2)
        self.failureResultOf(waiting, RequestTimeout)
        self.w.feed(encode(response_to(sent)))
        self.assertEqual(self.group.counts.stray, 1)

    def test_requestLost(self) -> None:
        """A connection that goes away fails what waits on it."""
        waiting = self.connection.request(Command(40), 5)
        self.w.hang_up()
        self.failureResultOf(waiting, ConnectionLost)
        self.assertEqual(self.group.counts.lost, 1)

    def test_requestWhenClosed(self) -> None:
        """A request over a closed connection fails at once."""
        self.connection.close()
        self.failureResultOf(self.connection.request(Command(40), 5), ConnectionLost)

    def test_tooManyRequests(self) -> None:
        """More requests of ours than allowed fail at once and are not sent."""
        waiting = [self.connection.request(Command(40), 5) for _ in range(4)]
        self.failureResultOf(waiting[3], TooManyRequests)
        self.assertEqual(len(self.w.commands()), 3)
        self.w.pass_time(5)
        for each in waiting[:3]:
            self.failureResultOf(each, RequestTimeout)

    def test_sendOneway(self) -> None:
        """A oneway request of ours has the flag, and nothing waits."""
        self.connection.oneway(Command(40))
        (sent,) = self.w.commands()
        self.assertEqual(sent.flag, ONEWAY)
        self.assertEqual(len(self.group.responses), 0)

    # The end.

    def test_close(self) -> None:
        """What was sent before the close goes out; nothing after it."""
        self.connection.send(encode(Command(0, opaque=1)))
        self.connection.close()
        self.connection.send(encode(Command(0, opaque=2)))
        self.assertTrue(self.connection.closed)
        self.assertEqual([c.opaque for c in self.w.commands()], [1])
        self.assertTrue(self.w.ended())
        self.assertEqual(self.group.connections, set())

    def test_closeInResponder(self) -> None:
        """A connection closed by a responder takes no further frame."""

        def close(connection: IConnection, command: Command) -> Answer:
            connection.close()
            return None

        self.table.register(LOST, close)
        answers = self.exchange(
            Command(ECHO, opaque=1), Command(LOST), Command(ECHO, opaque=2)
        )
        self.assertEqual([a.opaque for a in answers], [1])
        self.assertEqual(len(self.seen), 1)
        self.assertTrue(self.w.ended())

    def test_onClose(self) -> None:
        """Callbacks hear of the end once; one that comes late, at once."""
        heard: list[IConnection] = []
        self.connection.watch_close(heard.append)
        self.w.hang_up()
        self.connection.close()
        self.assertEqual(heard, [self.connection])
        self.connection.watch_close(heard.append)
        self.assertEqual(heard, [self.connection] * 2)

    def test_onCloseFails(self) -> None:
        """A callback that fails does not keep the others from hearing."""
        heard: list[IConnection] = []

        def wrong(connection: IConnection) -> None:
            raise ValueError("wrong")

        self.connection.watch_close(wrong)
        self.connection.watch_close(heard.append)
        self.w.hang_up()
        self.assertEqual(heard, [self.connection])
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)

    def test_hangUp(self) -> None:
        """The peer's end is the end of the connection."""
        self.w.hang_up()
        self.assertTrue(self.connection.closed)
        self.assertEqual(self.group.connections, set())

    def test_lateAnswer(self) -> None:
        """An answer that comes after the end is dropped."""
        self.exchange(Command(LATER))
        self.w.hang_up()
        self.later.callback(Command(0))
        self.assertEqual(self.connection.under_way, 0)

    # Limits.

    def assertBroken(self, data: bytes) -> None:
        """Bytes for which a connection is closed, with frames before them served."""
        self.w.feed(encode(Command(ECHO, opaque=1)) + data)
        self.assertEqual([a.opaque for a in self.w.commands()], [1])
        self.assertTrue(self.w.ended())
        self.assertTrue(self.connection.closed)
        self.assertEqual(self.group.counts.broken, 1)
        self.assertEqual(self.group.counts.lost, 0)

    def test_garbage(self) -> None:
        """What is no frame closes the connection and is counted."""
        self.assertBroken(b"GET / HTTP/1.1\r\n\r\n")

    def test_tooLong(self) -> None:
        """A frame announced longer than allowed closes it, before its bytes come."""
        self.assertBroken((1000_000 - 3).to_bytes(4, "big"))

    def test_longest(self) -> None:
        """The longest frame that is allowed is taken."""
        body = bytes(1000_000 - len(encode(Command(ECHO, flag=ONEWAY))))
        self.w.feed(encode(Command(ECHO, flag=ONEWAY, body=body)))
        self.assertEqual(len(self.seen), 1)
        self.assertFalse(self.connection.closed)

    def test_tooShort(self) -> None:
        """A frame without room for its second word closes it."""
        self.assertBroken(bytes(4))

    def test_negative(self) -> None:
        """A negative length closes it."""
        self.assertBroken(b"\xff\xff\xff\xff")

    def test_headerTooLong(self) -> None:
        """A header longer than its frame closes it."""
        self.assertBroken(b"\0\0\0\x08\0\0\0\x05{}{}")

    def test_unknownSerialization(self) -> None:
        """A serialization that nobody knows closes it."""
        self.assertBroken(b"\0\0\0\x08\x07\0\0\x04{}{}")

    def test_notJson(self) -> None:
        """A header that cannot be read closes it."""
        self.assertBroken(b"\0\0\0\x08\0\0\0\x04nope")

    def test_idle(self) -> None:
        """Nothing in either direction for the whole period: closed and counted."""
        self.w.pass_time(60)
        self.exchange(Command(ECHO))
        self.w.pass_time(119)
        self.assertFalse(self.connection.closed)
        self.w.pass_time(1.5)
        self.assertTrue(self.connection.closed)
        self.assertTrue(self.w.ended())
        self.assertEqual(self.group.counts.idle, 1)

    def test_congested(self) -> None:
        """A peer that does not read is not read, until it does."""
        self.w.pause()
        for n in range(4):
            self.w.feed(encode(Command(BIG, {"size": "300000"}, opaque=n)))
        self.assertTrue(self.connection.congested)
        before = len(self.seen)
        self.assertLess(before, 4)
        self.w.resume()
        answers = self.w.commands()
        self.assertEqual([a.opaque for a in answers], [0, 1, 2, 3])
        self.assertEqual({len(a.body) for a in answers}, {300_000})
        self.assertFalse(self.connection.congested)
        self.assertGreater(self.group.counts.congestions, 0)

    def test_congestedTogether(self) -> None:
        """Requests that arrived together wait as well, and none is lost."""
        self.w.pause()
        requests = [Command(BIG, {"size": "300000"}, opaque=n) for n in range(9)]
        self.w.feed(b"".join(encode(request) for request in requests))
        self.assertEqual(len(self.seen), 1)
        self.w.resume()
        self.assertEqual([a.opaque for a in self.w.commands()], list(range(9)))

    def test_congestedBroken(self) -> None:
        """What was asked before a mistake is answered before the close."""
        self.w.pause()
        requests = [Command(BIG, {"size": "300000"}, opaque=n) for n in range(3)]
        self.w.feed(b"".join(encode(request) for request in requests) + b"\xff" * 9)
        self.w.resume()
        self.assertEqual([a.opaque for a in self.w.commands()], [0, 1, 2])
        self.assertTrue(self.w.ended())
        self.assertEqual(self.group.counts.broken, 1)

    def test_closeCongested(self) -> None:
        """Closing does not lose what a slow peer has not read yet."""
        self.w.pause()
        self.w.feed(encode(Command(BIG, {"size": "600000"}, opaque=1)))
        self.connection.close()
        self.w.resume()
        (answer,) = self.w.commands()
        self.assertEqual(len(answer.body), 600_000)
        self.assertTrue(self.w.ended())

    def test_closeNeverRead(self) -> None:
        """A closed connection whose peer reads nothing is cut off when idle."""
        self.w.pause()
        self.w.feed(encode(Command(BIG, {"size": "600000"}, opaque=1)))
        self.connection.close()
        self.w.pass_time(121)
        self.assertEqual(self.group.connections, set())

    def test_parts(self) -> None:
        """An answer in parts is one frame, in its order; so is one at once."""

        def in_parts(connection: IConnection, command: Command) -> Answer:
            frame = encode(response_to(command, body=bytes(9000)))
            at = len(frame) - 9000
            connection.send_now(encode(response_to(command)))
            connection.send_parts(frame[:at], [frame[at:-1], frame[-1:]], 9000)
            return None

        self.table.register(SILENT, in_parts)
        codes = ECHO, SILENT, ECHO
        answers = self.exchange(*(Command(c, opaque=n) for n, c in enumerate(codes)))
        found = [(each.opaque, len(each.body)) for each in answers]
        self.assertEqual(found, [(0, 0), (1, 0), (1, 9000), (2, 0)])

    def test_counts(self) -> None:
        """Frames and bytes are counted in both directions."""
        request = encode(Command(ECHO))
        self.w.feed(request + request)
        self.connection.send(request * 3, 3)
        size, counts = len(self.w.taken()), self.group.counts
        self.assertEqual((counts.frames_in, counts.frames_out), (2, 5))
        self.assertEqual((counts.bytes_in, counts.bytes_out), (2 * len(request), size))
        self.assertEqual(counts.accepted, 1)
