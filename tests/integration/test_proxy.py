"""The official client for gRPC through our proxy, before our broker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from scripts.lab.servers import ROOT, STOP_SECONDS, Cluster, environment
from tests.integration.typed_topics import prepare

#: The type of the topic of each scenario, and whether its group consumes in order.
SCENARIOS = {
    "normal": ("NORMAL", False),
    "fifo": ("FIFO", True),
    "delay": ("DELAY", False),
    "transaction": ("TRANSACTION", False),
    "retry": ("NORMAL", False),
}


class OfficialPythonTests(SynchronousTestCase):
    """C{scripts.lab.official_python}."""

    timeout = 300

    def proxy(self, names: str) -> tuple[subprocess.Popen[bytes], str]:
        """Start a proxy; where it listens."""
        proxy = subprocess.Popen(
            [
                *(sys.executable, "-m", "rocketbroker.cli.command", "proxy", "run"),
                *("-n", names, "--set", "grpcServerPort=0", "--output", "json"),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
            cwd=self.folder,
        )
        self.addCleanup(proxy.wait, STOP_SECONDS)
        self.addCleanup(proxy.send_signal, signal.SIGTERM)
        assert proxy.stdout is not None
        self.addCleanup(proxy.stdout.close)
        ready = json.loads(proxy.stdout.readline())
        return proxy, str(ready["proxy"])

    def passes(self, endpoint: str, scenario: str, topic: str | None = None) -> None:
        """One scenario, in a process of its own."""
        done = subprocess.run(
            [
                *(sys.executable, "-W", "ignore", "-m", "scripts.lab.official_python"),
                *(endpoint, scenario, topic or f"T_{scenario}"),
            ],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**os.environ, "HOME": str(self.folder)},
            timeout=self.timeout,
        )
        self.assertEqual(done.stdout, "passed\n", f"{scenario}: {done.stderr[-3000:]}")

    def test_scenariosHold(self) -> None:
        """All at once: sends and receives of each kind of message."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        cluster = Cluster(
            transactionTimeOut=1000,
            transactionCheckInterval=1500,
            recallMessageEnable="true",
        )
        self.addCleanup(cluster.stop)
        cluster.start()
        for scenario, (kind, is_ordered) in SCENARIOS.items():
            prepare(cluster.broker.port, f"T_{scenario}", kind, is_ordered)
        proxy, endpoint = self.proxy(cluster.names)
        with ThreadPoolExecutor(len(SCENARIOS)) as threads:
            for done in [
                threads.submit(self.passes, endpoint, scenario)
                for scenario in SCENARIOS
            ]:
                done.result()
        proxy.send_signal(signal.SIGTERM)
        self.assertEqual(proxy.wait(STOP_SECONDS), 0)


class StandaloneTests(OfficialPythonTests):
    """C{rocketbroker standalone --grpc-port}."""

    def test_scenariosHold(self) -> None:
        """A proxy begins with the first client, and again if it was killed."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        words = "standalone --temporary --namesrv-port 0 --port 0 --metrics-port off"
        servers = subprocess.Popen(
            [
                *(sys.executable, "-m", "rocketbroker.cli.command", *words.split()),
                *("--grpc-port", "0", "--output", "json"),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
            cwd=self.folder,
        )
        assert servers.stdout is not None
        with servers.stdout as output:
            ready = json.loads(output.readline())
        self.addCleanup(servers.kill)
        self.assertEqual(children(servers.pid), [])
        port = int(ready["brokers"][0]["address"].rpartition(":")[2])
        for topic in ("First", "Second"):
            prepare(port, topic, "NORMAL", False)
            self.passes(ready["grpc"], "normal", topic)
            (proxy,) = children(servers.pid)
            if topic == "First":
                os.kill(proxy, signal.SIGKILL)
        servers.send_signal(signal.SIGTERM)
        self.assertEqual(servers.wait(STOP_SECONDS), 0)
        self.assertFalse(Path(f"/proc/{proxy}").exists())


def children(pid: int) -> list[int]:
    """The processes that a process has begun."""
    return [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]
