"""The proxy as a program: its command line."""

from __future__ import annotations

import io
import os
import socket
import tempfile
from contextlib import redirect_stderr
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.proxy import (
    Options,
    inherited_socket,
    listening_of,
    makeService,
    settings_of,
)
from rocketbroker.errors import ConfigurationError
from rocketbroker.proxy.settings import METRICS_PORT


class CommandLineTests(SynchronousTestCase):
    """Flags, settings, and how they are refused."""

    def options(self, *args: str) -> Options:
        """What a command line says."""
        options = Options()
        options.parseOptions(args)
        return options

    def file(self, text: str) -> str:
        """A settings file."""
        path = self.mktemp()
        Path(path).write_text(text)
        return str(Path(path).absolute())

    def test_fileIsRocketMQs(self) -> None:
        """Flags win over it; what is not used here is told."""
        path = self.file('{"grpcServerPort": 1, "namesrvAddr": "a:1", "useX": 1}')
        settings, servers, unused = settings_of(self.options("-c", path), {})
        self.assertEqual((settings.grpc_server_port, servers), (1, ("a:1",)))
        self.assertEqual(unused, ["useX"])
        flags = self.options("-c", path, "-n", "b:2", "--set", "grpcServerPort=0")
        settings, servers, _ = settings_of(flags, {})
        self.assertEqual((settings.grpc_server_port, servers), (0, ("b:2",)))

    def test_portOfMetricsIsAFlagToo(self) -> None:
        """It wins over the file; off is none."""
        path = self.file('{"metricsPromExporterPort": 7}')
        for args, port, is_own in (
            ((), METRICS_PORT, False),
            (("-c", path), 7, True),
            (("-c", path, "--metrics-port", "8"), 8, True),
            (("--metrics-port", "off"), 0, True),
        ):
            settings, _, unused = settings_of(self.options(*args), {})
            self.assertEqual(settings.metrics_prom_exporter_port, port)
            self.assertEqual((settings.has_own_metrics_port, unused), (is_own, []))

    def test_nameServersMayStandInTheEnvironment(self) -> None:
        """As Java's Proxy takes them, and as our programs do."""
        for variables, wanted in (
            ({"NAMESRV_ADDR": "c:3;d:4"}, ("c:3", "d:4")),
            ({"ROCKETMQ_NAMESRV": "e:5"}, ("e:5",)),
            ({}, ("127.0.0.1:9876",)),
        ):
            self.assertEqual(settings_of(self.options(), variables)[1], wanted)

    def test_mistakesAreOneSentence(self) -> None:
        """With exit status 1; twistd's own reactor is one."""
        for args, words in (
            (("-c", "/nowhere"), "/nowhere cannot be read: "),
            (("-c", self.file("[]")), "rmq-proxy.json is no JSON object"),
            (("--set", "grpcServerPort=x"), "grpcServerPort cannot be 'x'"),
            (("-n", "a"), ""),
        ):
            output = io.StringIO()
            with redirect_stderr(output), self.assertRaises(SystemExit) as caught:
                makeService(self.options(*args))
            self.assertEqual(caught.exception.code, 1)
            self.assertEqual(output.getvalue().count("\n"), 1)
            known = "A proxy needs the reactor of asyncio"
            said = output.getvalue()
            self.assertTrue(said.startswith((words, known)), said)


class SocketTests(SynchronousTestCase):
    """A socket that the proxy is started with."""

    def test_descriptorThatListensIsTaken(self) -> None:
        """It does not block, and it is the same port."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            options = Options()
            options.parseOptions(["--listen-fd", str(os.dup(server.fileno()))])
            found = listening_of(options, {})
        assert found is not None
        with found:
            self.assertEqual(found.getsockname()[1], port)
            self.assertFalse(found.getblocking())
        self.assertIsNone(listening_of(Options(), {}))

    def test_othersAreOneSentence(self) -> None:
        """What is none, what does not listen, and what is not of TCP."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        with socket.socket() as idle, socket.socket(socket.AF_UNIX) as local:
            local.bind(f"{folder.name}/socket")
            local.listen()
            for text, words in (
                ("x", "X cannot be 'x': invalid literal"),
                (str(os.dup(idle.fileno())), "it does not listen."),
                (str(os.dup(local.fileno())), "it is none of TCP."),
            ):
                problem = self.assertRaises(
                    ConfigurationError, inherited_socket, text, "X"
                )
                self.assertIn(words, str(problem))
