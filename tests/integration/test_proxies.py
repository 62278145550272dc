"""Several proxies of ours before one cluster: one ends, and clients go on."""

from __future__ import annotations

import asyncio
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.proxy import messages_pb2 as pb
from scripts.lab.grpcpeer import GrpcPeer, producer_settings
from scripts.lab.pair import until
from scripts.lab.proxyserver import ProxyServer
from scripts.lab.servers import Cluster
from scripts.torture.harness import now_ms
from scripts.torture.proxy import MEMBERS, PROXY_SETTINGS, TOPIC, Seen, last_ms
from scripts.torture.proxy_member import PUSH, ROLES, SEND, SIMPLE
from tests.integration.typed_topics import prepare

#: How long something may take that comes by itself, in seconds.
PATIENCE: Final = 60.0


class ProxiesCase(SynchronousTestCase):
    """A cluster of ours, and two proxies before it."""

    timeout = 300
    kind = "NORMAL"

    def setUp(self) -> None:
        """Servers."""
        self.cluster = Cluster(transactionTimeOut=1000, transactionCheckInterval=1000)
        self.addCleanup(self.cluster.stop)
        self.cluster.start()
        prepare(self.cluster.broker.port, TOPIC, self.kind, False)
        # Clients come to that with the lower port first.
        self.proxies = [
            ProxyServer(self.cluster.names, self.cluster.folder, **PROXY_SETTINGS)
            for _ in range(2)
        ]
        self.proxies.sort(key=lambda proxy: proxy.address)
        for proxy in self.proxies:
            self.addCleanup(proxy.stop, signal.SIGKILL)
            proxy.start()


class DrainTests(ProxiesCase):
    """A client that knows both."""

    def test_receiveThatWaitsEndsAndTheNextGoesElsewhere(self) -> None:
        """Both without an error, though the next comes at once."""
        first, second = self.proxies

        async def play() -> None:
            addresses = f"ipv4:{first.address},{second.address}"
            async with GrpcPeer(addresses, "C") as peer:
                await peer.send(TOPIC, b"to be read", "01")
                (message,) = await peer.receive(TOPIC, f"G_{TOPIC}")
                await peer.ack(TOPIC, f"G_{TOPIC}", message)
                waits = asyncio.ensure_future(peer.receive(TOPIC, f"G_{TOPIC}", 20))
                await asyncio.sleep(0.5)
                first.send_signal(signal.SIGTERM)
                self.assertEqual(await waits, [])
                sent = await peer.send(TOPIC, b"x", "02")
                self.assertEqual(sent.status.code, pb.Code.OK)
                (message,) = await peer.receive(TOPIC, f"G_{TOPIC}", 20)
                self.assertEqual(message.body, b"x")

        asyncio.run(play())
        self.assertEqual(first.stop(), 0)


class TransactionTests(ProxiesCase):
    """Transactions that are ended at another proxy than they began at."""

    kind = "TRANSACTION"

    async def end(self, peer: GrpcPeer, transaction_id: str, is_asked: bool) -> None:
        """Commit one."""
        source = pb.TransactionSource
        request = pb.EndTransactionRequest(
            topic=pb.Resource(name=TOPIC),
            message_id="01ID",
            transaction_id=transaction_id,
            resolution=pb.TransactionResolution.COMMIT,
            source=source.SOURCE_SERVER_CHECK if is_asked else source.SOURCE_CLIENT,
        )
        answer = await peer.call("EndTransaction", request, pb.EndTransactionResponse)
        self.assertEqual(answer.status.code, pb.Code.OK)
        (message,) = await peer.receive(TOPIC, f"G_{TOPIC}", 20)
        self.assertEqual(message.body, b"half")

    async def half(self, peer: GrpcPeer) -> str:
        """Send a half message; its transaction."""
        kind = pb.MessageType.TRANSACTION
        sent = await peer.send(TOPIC, b"half", "01ID", message_type=kind)
        return sent.entries[0].transaction_id

    def test_proxyOfTheHalfIsKilled(self) -> None:
        """Another one ends the transaction."""
        first, second = self.proxies

        async def play() -> None:
            async with GrpcPeer(first.address, "C") as peer:
                transaction_id = await self.half(peer)
            first.stop(signal.SIGKILL)
            async with GrpcPeer(second.address, "C") as peer:
                await self.end(peer, transaction_id, is_asked=False)

        asyncio.run(play())

    def test_newestStreamOfAClientIsAsked(self) -> None:
        """Two have one client id; the older one ends, at this proxy and at the other.
        The answer may come to the other."""
        first, second = self.proxies
        settings = producer_settings(TOPIC)

        async def play() -> None:
            async with GrpcPeer(first.address, "C") as newest:
                async with (
                    GrpcPeer(first.address, "C") as older,
                    GrpcPeer(second.address, "C") as elsewhere,
                ):
                    for peer in (older, elsewhere):
                        await peer.introduce(settings)
                    stream = await newest.introduce(settings)
                    leaves = pb.NotifyClientTerminationRequest()
                    await elsewhere.call(
                        "NotifyClientTermination",
                        leaves,
                        pb.NotifyClientTerminationResponse,
                    )
                await self.half(newest)
                asked = await asyncio.wait_for(stream.read(), PATIENCE)
            command = asked.recover_orphaned_transaction_command
            self.assertEqual(command.message.body, b"half")
            async with GrpcPeer(second.address, "C") as peer:
                await self.end(peer, command.transaction_id, is_asked=True)

        asyncio.run(play())


class OfficialClientTests(ProxiesCase):
    """Official clients, which know both: one member of each role."""

    def go_on(self, language: str) -> None:
        """When one proxy drains, programs see no error. When one is killed, all that
        was acknowledged arrives."""
        endpoints = ";".join(proxy.address for proxy in self.proxies)
        stack = ExitStack()
        self.addCleanup(stack.close)
        members = MEMBERS[language](self.note, endpoints, stack)
        self.served_since(0)
        first, second = self.proxies
        self.assertEqual(first.stop(), 0)
        self.served_since(now_ms())
        for role in ROLES:
            self.assertEqual(members[role].problems, [], role)
        first.start()
        second.stop(signal.SIGKILL)
        self.served_since(now_ms())
        members[SEND].stop()
        sent = Seen.of(self.note(SEND)).bodies

        def have_all() -> bool:
            return all(sent <= Seen.of(self.note(r)).bodies for r in (SIMPLE, PUSH))

        self.assertTrue(until(have_all, PATIENCE))

    def note(self, role: str) -> Path:
        """What a member notes."""
        return self.cluster.folder / f"note-{role}"

    def served_since(self, at_ms: int) -> None:
        """Wait until each was served after that time."""

        def are_served() -> bool:
            return all(last_ms(self.note(role)) > at_ms for role in ROLES)

        self.assertTrue(until(are_served, PATIENCE))

    def test_thatForPythonGoesOnAtTheOther(self) -> None:
        """See L{go_on}."""
        self.go_on("python")

    def test_thatForJavaGoesOnAtTheOther(self) -> None:
        """See L{go_on}."""
        self.go_on("java")
