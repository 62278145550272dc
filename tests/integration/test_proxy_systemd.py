"""A proxy whose port is systemd's: nobody is refused while it is started again."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub
from twisted.trial.unittest import SkipTest, SynchronousTestCase

from scripts.lab.servers import (
    ROOT,
    STOP_SECONDS,
    Cluster,
    environment,
    free_base,
)
from tests.integration.typed_topics import prepare

#: How long something may take that is to come soon.
SECONDS = 30.0

#: The command line of a proxy; it has no port but the one that is handed on.
PROXY = (
    *("-m", "rocketbroker.cli.command", "proxy", "run", "--output", "json"),
    *("--metrics-port", "off", "--set", "grpcServerPort=1"),
)

#: Becomes a program, with a descriptor as systemd hands one on.
HAND_ON = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""


class SocketCase(SynchronousTestCase):
    """Processes that are handed a socket."""

    timeout = 180

    def start(self, *command: str, handed: int = -1) -> subprocess.Popen[bytes]:
        """Start a program that becomes a proxy.

        @param handed: a descriptor that it inherits.
        """
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            cwd=folder.name,
            pass_fds=(handed,) if handed >= 0 else (),
        )
        for output in (process.stdout, process.stderr):
            assert output is not None
            self.addCleanup(output.close)
        self.addCleanup(process.wait, STOP_SECONDS)
        self.addCleanup(process.send_signal, signal.SIGTERM)
        return process

    def is_ready(self, process: subprocess.Popen[bytes], port: int) -> None:
        """It says that it is, on this port."""
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        self.assertEqual(ready["proxy"], f"127.0.0.1:{port}")

    def is_served(self, port: int) -> None:
        """A new client has its answer, by the first call, without trying again."""
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            answer = HealthStub(channel).Check(HealthCheckRequest(), timeout=SECONDS)
        self.assertEqual(answer.status, HealthCheckResponse.SERVING)


class ActivationTests(SocketCase):
    """systemd's own tool in its place."""

    def test_firstConnectionStartsTheProxyAndIsServed(self) -> None:
        """It has waited in the socket's queue."""
        tool = shutil.which("systemd-socket-activate")
        if tool is None:
            raise SkipTest("needs systemd-socket-activate; it comes with systemd")
        port = free_base()
        kept = [word for name in environment() for word in ("-E", name)]
        process = self.start(
            tool, "-l", f"127.0.0.1:{port}", *kept, sys.executable, *PROXY
        )
        assert process.stderr is not None
        self.assertIn(b"Listening on ", process.stderr.readline())
        self.is_served(port)
        self.is_ready(process, port)


class RestartTests(SocketCase):
    """One proxy after another with the same socket."""

    def started(
        self, server: socket.socket, *words: str
    ) -> tuple[subprocess.Popen[bytes], int]:
        """A proxy as systemd starts one, not ready yet; and its port."""
        number = server.fileno()
        command = sys.executable, "-c", HAND_ON, str(number), *PROXY, *words
        return self.start(*command, handed=number), server.getsockname()[1]

    def test_clientsOfARestartWaitAndSeeNoError(self) -> None:
        """The official client's sends and receives go on without one; others connect
        all the time, and a call that comes while there is no proxy is answered."""
        cluster = Cluster()
        self.addCleanup(cluster.stop)
        cluster.start()
        prepare(cluster.broker.port, "T_steady", "NORMAL", False)
        server = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.addCleanup(server.close)
        proxy, port = self.started(server, "-n", cluster.names)
        self.is_ready(proxy, port)
        client = self.steady(port, cluster)
        assert client.stdout is not None
        self.assertEqual(client.stdout.readline(), "sending\n")
        with connecting(port) as connected, ThreadPoolExecutor(1) as others:
            proxy.send_signal(signal.SIGTERM)
            self.assertEqual(proxy.wait(STOP_SECONDS), 0)
            before = len(connected)
            asking = others.submit(self.is_served, port)
            while len(connected) < before + 10:
                self.assertFalse(asking.done())
                time.sleep(0.01)
            proxy, _ = self.started(server, "-n", cluster.names)
            self.is_ready(proxy, port)
            asking.result(SECONDS)
        self.assertEqual(set(connected), {""})
        output, errors = client.communicate("", timeout=90)
        self.assertEqual(output, "passed\n", errors[-3000:])
        self.assertNotIn("send: ", errors)
        self.assertNotIn("receive: ", errors)

    def steady(self, port: int, cluster: Cluster) -> subprocess.Popen[str]:
        """The official client, which sends and receives."""
        client = subprocess.Popen(
            [
                *(sys.executable, "-W", "ignore", "-m", "scripts.lab.official_python"),
                *(f"127.0.0.1:{port}", "steady", "T_steady"),
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
        return client


@contextlib.contextmanager
def connecting(port: int) -> Iterator[list[str]]:
    """Connect all the time; the problem of each connection, empty: there was none."""
    found: list[str] = []
    is_over = threading.Event()

    def connect() -> None:
        while not is_over.wait(0.02):
            try:
                socket.create_connection(("127.0.0.1", port), SECONDS).close()
            except OSError as error:
                found.append(str(error))
            else:
                found.append("")

    thread = threading.Thread(target=connect)
    thread.start()
    try:
        yield found
    finally:
        is_over.set()
        thread.join()
