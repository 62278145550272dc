"""A proxy of ours that is given too much, and one whose broker dies."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import tempfile
import time
from pathlib import Path
from typing import Final

import grpc
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.proxy import messages_pb2 as pb
from rocketbroker.proxy.messages_pb2 import Code
from scripts.lab.grpcpeer import GrpcPeer, producer_settings, push_settings
from scripts.lab.pair import until
from scripts.lab.proxyserver import ProxyServer
from scripts.lab.servers import Cluster
from tests.heavy import HEAVY
from tests.integration.typed_topics import prepare

TOPIC: Final = "T"
GROUP: Final = "G_T"

#: Idle clients, as the limit of open files allows, and how much memory each may take;
#: it was 53 KB.
FILES: Final = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
STREAMS: Final = min(4000 if HEAVY else 200, FILES // 5)
STREAM_BYTES: Final = 100_000

#: So many are opened at once.
AT_ONCE: Final = 50

#: Requests at once, how large each is, and how much memory all may take together. A
#: proxy that read them whole would take four times as much as they are.
REQUESTS: Final = 8
REQUEST_BYTES: Final = 100_000_000
REQUESTS_MEMORY: Final = 64 << 20

#: How soon something is to be told that is known at once, in seconds.
SOON: Final = 10.0


def memory(pid: int, what: str) -> int:
    """Bytes of a process: C{VmRSS}, or the most there were: C{VmHWM}."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split(f"{what}:")[1].split()[0]) * 1024


def descriptors(pid: int) -> int:
    """How many it has."""
    return len(os.listdir(f"/proc/{pid}/fd"))


class LimitsTests(SynchronousTestCase):
    """Without a broker."""

    timeout = 300

    def setUp(self) -> None:
        """A proxy."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.proxy = ProxyServer("127.0.0.1:1", Path(folder.name))
        self.addCleanup(self.proxy.stop, signal.SIGKILL)
        self.proxy.start()

    def test_idleStreamsTakeLittle(self) -> None:
        """And all end with the proxy, without an error."""
        pid = self.proxy.pid
        before = memory(pid, "VmRSS")

        async def play() -> None:
            peers = [GrpcPeer(self.proxy.address, str(n)) for n in range(STREAMS)]
            streams = []
            for at in range(0, STREAMS, AT_ONCE):
                some = peers[at : at + AT_ONCE]
                settings = producer_settings("T")
                opened = (peer.introduce(settings) for peer in some)
                streams += await asyncio.gather(*opened)
            each = (memory(pid, "VmRSS") - before) / STREAMS
            self.assertLess(each, STREAM_BYTES)
            self.proxy.send_signal(signal.SIGTERM)
            ends = await asyncio.gather(*(stream.read() for stream in streams))
            self.assertEqual(set(ends), {grpc.aio.EOF})
            for peer in peers:
                await peer.channel.close()

        asyncio.run(play())
        self.assertEqual(self.proxy.stop(), 0)

    def test_hugeRequestsTakeNothing(self) -> None:
        """They are refused before they are read, and say why."""
        before = memory(self.proxy.pid, "VmHWM")

        async def play() -> None:
            request = bytes(REQUEST_BYTES)
            async with GrpcPeer(self.proxy.address, "C") as peer:
                calls = (
                    peer.call("SendMessage", request, pb.SendMessageResponse)
                    for _ in range(REQUESTS)
                )
                found = await asyncio.gather(*calls, return_exceptions=True)
            for problem in found:
                assert isinstance(problem, grpc.aio.AioRpcError), problem
                self.assertEqual(problem.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
                self.assertIn("larger than max", problem.details() or "")

        asyncio.run(play())
        took = memory(self.proxy.pid, "VmHWM") - before
        self.assertLess(took, REQUESTS_MEMORY)


class DeadBrokerTests(SynchronousTestCase):
    """A broker that dies under the proxy."""

    timeout = 300

    def test_callsHaveAStatusAndNothingStays(self) -> None:
        """Also those that wait; when it is up again, all is there."""
        cluster = Cluster()
        self.addCleanup(cluster.stop)
        cluster.start()
        prepare(cluster.broker.port, TOPIC, "NORMAL", False)
        proxy = ProxyServer(cluster.names, cluster.folder)
        self.addCleanup(proxy.stop, signal.SIGKILL)
        proxy.start()

        async def play() -> None:
            async with GrpcPeer(proxy.address, "C") as peer:
                stream = await peer.introduce(push_settings(TOPIC, GROUP))
                await peer.send(TOPIC, b"first", "01")
                (message,) = await peer.receive(TOPIC, GROUP)
                before = descriptors(proxy.pid)
                waits = [
                    asyncio.ensure_future(peer.status(TOPIC, GROUP, 20))
                    for _ in range(20)
                ]
                await asyncio.sleep(0.5)
                killed = time.monotonic()
                cluster.broker.stop(signal.SIGKILL)
                for status in await asyncio.gather(*waits):
                    self.assertEqual(status.code, Code.PROXY_TIMEOUT, status)
                sent = await peer.send(TOPIC, b"lost", "02")
                self.assertEqual(sent.status.code, Code.PROXY_TIMEOUT, sent.status)
                acked = await peer.ack(TOPIC, GROUP, message)
                self.assertEqual(acked.status.code, Code.PROXY_TIMEOUT, acked.status)
                self.assertLess(time.monotonic() - killed, SOON)
                cluster.broker.start()
                sent = await peer.send(TOPIC, b"second", "03")
                self.assertEqual(sent.status.code, Code.OK, sent.status)
                acked = await peer.ack(TOPIC, GROUP, message)
                self.assertEqual(acked.status.code, Code.OK, acked.status)
                bodies: set[bytes] = set()
                while b"second" not in bodies:
                    for message in await peer.receive(TOPIC, GROUP):
                        bodies.add(message.body)
                        await peer.ack(TOPIC, GROUP, message)
                self.assertNotIn(b"lost", bodies)

                def is_as_before() -> bool:
                    return descriptors(proxy.pid) <= before

                self.assertTrue(await asyncio.to_thread(until, is_as_before, SOON))
                stream.cancel()

        asyncio.run(play())
