"""The front of a proxy on real sockets, before a server that sends back all."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path

import grpc
from twisted.trial.unittest import SkipTest, SynchronousTestCase

from rocketbroker.app.certificates import own_context, write_own
from rocketbroker.proxy.frames import GOAWAY
from rocketbroker.proxy.front import (
    KEEPALIVE_IDLE_SECONDS,
    Front,
    Limits,
    listening_socket,
)
from rocketbroker.proxy.messages_pb2 import (
    Code,
    QueryRouteRequest,
    QueryRouteResponse,
)
from rocketbroker.proxy.server import Proxy
from rocketbroker.proxy.service import SERVICE
from rocketbroker.proxy.settings import ProxySettings

#: More than all buffers of sockets hold.
MANY = 16 << 20

#: The connections of this machine; the front's socket is one of IPv6.
TCP = "/proc/net/tcp6"

#: How long a connection may take that is to be closed soon.
SECONDS = 20.0


def trusting(*protocols: str) -> ssl.SSLContext:
    """What a client has that checks nothing."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(list(protocols))
    return context


class Scene:
    """A front with its server; connections by which the server was reached.

    @ivar seen: what the front calls them.
    @ivar asked: how often the front has asked for the certificate.
    @ivar has_certificate: cleared, while that is made.
    """

    def __init__(self, mode: str, limits: Limits) -> None:
        self._context: ssl.SSLContext | None = own_context(["h2"], write_own)
        sock = listening_socket("", 0)
        self.front = Front(sock, mode, self._made, limits)
        self.seen: list[str] = []
        self.asked = 0
        self.has_certificate = asyncio.Event()
        self.has_certificate.set()

    async def _made(self) -> ssl.SSLContext | None:
        self.asked += 1
        await self.has_certificate.wait()
        return self._context

    async def start(self) -> None:
        """Both listen."""
        self._server = await asyncio.start_server(self._echo, "127.0.0.1", 0)
        self.front.start(self._server.sockets[0].getsockname()[1])

    async def _echo(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        host, port = writer.get_extra_info("peername")
        self.seen.append(self.front.peer(f"{host}:{port}"))
        try:
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def connect(
        self, context: ssl.SSLContext | None = None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A client."""
        return await asyncio.open_connection("127.0.0.1", self.front.port, ssl=context)

    async def stop(self) -> None:
        """Neither listens."""
        await self.front.stop()
        self._server.close()


class FrontTests(SynchronousTestCase):
    """L{Front}."""

    timeout = 60

    def play(
        self,
        scenario: Callable[[Scene], Awaitable[None]],
        mode: str = "permissive",
        limits: Limits | None = None,
    ) -> Scene:
        """Carry out a scenario; nothing of it stays."""

        async def played() -> Scene:
            scene = Scene(mode, limits or Limits())
            await scene.start()
            try:
                await asyncio.wait_for(scenario(scene), self.timeout)
            finally:
                await scene.stop()
            return scene

        return asyncio.run(played())

    async def is_closed(self, scene: Scene, first: bytes) -> None:
        """Whether a client is closed that begins so."""
        reader, writer = await scene.connect()
        writer.write(first)
        try:
            found = await asyncio.wait_for(reader.read(100), SECONDS)
        except ConnectionError:
            found = b""
        self.assertNotIn(b"P", found)
        self.assertTrue(await at_end(reader))
        writer.close()

    def test_bothFormsArriveWhole(self) -> None:
        """More than buffers hold, from a client that reads late; and from where."""

        async def scenario(scene: Scene) -> None:
            for context in (None, trusting("h2")):
                reader, writer = await scene.connect(context)
                data = b"P" + bytes(MANY)
                writer.write(data)
                found = await reader.readexactly(len(data))
                self.assertEqual(found, data)
                name = writer.get_extra_info("sockname")
                self.assertEqual(scene.seen[-1], f"127.0.0.1:{name[1]}")
                writer.close()

        scene = self.play(scenario)
        self.assertEqual(sum(scene.front.closed.values()), 0)
        # The port is nobody's once its connection is closed.
        self.assertEqual(scene.front.peer("127.0.0.1:1"), "127.0.0.1:1")

    def test_halfClosedConnectionIsAnswered(self) -> None:
        """The end of one side is told to the other, with all that came before."""

        async def scenario(scene: Scene) -> None:
            reader, writer = await scene.connect()
            writer.write(b"PRI")
            writer.write_eof()
            self.assertEqual(await reader.read(), b"PRI")
            writer.close()

        self.play(scenario)

    def test_modesRefuseByClosing(self) -> None:
        """TLS where there is none, plain text where there is TLS only."""

        async def tls(scene: Scene) -> None:
            with self.assertRaises(OSError):
                await scene.connect(trusting("h2"))

        async def plain(scene: Scene) -> None:
            await self.is_closed(scene, b"PRI")

        for mode, scenario in (("disabled", tls), ("enforcing", plain)):
            scene = self.play(scenario, mode)
            (reason,) = scene.front.closed
            self.assertIn(f"tls.server.mode is {mode}", reason)

    def test_handshakesThatFailAreClosed(self) -> None:
        """What is no TLS after its first byte, and what is no HTTP/2."""

        async def scenario(scene: Scene) -> None:
            await self.is_closed(scene, b"\x16" + bytes(100))
            reader, writer = await scene.connect(trusting("http/1.1"))
            self.assertTrue(await at_end(reader))
            writer.close()

        scene = self.play(scenario)
        self.assertEqual(sum(scene.front.closed.values()), 2, scene.front.closed)
        self.assertIn("it does not speak HTTP/2 (ALPN h2)", scene.front.closed)

    def test_connectionsThatDoNotBeginAreClosed(self) -> None:
        """In their time: those without a byte, and those in a handshake."""

        async def scenario(scene: Scene) -> None:
            await asyncio.gather(
                self.is_closed(scene, b""), self.is_closed(scene, b"\x16")
            )

        limits = Limits(first_byte_seconds=0.1, handshake_seconds=0.1)
        scene = self.play(scenario, limits=limits)
        self.assertEqual(
            scene.front.closed,
            {"it has said nothing": 1, "its handshake takes too long": 1},
        )

    def test_certificateIsAskedForByTLSOnly(self) -> None:
        """While it is made, clients with TLS wait, and those without are served."""

        async def scenario(scene: Scene) -> None:
            scene.has_certificate.clear()
            waiting = [
                asyncio.create_task(scene.connect(trusting("h2"))) for _ in range(3)
            ]
            while scene.asked < len(waiting):
                await asyncio.sleep(0.01)
            writers = [await self.echoed(*await scene.connect())]
            self.assertFalse(any(task.done() for task in waiting))
            scene.has_certificate.set()
            for task in waiting:
                writers.append(await self.echoed(*await task))
            self.assertEqual(scene.asked, len(waiting))
            for writer in writers:
                writer.close()

        self.play(scenario)

    def test_certificateThatTakesTooLongIsNone(self) -> None:
        """The client is closed."""

        async def scenario(scene: Scene) -> None:
            scene.has_certificate.clear()
            with self.assertRaises(OSError):
                await scene.connect(trusting("h2"))

        scene = self.play(scenario, limits=Limits(handshake_seconds=0.1))
        self.assertEqual(
            scene.front.closed, {"it speaks TLS, and there is no certificate": 1}
        )

    def test_connectionsBeingOpenedAreServedWhenThePortCloses(self) -> None:
        """Those that come later are refused, and what says nothing is closed."""

        async def scenario(scene: Scene) -> None:
            scene.has_certificate.clear()
            silent, idle = await scene.connect()
            coming = asyncio.create_task(scene.connect(trusting("h2")))
            while not scene.asked:
                await asyncio.sleep(0.01)
            closing = asyncio.create_task(scene.front.stop_accepting())
            await asyncio.sleep(0)
            with self.assertRaises(ConnectionRefusedError):
                await scene.connect()
            scene.has_certificate.set()
            writer = await self.echoed(*await coming)
            self.assertTrue(await at_end(silent))
            await closing
            writer.close()
            idle.close()

        self.play(scenario)

    def test_clientsAreDismissedBetweenFrames(self) -> None:
        """One at rest at once, one in a frame after it, one that was being opened when
        the port closed after its first frame; what comes later arrives, too."""
        frame = b"\0\0\3" + bytes(6) + b"abc"

        async def scenario(scene: Scene) -> None:
            scene.has_certificate.clear()
            clients = []
            for sent in (frame, frame + frame[:5]):
                clients.append(await scene.connect())
                clients[-1][1].write(sent)
                await clients[-1][0].readexactly(len(sent))
            coming = asyncio.create_task(scene.connect(trusting("h2")))
            while not scene.asked:
                await asyncio.sleep(0.01)
            closing = asyncio.create_task(scene.front.stop_accepting())
            scene.has_certificate.set()
            clients.append(await coming)
            await closing
            scene.front.dismiss()
            self.assertEqual(await clients[0][0].readexactly(len(GOAWAY)), GOAWAY)
            for (reader, writer), rest, farewell in zip(
                clients,
                (frame, frame[5:], frame),
                (b"", GOAWAY, GOAWAY),
                strict=True,
            ):
                for at in range(len(rest)):
                    writer.write(rest[at : at + 1])
                    self.assertEqual(await reader.readexactly(1), rest[at : at + 1])
                found = await reader.readexactly(len(farewell))
                self.assertEqual(found, farewell)
                writer.close()

        self.play(scenario)

    async def echoed(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> asyncio.StreamWriter:
        """A client that is served."""
        writer.write(b"P")
        self.assertEqual(await reader.readexactly(1), b"P")
        return writer

    def test_oldestThatDoesNotBeginMakesRoom(self) -> None:
        """With one more than are allowed."""

        async def scenario(scene: Scene) -> None:
            oldest, others = await scene.connect(), []
            for _ in range(2):
                others.append(await scene.connect())
            self.assertTrue(await at_end(oldest[0]))
            for reader, writer in others:
                writer.write(b"P")
                self.assertEqual(await reader.readexactly(1), b"P")
                writer.close()
            oldest[1].close()

        scene = self.play(scenario, limits=Limits(opening=2))
        self.assertEqual(sum(scene.front.closed.values()), 1)

    def test_kernelAsksWhetherAClientIsThere(self) -> None:
        """Its timer runs, in both forms, while a connection is at rest."""

        async def scenario(scene: Scene) -> None:
            for context in (None, trusting("h2")):
                reader, writer = await scene.connect(context)
                writer.write(b"P")
                await reader.readexactly(1)
                port = writer.get_extra_info("sockname")[1]
                async with asyncio.timeout(SECONDS):
                    # Until the last byte is acknowledged, another timer is shown.
                    while not (left := keepalive_seconds(scene.front.port, port)):
                        await asyncio.sleep(0.02)
                self.assertLessEqual(left, KEEPALIVE_IDLE_SECONDS)
                writer.close()

        if not Path(TCP).exists():
            raise SkipTest(f"needs {TCP}, as Linux has it")
        self.play(scenario)

    def test_connectionsHaveALimit(self) -> None:
        """One more is closed, until another one ends."""

        async def scenario(scene: Scene) -> None:
            reader, writer = await scene.connect()
            writer.write(b"P")
            self.assertEqual(await reader.readexactly(1), b"P")
            await self.is_closed(scene, b"P")
            refused = dict(scene.front.closed)
            self.assertEqual(refused, {"there are too many connections": 1})
            writer.close()
            answer = b""
            while not answer:  # the front may not have seen the end yet
                reader, writer = await scene.connect()
                writer.write(b"P")
                with contextlib.suppress(ConnectionError):
                    answer = await reader.read(1)
                writer.close()
            self.assertEqual(answer, b"P")

        self.play(scenario, limits=Limits(connections=1))

    def test_clientThatBreaksOffEndsItsConnection(self) -> None:
        """The server behind learns of it, and nothing stays."""

        async def scenario(scene: Scene) -> None:
            sock = socket.create_connection(("127.0.0.1", scene.front.port))
            sock.sendall(b"P")
            while not scene.seen:
                await asyncio.sleep(0.01)
            linger = struct.pack("ii", 1, 0)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            sock.close()

        self.play(scenario, limits=Limits(closing_seconds=0.1))


class ProxyTests(SynchronousTestCase):
    """A proxy's server of gRPC behind its front; there are no brokers."""

    timeout = 120

    def test_callsArriveByBothForms(self) -> None:
        """A client that checks certificates, with ours as its root, and plain text."""

        async def called() -> list[int]:
            front = Front(listening_socket("", 0), "permissive", made)
            proxy = Proxy(("127.0.0.1:1",), ProxySettings(), front)
            await proxy.start()
            place = f"localhost:{front.port}"
            root = await asyncio.to_thread(
                ssl.get_server_certificate, ("127.0.0.1", front.port)
            )
            trust = grpc.ssl_channel_credentials(root.encode())
            found: list[int] = []
            for channel in (
                grpc.aio.insecure_channel(place),
                grpc.aio.secure_channel(place, trust),
            ):
                async with channel:
                    call = channel.unary_unary(
                        f"/{SERVICE}/QueryRoute",
                        QueryRouteRequest.SerializeToString,
                        QueryRouteResponse.FromString,
                    )
                    answer = await call(QueryRouteRequest(), timeout=SECONDS)
                    found.append(answer.status.code)
            await proxy.stop()
            return found

        context = own_context(["h2"], write_own)

        async def made() -> ssl.SSLContext:
            return context

        found = asyncio.run(called())
        self.assertEqual(found, [Code.CLIENT_ID_REQUIRED] * 2)


def keepalive_seconds(port: int, peer_port: int) -> float:
    """In how many seconds the kernel asks the peer of a connection; 0: it does not.

    @param port: ours.
    """
    for line in Path(TCP).read_text().splitlines()[1:]:
        _, own, peer, _, _, timer, *_ = line.split()
        if (own[-4:], peer[-4:]) == (f"{port:04X}", f"{peer_port:04X}"):
            kind, _, ticks = timer.partition(":")
            return int(ticks, 16) / os.sysconf("SC_CLK_TCK") if kind == "02" else 0.0
    raise AssertionError(f"no connection of {port} and {peer_port}")


async def at_end(reader: asyncio.StreamReader) -> bool:
    """Whether a connection is closed in time."""
    try:
        return not await asyncio.wait_for(reader.read(100), SECONDS)
    except OSError:
        return True
