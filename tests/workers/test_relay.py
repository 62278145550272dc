"""Relayed connections do what all connections do, and what only they do."""

from __future__ import annotations

import contextlib
import socket

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.remoting.buffers import RECEIVE_BYTES
from rocketbroker.remoting.connection_group import ConnectionLimits
from rocketbroker.remoting.hubconnection import HubConnection
from rocketbroker.remoting.interfaces import Answer, IConnection
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.testing.contracts.connections import ConnectionContract
from rocketbroker.testing.contracts.proxy_header import ProxyContract
from rocketbroker.testing.contracts.wire import Wire
from rocketbroker.wire.command import BINARY, ONEWAY, Command, response_to
from rocketbroker.wire.connection import Connection
from rocketbroker.wire.frames import decode, encode
from rocketbroker.workers.link import HIGH_WATER
from rocketbroker.workers.link_frames import WINDOW_BYTES
from rocketbroker.workers.owner_link import CLOSE_SECONDS
from rocketbroker.workers.relayed_client import is_send
from tests.examples import examples
from tests.workers.relaywire import RelayWire

ECHO, SEND = 105, 310


class RelayedConnectionTests(ConnectionContract, SynchronousTestCase):
    """The contract of all connections, through a worker."""

    def wire(self, table: ResponderTable, limits: ConnectionLimits) -> Wire:
        """Client, worker and owner."""
        return RelayWire(table, limits)


class RelayedProxyTests(ProxyContract, SynchronousTestCase):
    """The header of a proxy, through a worker."""

    WIRE = RelayWire


class RelayTests(SynchronousTestCase):
    """What is special about connections that a worker relays."""

    def setUp(self) -> None:
        """A general and a hot responder in the owner."""
        self.seen: list[int] = []
        self.turns: list[int] = []
        table = ResponderTable()
        table.register(ECHO, self.echo)
        table.register_hot(SEND, self.hot)
        self.w = RelayWire(
            table, ConnectionLimits(high_water=300_000, low_water=100_000)
        )
        self.addCleanup(self.w.end)
        self.w.step()

    def echo(self, connection: IConnection, command: Command) -> Answer:
        self.seen.append(command.opaque)
        return response_to(
            command, body=bytes(int((command.ext or {}).get("size", "0")))
        )

    def hot(self, connection: IConnection, header: bytes, body: bytes) -> bool:
        command = decode(len(header).to_bytes(4, "big") + header + body)
        self.seen.append(command.opaque)
        self.turns.append(self.w.hub.turn_count)
        connection.send(encode(response_to(command, body=b"hot")))
        return True

    def test_oneTurn(self) -> None:
        """Hot requests of several clients that the worker read in one turn are served
        in one turn of the owner."""
        clients = [self.w.another()[0] for _ in range(3)]
        self.w.step()
        for client in clients:
            client.sendall(b"".join(encode(Command(SEND, opaque=n)) for n in range(4)))
        self.w.step()
        self.assertEqual(self.seen, [0, 1, 2, 3] * 3)
        self.assertEqual(len(set(self.turns)), 1)
        for client in clients:
            answers = Connection().receive(client.recv(1 << 16))
            self.assertEqual([a.body for a in answers], [b"hot"] * 4)
            client.close()

    def test_ownResponders(self) -> None:
        """What the worker's table has a responder for stays in the worker; the frames
        around it are relayed. Behind a send that it leaves to the owner others are
        relayed, too, until the owner has served that."""
        own: list[bytes] = []

        def serve(connection: IConnection, header: bytes, body: bytes) -> bool:
            own.append(body)
            return body != b"not mine"

        self.w.worker_table.register_hot(SEND, serve)
        bodies = [b"a", b"not mine", b"b"]
        self.w.feed(
            b"".join(
                encode(Command(ECHO, opaque=n)) + encode(Command(SEND, body=body))
                for n, body in enumerate(bodies)
            )
        )
        self.assertEqual(own, bodies[:2])
        self.assertEqual(self.seen, [0, 1, 0, 2, 0])
        self.w.feed(encode(Command(SEND, body=b"c")))
        self.assertEqual(own, [*bodies[:2], b"c"])
        self.w.relay.served.clear()

    def test_ownRuns(self) -> None:
        """A responder that takes several at once takes those that come together; what
        it has taken, and nothing else, is relayed all the same if it has to be."""
        taken: list[int] = []

        def serve(connection: IConnection, header: bytes, body: bytes) -> bool:
            return False

        def run(
            connection: IConnection, data: bytes, start: int, most: int
        ) -> tuple[int, int]:
            size = len(encode(Command(SEND, body=b"a")))
            count = min(2, (len(data) - start) // size)
            if data[start + size - 1 : start + size] != b"a":
                return 0, start
            taken.append(count)
            return count, start + count * size

        self.w.worker_table.register_hot(SEND, serve, run=run)
        frames = [encode(Command(SEND, body=b"a"))] * 4
        echo = encode(Command(ECHO, opaque=7))
        self.w.peer.sendall(b"".join([*frames[:2], echo, *frames[2:]]))
        self.w.worker_hub.doRead()
        self.assertEqual(taken, [2, 2])
        spans = [data[begin:end] for _, data, begin, end in self.w.relay.served]
        self.assertEqual(spans, [b"".join(frames[:2]), b"".join(frames[2:])])
        self.assertEqual(self.w.relay.frames_relayed, 1)
        self.w.relay.take_back()
        self.w.step()
        self.assertEqual(self.seen, [7, 0, 0, 0, 0])

    def test_longHeader(self) -> None:
        """A long header is relayed, and so is what is longer than the worker may
        serve."""
        own: list[bytes] = []

        def serve(connection: IConnection, header: bytes, body: bytes) -> bool:
            own.append(body)
            return True

        self.w.worker_table.register_hot(SEND, serve)
        self.w.relay.own_most = 1000
        self.w.feed(encode(Command(SEND, {"x": "y" * 20_000}, body=b"header")))
        self.w.feed(encode(Command(SEND, body=b"b" * 1001)))
        self.w.feed(encode(Command(SEND, body=b"short")))
        self.assertEqual(own, [b"short"])
        self.assertEqual(len(self.seen), 2)

    def test_binarySends(self) -> None:
        """Whatever may be a send has a fence behind it; what is none has not."""
        self.w.worker_table.register_hot(SEND, lambda *given: False)
        echo = encode(Command(ECHO))
        self.assertFalse(is_send(echo, 0))
        for code in (10, 310, 320):
            self.assertTrue(is_send(encode(Command(code)), 0))
        binary = encode(Command(310), BINARY)
        self.assertTrue(is_send(binary, 0))
        self.assertFalse(is_send(encode(Command(34), BINARY), 0))
        self.assertTrue(is_send(echo[:8] + b'{"flag":0', 0))

    def test_ownResponderFails(self) -> None:
        """A responder of the worker that fails is answered for."""

        def fail(connection: IConnection, header: bytes, body: bytes) -> bool:
            raise ValueError("out of order")

        self.w.worker_table.register_hot(SEND, fail)
        self.w.feed(encode(Command(SEND, opaque=3)))
        (answer,) = self.w.commands()
        self.assertEqual((answer.code, answer.opaque), (1, 3))
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)

    def test_servedBeforeTheEnd(self) -> None:
        """What a client has sent before it closed is served, though nobody reads the
        answers."""
        requests = [Command(ECHO, opaque=n, flag=ONEWAY) for n in range(50)]
        self.w.peer.sendall(b"".join(encode(request) for request in requests))
        self.w.hang_up()
        self.assertEqual(self.seen, list(range(50)))
        self.assertTrue(self.w.connection.closed)
        self.assertEqual(self.w.group.counts.lost, 1)
        self.assertEqual(self.w.link.sockets, {})

    def test_slowClient(self) -> None:
        """For a client that does not read, the worker keeps a window, the owner the
        rest; others are served meanwhile."""
        self.w.pause()
        for n in range(4):
            self.w.feed(encode(Command(ECHO, {"size": "200000"}, opaque=n)))
        self.assertTrue(self.w.connection.congested)
        (kept,) = [c.unsent for c in self.connections()]
        self.assertLessEqual(kept, WINDOW_BYTES)
        self.assertGreater(kept, 0)
        other, _ = self.w.another()
        self.addCleanup(other.close)
        self.w.step()
        other.sendall(encode(Command(ECHO, opaque=9)))
        self.w.step()
        self.assertEqual(Connection().receive(other.recv(4096))[0].opaque, 9)
        self.w.resume()
        self.assertEqual([a.opaque for a in self.w.commands()], [0, 1, 2, 3])

    def connections(self) -> list[HubConnection]:
        """The worker's."""
        found = self.w.worker_group.connections
        return [each for each in found if isinstance(each, HubConnection)]

    def test_slowOwner(self) -> None:
        """Clients that send more than the owner takes are not read any more, and the
        link holds no more than its limit and what one turn brings."""
        count, size = 24, 400_000
        clients = [self.w.another()[0] for _ in range(count)]
        self.w.step()
        request = encode(Command(ECHO, {"size": "1"}, body=bytes(size)))
        rests = [memoryview(request * 2) for _ in clients]
        for _ in range(200):
            for at, client in enumerate(clients):
                with contextlib.suppress(BlockingIOError):
                    rests[at] = rests[at][client.send(rests[at]) :]
            self.w.worker_hub.turn()
            most = HIGH_WATER + count * (len(request) + RECEIVE_BYTES)
            self.assertLess(self.w.relay.stream.unsent, most)
        self.assertTrue(any(rests))
        while any(rests):
            self.w.step()
            for at, client in enumerate(clients):
                with contextlib.suppress(BlockingIOError):
                    rests[at] = rests[at][client.send(rests[at]) :]
        self.w.step()
        self.assertEqual(len(self.seen), 2 * count)
        for client in clients:
            self.assertEqual(len(Connection().receive(client.recv(1 << 16))), 2)
            client.close()

    def test_workerGone(self) -> None:
        """When the worker is gone, its connections are closed, and nothing is left."""
        self.w.another()[0].close()
        self.w.relay.stream.close()
        closed: list[IConnection] = []
        self.w.connection.watch_close(closed.append)
        self.w.hub.turn()
        self.assertEqual(closed, [self.w.connection])
        self.assertEqual(self.w.group.connections, set())
        self.assertEqual(self.w.hub.connection_count(), 0)
        self.assertEqual(self.w.gone, ["worker"])

    def test_workerGoneSlowly(self) -> None:
        """If what is done at each end takes time, others are served in between."""
        closed: list[float] = []

        def take_time(connection: IConnection) -> None:
            closed.append(self.w.reactor.seconds())
            self.w.reactor.rightNow += CLOSE_SECONDS / 2

        for _ in range(6):
            client, connection = self.w.another()
            client.close()
            connection.watch_close(take_time)
        self.w.link.abort()
        self.assertEqual(len(closed), 2)
        self.w.step()
        self.assertEqual(len(closed), 6)
        self.assertEqual(self.w.group.connections, set())

    def test_ownerGone(self) -> None:
        """When the owner is gone, the worker is told."""
        self.w.link.stream.close()
        self.w.worker_hub.turn()
        self.assertEqual(self.w.gone, ["owner"])

    def test_garbageOnLink(self) -> None:
        """A link whose frames make no sense is closed: by both, each for itself."""
        self.w.relay.stream.write(b"\xff" * 99)
        self.w.link.stream.write(b"\xff" * 99)
        self.w.relay.stream.flush()
        self.w.link.stream.flush()
        self.w.step()
        self.assertEqual(sorted(self.w.gone), ["owner", "worker"])

    @examples()
    @given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 90_000)), max_size=30))
    def test_pieces(self, pieces: list[tuple[int, int]]) -> None:
        """However clients' bytes come, each gets its own answers, in order."""
        clients = [self.w.another()[0] for _ in range(3)]
        self.w.step()
        data = b"".join(
            encode(Command(ECHO, {"size": "70000"}, opaque=n, body=bytes(n * 9000)))
            for n in range(4)
        )
        rests = [memoryview(data) for _ in clients]
        received = [bytearray() for _ in clients]
        pieces = [*pieces, *((at, 1 << 20) for at in (0, 1, 2))]
        for at, size in pieces:
            self.feed_client(clients[at], rests[at][:size], received[at])
            rests[at] = rests[at][size:]
        for client, got in zip(clients, received, strict=True):
            self.feed_client(client, memoryview(b""), got)
            answers = Connection().receive(bytes(got))
            self.assertEqual([a.opaque for a in answers], [0, 1, 2, 3])
            self.assertEqual({len(a.body) for a in answers}, {70_000})
            client.close()

    def feed_client(
        self, client: socket.socket, data: memoryview, received: bytearray
    ) -> None:
        """Send, and read what comes meanwhile."""
        quiet = False
        while data or not quiet:
            with contextlib.suppress(BlockingIOError):
                if data:
                    data = data[client.send(data) :]
            self.w.step()
            quiet = True
            with contextlib.suppress(BlockingIOError):
                received += client.recv(1 << 20)
                quiet = False
