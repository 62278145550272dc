"""The address that clients of a standalone broker are told, with the Java client."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SkipTest

from rocketbroker.wire.bodies.routes import TopicRouteData
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.fastjson import loads
from scripts.lab.javaclient import JavaClient, Program
from scripts.lab.servers import STOP_SECONDS, ask, environment, free_base
from tests.integration.javacase import JavaCase, fresh

COMMAND = (sys.executable, "-m", "rocketbroker.cli.command")

#: The two ends of the cable between this host and the one that the test makes, of the
#: addresses that are for documentation.
HERE, THERE = "198.51.100.1", "198.51.100.2"


class AddressTests(JavaCase):
    """Each client reaches the broker by the address that it knows."""

    def standalone(self, *flags: str) -> tuple[str, str]:
        """Start one; the port of its name server and the address of its broker."""
        self.sent = 0
        self.folder = Path(self.mktemp()).absolute()
        self.folder.mkdir()
        process = subprocess.Popen(
            [
                *(*COMMAND, "standalone", "--dir", str(self.folder / "store")),
                *("--namesrv-port", "0", "--metrics-port", "off"),
                *("--topic", "T:1", "--output", "json", *flags),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
            text=True,
        )

        def stop() -> None:
            process.terminate()
            process.communicate(timeout=STOP_SECONDS)

        self.addCleanup(stop)
        assert process.stdout is not None
        ready: dict[str, Any] = json.loads(process.stdout.readline())
        return ready["namesrv"].rpartition(":")[2], ready["brokers"][0]["address"]

    def talk(self, java: Program, names: str) -> str:
        """Send a message and receive it; its offset id."""
        producer, consumer = fresh("P"), fresh("C")
        java("producer", name=producer, group=producer, names=names)
        java("consumer", name=consumer, group=consumer, topic="T", names=names)
        sent = java.send(producer, "T", names.encode())
        self.sent += 1
        received = java.received(consumer, self.sent)
        self.assertIn(sent["msgId"], [message["msgId"] for message in received])
        for name in (producer, consumer):
            java("stop", name=name)
        return str(sent["offsetMsgId"])

    def told(self, host: str, port: str) -> str:
        """The broker's host, as one is told who asks at an address."""
        request = Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "T"})
        answer = ask(int(port), request, host)
        (data,) = TopicRouteData.from_json(loads(answer.body)).broker_datas
        return data.broker_addrs[0].rpartition(":")[0]

    def test_clientsComeByAllAddresses(self) -> None:
        """By two of loopback, and from a host that knows this one by a third."""
        port, address = self.standalone("--port", "0")
        self.assertTrue(address.startswith("127.0.0.1:"))
        for host in ("127.0.0.1", "127.0.0.2"):
            self.assertEqual(self.told(host, port), host)
            self.talk(self.java, f"{host}:{port}")
        inside = self.other_host()
        self.assertEqual(self.told(HERE, port), HERE)
        names = f"{HERE}:{port}"
        java = JavaClient(self.version, names, self.folder, inside)
        self.addCleanup(java.stop)
        self.talk(java, names)

    def other_host(self) -> tuple[str, ...]:
        """A host with one cable, to this one; the words that run a command there."""
        if os.geteuid() or shutil.which("ip") is None:
            raise SkipTest("a network namespace needs root and the command ip")
        name = f"rb{os.getpid()}"
        there = ("ip", "netns", "exec", name)
        self.call("ip", "netns", "add", name)
        self.addCleanup(self.call, "ip", "netns", "del", name)
        ends = (f"{name}a", f"{name}b")
        self.call(
            *("ip", "link", "add", ends[0], "type", "veth"),
            *("peer", "name", ends[1], "netns", name),
        )
        self.call("ip", "addr", "add", f"{HERE}/30", "dev", ends[0])
        self.call("ip", "link", "set", ends[0], "up")
        self.call(*there, "ip", "addr", "add", f"{THERE}/30", "dev", ends[1])
        for device in (ends[1], "lo"):
            self.call(*there, "ip", "link", "set", device, "up")
        return there

    def call(self, *words: str) -> None:
        """Run a command. What the kernel or a container does not permit to root skips
        the test, and no other failure does."""
        done = subprocess.run(words, capture_output=True, text=True)
        if "not permitted" in done.stderr:
            raise SkipTest(f"{' '.join(words)}: {done.stderr.strip()}")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_clientsComeByForwardedPort(self) -> None:
        """--advertise HOST:PORT is told as it is: all clients go that way."""
        base = free_base()
        forwarder = Forwarder(("127.0.0.3", base), ("127.0.0.1", base + 4))
        self.addCleanup(forwarder.stop)
        told = f"127.0.0.3:{base}"
        port, address = self.standalone("--port", str(base + 4), "--advertise", told)
        self.assertEqual(address, told)
        self.assertEqual(self.told("127.0.0.2", port), "127.0.0.3")
        offset_id = self.talk(self.java, f"127.0.0.1:{port}")
        # A message is viewed by the address in its id.
        self.assertEqual(offset_id[:16], f"7F000003{base:08X}")
        self.assertGreater(forwarder.accepted, 0)


class Forwarder:
    """A port whose connections go on to another port.

    @ivar accepted: how many there were.
    """

    def __init__(self, here: tuple[str, int], there: tuple[str, int]) -> None:
        self.accepted = 0
        self._there = there
        self._sockets = [socket.create_server(here)]
        self._start(self._accept)

    def _start(self, target: Callable[..., None], *args: socket.socket) -> None:
        threading.Thread(target=target, args=args, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._sockets[0].accept()
                far = socket.create_connection(self._there)
                self.accepted += 1
                self._sockets += (near, far)
                self._start(self._copy, near, far)
                self._start(self._copy, far, near)

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def stop(self) -> None:
        """Close all."""
        for sock in self._sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
