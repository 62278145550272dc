"""A proxy as a process: its health, its metrics, its end, and its limits."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import grpc
from grpc_health.v1 import health_pb2
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.proxy import messages_pb2 as pb
from rocketbroker.proxy.service import MAX_COMMANDS, SERVICE
from scripts.lab.servers import ROOT, STOP_SECONDS, Cluster, environment
from tests.integration.typed_topics import prepare

#: Headers of a call of the client C.
CALLER = (("x-mq-client-id", "C"),)

#: A setting by which plain text is closed.
TLS_ONLY = "tls.server.mode=enforcing"

#: How long something may take that is to come soon.
SECONDS = 20.0


class ProxyProcess:
    """One proxy on ports of its own; it is ready.

    @ivar address: where clients reach it.
    @ivar metrics: where its pages are.
    @ivar process: the proxy.
    """

    def __init__(self, case: SynchronousTestCase, *words: str, port: int = 0) -> None:
        """
        @param case: its end is the proxy's at the latest.
        @param words: of the command line besides.
        @param port: where it listens; 0: anywhere.
        """
        folder = tempfile.TemporaryDirectory()
        case.addCleanup(folder.cleanup)
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "rocketbroker.cli.command", "proxy", "run"),
                *("--set", f"grpcServerPort={port}", "--metrics-port", "0"),
                *("--output", "json", *words),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
            cwd=folder.name,
        )
        output = self.process.stdout
        assert output is not None
        case.addCleanup(output.close)
        case.addCleanup(self.process.wait, STOP_SECONDS)
        case.addCleanup(self.process.send_signal, signal.SIGTERM)
        ready = json.loads(output.readline())
        self.address = str(ready["proxy"])
        self.metrics = str(ready["metrics"])

    def page(self, path: str) -> str:
        """A page of the port of metrics."""
        with urlopen(f"http://{self.metrics}/{path}", timeout=SECONDS) as answer:
            return str(answer.read().decode())

    def figures(self) -> dict[str, float]:
        """All samples, by name and labels; labels of all samples are left out."""
        found: dict[str, float] = {}
        for line in self.page("metrics").splitlines():
            if not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                before, _, _ = name.partition('cluster="')
                found[before.rstrip(",{")] = float(value)
        return found

    def stop(self) -> int:
        """Let it end; its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_SECONDS)


def port_of(address: str) -> int:
    """The port of C{host:port}."""
    return int(address.rpartition(":")[2])


def doctor(*proxies: str) -> dict[str, tuple[str, str]]:
    """What C{rocketbroker doctor} finds of proxies, by their addresses."""
    named = [word for address in proxies for word in ("--proxy", address)]
    words = "-m rocketbroker.cli.command doctor -n 127.0.0.1:1 -o json"
    ended = subprocess.run(
        [sys.executable, *words.split(), *named],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    rows = json.loads(ended.stdout)
    return {
        row["of"].removeprefix("proxy "): (row["status"], row["found"]) for row in rows
    }


def telemetry(channel: grpc.aio.Channel) -> Any:
    """A stream of the client C."""
    opens = channel.stream_stream(
        f"/{SERVICE}/Telemetry",
        request_serializer=pb.TelemetryCommand.SerializeToString,
        response_deserializer=pb.TelemetryCommand.FromString,
    )
    return opens(metadata=CALLER)


def settings() -> pb.TelemetryCommand:
    """What a producer that names no topic says first."""
    given = pb.Settings(client_type=pb.ClientType.PRODUCER, publishing=pb.Publishing())
    return pb.TelemetryCommand(settings=given)


async def raw(channel: grpc.aio.Channel, method: str, request: bytes) -> bytes:
    """The answer to a call that has any bytes as its request."""
    call: Any = channel.unary_unary(f"/{SERVICE}/{method}")
    return bytes(await call(request, metadata=CALLER, timeout=SECONDS))


class HealthTests(SynchronousTestCase):
    """What tells that a proxy serves."""

    timeout = 120

    def test_healthEndsBeforeTheProxyDoes(self) -> None:
        """It serves, as gRPC and HTTP say; who watches hears when it drains, streams
        end, and then it ends at once."""
        proxy = ProxyProcess(self)

        async def play() -> None:
            async with grpc.aio.insecure_channel(proxy.address) as channel:
                stub = HealthStub(channel)
                for service in ("", SERVICE):
                    answer = await stub.Check(HealthCheckRequest(service=service))
                    self.assertEqual(answer.status, HealthCheckResponse.SERVING)
                with self.assertRaises(grpc.aio.AioRpcError) as caught:
                    await stub.Check(HealthCheckRequest(service="x"))
                self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)
                self.assertEqual(proxy.page("healthz/ready"), "ok\n")
                if hasattr(stub, "List"):  # newer than 1.81
                    listed = await stub.List(health_pb2.HealthListRequest())
                    found = {
                        name: each.status for name, each in listed.statuses.items()
                    }
                    serves = HealthCheckResponse.SERVING
                    self.assertEqual(found, dict.fromkeys(("", SERVICE), serves))
                watched = stub.Watch(HealthCheckRequest()).__aiter__()
                first = await anext(watched)
                self.assertEqual(first.status, HealthCheckResponse.SERVING)
                stream = telemetry(channel)
                await stream.write(settings())
                await stream.read()
                proxy.process.send_signal(signal.SIGTERM)
                last = await asyncio.wait_for(anext(watched), SECONDS)
                self.assertEqual(last.status, HealthCheckResponse.NOT_SERVING)
                self.assertIs(await stream.read(), grpc.aio.EOF)
                self.assertEqual([one async for one in watched], [])

        asyncio.run(play())
        self.assertEqual(proxy.process.wait(10), 0)

    def test_callsAreCounted(self) -> None:
        """By method and code, with how long they took; open streams are gauges."""
        proxy = ProxyProcess(self)

        async def play() -> dict[str, float]:
            async with grpc.aio.insecure_channel(proxy.address) as channel:
                stream = telemetry(channel)
                await stream.write(settings())
                await stream.read()
                await raw(channel, "Heartbeat", b"")
                await raw(channel, "AckMessage", b"")
                return await asyncio.to_thread(proxy.figures)

        found = asyncio.run(play())
        calls = "rocketbroker_proxy_calls_total"
        self.assertEqual(found[f'{calls}{{method="Heartbeat",code="OK"'], 1)
        self.assertEqual(found[f'{calls}{{method="AckMessage",code="ILLEGAL_TOPIC"'], 1)
        seconds = 'rocketbroker_proxy_call_seconds_count{method="Heartbeat"'
        self.assertEqual(found[seconds], 1)
        self.assertEqual(found["rocketbroker_proxy_streams"], 1)
        self.assertEqual(found["rocketbroker_proxy_clients"], 1)
        self.assertEqual(found['rocketmq_proxy_up{proxy_mode="cluster"'], 1)


class CertificateTests(SynchronousTestCase):
    """The certificate that a proxy makes for itself."""

    timeout = 120

    def test_certificateIsMadeByAChildForTheFirstClient(self) -> None:
        """All have the same, and the proxy never loads what makes one."""
        proxy = ProxyProcess(self)
        place = "127.0.0.1", int(proxy.address.rpartition(":")[2])

        async def play() -> set[str]:
            asked = [
                asyncio.to_thread(ssl.get_server_certificate, place, timeout=SECONDS)
                for _ in range(4)
            ]
            return set(await asyncio.gather(*asked))

        (shown,) = asyncio.run(play())
        self.assertTrue(shown.startswith("-----BEGIN CERTIFICATE-----"), shown)
        maps = Path(f"/proc/{proxy.process.pid}/maps")
        if maps.exists():  # Linux
            loaded = maps.read_text()
            self.assertIn("_ssl", loaded)
            self.assertNotIn("cryptography", loaded)


class DoctorTests(SynchronousTestCase):
    """C{rocketbroker doctor}."""

    timeout = 120

    def test_proxiesAreAskedWhetherTheyServe(self) -> None:
        """In plain text; of one that speaks TLS only nothing more is asked. What is no
        proxy is a problem, and so is a port where nobody listens."""
        with socket.create_server(("127.0.0.1", 0)) as unused:
            nobody = f"127.0.0.1:{unused.getsockname()[1]}"
        proxies = ProxyProcess(self), ProxyProcess(self, "--set", TLS_ONLY)
        serving, enforcing = (f"127.0.0.1:{port_of(each.address)}" for each in proxies)
        page = proxies[0].metrics
        found = doctor(serving, enforcing, page, nobody)
        self.assertEqual(found[serving], ("ok", "serves clients of gRPC"))
        self.assertEqual(found[enforcing][0], "ok")
        self.assertIn("speaks TLS only", found[enforcing][1])
        for address, words in ((page, "does not speak gRPC"), (nobody, "refused")):
            self.assertEqual(found[address][0], "problem")
            self.assertIn(words, found[address][1])


class RestartTests(SynchronousTestCase):
    """A proxy that ends, and another one in its place."""

    timeout = 180

    def test_nothingAcknowledgedIsLost(self) -> None:
        """The official client sends and receives on."""
        cluster = Cluster()
        self.addCleanup(cluster.stop)
        cluster.start()
        prepare(cluster.broker.port, "T_steady", "NORMAL", False)
        proxy = ProxyProcess(self, "-n", cluster.names)
        client = subprocess.Popen(
            [
                *(sys.executable, "-W", "ignore", "-m", "scripts.lab.official_python"),
                *(proxy.address, "steady", "T_steady"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "HOME": str(cluster.folder)},
        )
        self.addCleanup(client.wait)
        self.addCleanup(client.kill)
        assert client.stdout is not None
        self.assertEqual(client.stdout.readline(), "sending\n")
        self.assertEqual(proxy.stop(), 0)
        port = int(proxy.address.rpartition(":")[2])
        ProxyProcess(self, "-n", cluster.names, port=port)
        output, errors = client.communicate("", timeout=90)
        self.assertEqual(output, "passed\n", errors[-3000:])


class LimitTests(SynchronousTestCase):
    """What clients do that nobody should, and what they are told."""

    timeout = 120

    def test_badRequestsAreRefused(self) -> None:
        """What is too large, and what is no message; others are served."""
        proxy = ProxyProcess(self, "--set", "grpcMaxInboundMessageSize=1000000")

        async def play() -> None:
            async with grpc.aio.insecure_channel(proxy.address) as channel:
                for request, code in (
                    (bytes(1_000_001), grpc.StatusCode.RESOURCE_EXHAUSTED),
                    (b"\xff\xff\xff", grpc.StatusCode.INVALID_ARGUMENT),
                ):
                    with self.assertRaises(grpc.aio.AioRpcError) as caught:
                        await raw(channel, "SendMessage", request)
                    self.assertEqual(caught.exception.code(), code)
                answer = await raw(channel, "SendMessage", b"")
                found = pb.SendMessageResponse.FromString(answer)
                self.assertEqual(found.status.code, pb.Code.MESSAGE_CORRUPTED)

        asyncio.run(play())

    def test_streamThatNeverReadsIsCut(self) -> None:
        """Its commands take no more memory than is allowed; others are served."""
        proxy = ProxyProcess(self)

        async def many() -> AsyncIterator[pb.TelemetryCommand]:
            given = settings()
            given.settings.user_agent.hostname = "h" * 4000
            for _ in range(8 * MAX_COMMANDS):
                yield given
            await asyncio.sleep(SECONDS)

        async def play() -> None:
            found: dict[str, float] = {}
            async with grpc.aio.insecure_channel(proxy.address) as channel:
                opens: Any = channel.stream_stream(
                    f"/{SERVICE}/Telemetry",
                    request_serializer=pb.TelemetryCommand.SerializeToString,
                )
                stream = opens(many(), metadata=CALLER)
                while not found.get("rocketbroker_proxy_streams_overrun_total"):
                    found = await asyncio.to_thread(proxy.figures)
                self.assertEqual(found["rocketbroker_proxy_streams"], 0)
                # The client reads at last, and learns that this was the end.
                # Its code is that of its last write, not the proxy's.
                with self.assertRaises(grpc.aio.AioRpcError):
                    async with asyncio.timeout(SECONDS):
                        while await stream.read() is not grpc.aio.EOF:
                            pass
                await raw(channel, "Heartbeat", b"")

        asyncio.run(play())
