"""Servers where a part of the extra C{grpc} is too old, or fits none of the others."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from scripts.lab.servers import STOP_SECONDS, environment

#: How a proxy is started.
PROXY_RUN = ("-m", "rocketbroker.cli.command", "proxy", "run")
TWISTD = (
    str(Path(sys.executable).parent / "twistd"),
    *("--nodaemon", "--pidfile=", "rocketmq-proxy"),
)
FLAGS = ("--set", "grpcServerPort=0", "--metrics-port", "off")

TOO_OLD = (
    "A proxy needs grpcio 1.76 or newer, and 1.0.0 is here: pip install "
    "'rocketbroker[grpc]'.\n"
)


class ExtraCase(SynchronousTestCase):
    """Processes that find other packages than are installed."""

    timeout = 180

    def setUp(self) -> None:
        """A folder whose packages come first."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        own = environment()
        path = os.pathsep.join([folder.name, own.get("PYTHONPATH", "")])
        self.environment = {**own, "PYTHONPATH": path}

    def make_old(self) -> None:
        """grpcio is too old."""
        place = self.folder / "grpcio-1.0.0.dist-info"
        place.mkdir()
        text = "Metadata-Version: 2.1\nName: grpcio\nVersion: 1.0.0\n"
        (place / "METADATA").write_text(text)

    def make_other(self) -> None:
        """The generated code of the health service is for a newer grpcio."""
        place = self.folder / "grpc_health" / "v1"
        place.mkdir(parents=True)
        (place.parent / "__init__.py").touch()
        (place / "__init__.py").touch()
        (place / "health_pb2_grpc.py").write_text("raise RuntimeError('it is new')\n")


class ProxyTests(ExtraCase):
    """C{rocketbroker proxy run} and C{twistd rocketmq-proxy}."""

    def refused(self, *command: str) -> str:
        """What a start says that is refused."""
        ended = subprocess.run(
            [sys.executable, *command, *FLAGS],
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        self.assertEqual((ended.returncode, ended.stdout), (1, ""), ended.stderr)
        return ended.stderr

    def test_partThatIsTooOldIsOneSentence(self) -> None:
        """With its version, and what to install."""
        self.make_old()
        for command in (PROXY_RUN, TWISTD):
            self.assertEqual(self.refused(*command), TOO_OLD)

    def test_partsThatDoNotFitAreOneSentence(self) -> None:
        """No traceback of theirs."""
        self.make_other()
        for command in (PROXY_RUN, TWISTD):
            self.assertEqual(
                self.refused(*command),
                "The parts of the extra grpc cannot be used together (it is new): pip "
                "install --upgrade 'rocketbroker[grpc]'.\n",
            )


class StandaloneTests(ExtraCase):
    """C{rocketbroker standalone --grpc-port}."""

    def test_clientsAreClosedAndTheLogSaysOnceWhatToInstall(self) -> None:
        """No process begins, and all else is served. C{rocketbroker doctor} says it."""
        self.make_old()
        words = "standalone --temporary --namesrv-port 0 --port 0 --metrics-port off"
        servers = subprocess.Popen(
            [
                *(sys.executable, "-m", "rocketbroker.cli.command", *words.split()),
                *("--grpc-port", "0", "--output", "json"),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
            cwd=self.folder,
        )
        self.addCleanup(servers.wait, STOP_SECONDS)
        self.addCleanup(servers.kill)
        assert servers.stdout is not None
        ready = json.loads(servers.stdout.readline())
        host, _, port = ready["grpc"].rpartition(":")
        for _ in "12":
            with socket.create_connection((host, int(port)), 30) as client:
                self.assertEqual(client.recv(1), b"")
        told = subprocess.run(
            [
                *(sys.executable, "-m", "rocketbroker.cli.command", "doctor"),
                *("-n", ready["namesrv"], "--proxy", ready["grpc"]),
            ],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        self.assertEqual(told.returncode, 1, told.stderr)
        self.assertIn("pip install 'rocketbroker[grpc]'", " ".join(told.stdout.split()))
        servers.send_signal(signal.SIGTERM)
        _, log = servers.communicate(timeout=STOP_SECONDS)
        words = TOO_OLD.replace("A proxy", "A client of gRPC is refused: the proxy")
        self.assertEqual(log.count(words), 1, log)
