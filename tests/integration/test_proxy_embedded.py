"""The port for gRPC of C{rocketbroker standalone}, as a process."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from rocketbroker.app.grpc_extra import GRPC_PORT
from scripts.lab.servers import STOP_SECONDS, children, environment

#: How long something may take that is to come soon.
SECONDS = 30.0

#: A standalone broker without a fixed port.
STANDALONE = (
    *("-m", "rocketbroker.cli.command", "standalone"),
    *("--namesrv-port", "0", "--port", "0", "--metrics-port", "off"),
)


class EmbeddedTests(SynchronousTestCase):
    """What is there without a client of gRPC, and what goes with the broker."""

    timeout = 120

    def setUp(self) -> None:
        """A place for stores."""
        if not Path("/proc/self/maps").exists():
            raise SkipTest("needs /proc, as Linux has it")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def start(self, *words: str) -> tuple[subprocess.Popen[str], dict[str, Any]]:
        """A broker that is ready, and what it says then."""
        process = subprocess.Popen(
            [sys.executable, *STANDALONE, "--output", "json", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            cwd=self.folder,
        )
        for output in (process.stdout, process.stderr):
            assert output is not None
            self.addCleanup(output.close)
        self.addCleanup(process.wait, STOP_SECONDS)
        self.addCleanup(process.kill)
        assert process.stdout is not None
        ready: dict[str, Any] = json.loads(process.stdout.readline())
        return process, ready

    def doctor(self, ready: dict[str, Any]) -> str:
        """What C{rocketbroker doctor} finds; nothing of it is a problem."""
        words = "-m rocketbroker.cli.command doctor -n"
        named = [ready["namesrv"], "--proxy", ready["grpc"]]
        ended = subprocess.run(
            [sys.executable, *words.split(), *named],
            env=environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        return ended.stdout

    def test_proxyBeginsWithTheDoctorAndEndsWithTheBroker(self) -> None:
        """However that ends; before there is nothing of it, neither grpcio nor a
        process."""
        broker, ready = self.start("--temporary", "--grpc-port", "0")
        self.assertEqual(children(broker.pid), [])
        self.assertNotIn("cygrpc", Path(f"/proc/{broker.pid}/maps").read_text())
        self.assertIn("serves clients of gRPC", self.doctor(ready))
        (proxy,) = children(broker.pid)
        broker.kill()
        broker.wait(STOP_SECONDS)
        end = time.monotonic() + SECONDS
        while is_running(proxy):
            self.assertLess(time.monotonic(), end, "the proxy goes on")
            time.sleep(0.05)

    def test_temporaryBrokerHasNoneUnlessItIsAskedFor(self) -> None:
        """So brokers of tests do not meet at one port."""
        _, ready = self.start("--temporary")
        self.assertIsNone(ready["grpc"])

    def test_usualPortThatIsTakenIsOneWarning(self) -> None:
        """All else is served. One that was asked for refuses the start."""
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):  # then it is taken without us
                other.bind(("127.0.0.1", GRPC_PORT))
                other.listen()
            broker, ready = self.start("--dir", "store")
            self.assertIsNone(ready["grpc"])
            broker.send_signal(signal.SIGTERM)
            _, log = broker.communicate(timeout=STOP_SECONDS)
            words = f"The port {GRPC_PORT} for gRPC is taken"
            self.assertEqual(log.count(words), 1, log)
            asked = "--temporary", "--grpc-port", str(GRPC_PORT)
            ended = subprocess.run(
                [sys.executable, *STANDALONE, *asked],
                env=environment(),
                cwd=self.folder,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
        self.assertEqual((ended.returncode, ended.stdout), (1, ""))
        self.assertIn(f"The port {GRPC_PORT} for gRPC cannot be had", ended.stderr)


def is_running(pid: int) -> bool:
    """Whether a process is there, and is no zombie."""
    try:
        os.kill(pid, 0)
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
