"""The official clients for gRPC through our proxy, before our broker."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from scripts.lab.grpcjava import java_client
from scripts.lab.javaclient import body_of
from scripts.lab.servers import ROOT, STOP_SECONDS, Cluster, children, environment
from tests.integration.typed_topics import prepare

#: How long something may take that comes by itself, in seconds.
PATIENCE = 60.0

#: The type of the topic of each scenario, and whether its group consumes in order.
SCENARIOS = {
    "normal": ("NORMAL", False),
    "fifo": ("FIFO", True),
    "delay": ("DELAY", False),
    "transaction": ("TRANSACTION", False),
    "retry": ("NORMAL", False),
}

#: The scenarios that are carried out with TLS, beside the others in plain text: each
#: kind of call, and both kinds of consumers.
WITH_TLS = ("normal", "retry")


class FolderCase(SynchronousTestCase):
    """The official client for Python, with a directory."""

    timeout = 300

    def setUp(self) -> None:
        """A directory."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def passes(
        self, endpoint: str, scenario: str, *more: str, topic: str | None = None
    ) -> None:
        """One scenario, in a process of its own."""
        topic = topic or "_".join(("T", scenario, *more))
        done = subprocess.run(
            [
                *(sys.executable, "-W", "ignore", "-m", "scripts.lab.official_python"),
                *(endpoint, scenario, topic, *more),
            ],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={
                **os.environ,
                "HOME": str(self.folder),
                "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(self.folder / "root"),
            },
            timeout=self.timeout,
        )
        self.assertEqual(done.stdout, "passed\n", f"{topic}: {done.stderr[-3000:]}")


class OursCase(FolderCase):
    """A cluster of ours, and a proxy before it."""

    def setUp(self) -> None:
        """A cluster."""
        super().setUp()
        self.cluster = Cluster(
            transactionTimeOut=1000,
            transactionCheckInterval=1500,
            recallMessageEnable="true",
        )
        self.addCleanup(self.cluster.stop)
        self.cluster.start()

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


class OfficialPythonTests(OursCase):
    """C{scripts.lab.official_python}."""

    def test_scenariosHold(self) -> None:
        """All at once: sends and receives of each kind of message; TLS and plain text
        on one port."""
        for scenario, (kind, is_ordered) in SCENARIOS.items():
            prepare(self.cluster.broker.port, f"T_{scenario}", kind, is_ordered)
            if scenario in WITH_TLS:
                tls = f"T_{scenario}_tls"
                prepare(self.cluster.broker.port, tls, kind, is_ordered)
        proxy, endpoint = self.proxy(self.cluster.names)
        # The client checks certificates: it trusts this one.
        host, _, port = endpoint.partition(":")
        root = ssl.get_server_certificate((host, int(port)), timeout=PATIENCE)
        (self.folder / "root").write_text(root)
        runs = [(name,) for name in SCENARIOS] + [(name, "tls") for name in WITH_TLS]
        with ThreadPoolExecutor(len(SCENARIOS)) as threads:
            for done in [threads.submit(self.passes, endpoint, *run) for run in runs]:
                done.result()
        proxy.send_signal(signal.SIGTERM)
        self.assertEqual(proxy.wait(STOP_SECONDS), 0)


class OfficialJavaTests(OursCase):
    """The client for Java, which speaks TLS unless told otherwise."""

    def test_itSendsAndReceivesWithTLS(self) -> None:
        """With both kinds of consumers."""
        topic = "T_java"
        prepare(self.cluster.broker.port, topic, "NORMAL", False)
        _, endpoint = self.proxy(self.cluster.names)
        java = java_client(endpoint, self.folder, "tls")
        self.addCleanup(java.stop)
        java("producer", name="p", topic=topic)
        java("push", name="c", group=f"G_{topic}", topic=topic)
        sent = {b"%d" % number for number in range(10)}
        for body in sent:
            java.send("p", topic, body)
        pushed = java.received("c", len(sent), PATIENCE)
        self.assertEqual({body_of(message) for message in pushed}, sent)
        java("stop", name="c")
        java("simple", name="s", group=f"G_{topic}", topic=topic)
        java.send("p", topic, b"taken")
        found: list[Any] = []
        end = time.monotonic() + PATIENCE
        while not found and time.monotonic() < end:
            found = java("receive", name="s")
        self.assertEqual([body_of(message) for message in found], [b"taken"])
        java("ack", name="s", id=found[0]["id"])
        for name in ("p", "s"):
            java("stop", name=name)


class StandaloneTests(FolderCase):
    """C{rocketbroker standalone --grpc-port}."""

    def test_proxyBeginsWithAClient(self) -> None:
        """A proxy begins with the first client, and again if it was killed."""
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
            self.passes(ready["grpc"], "normal", topic=topic)
            (proxy,) = children(servers.pid)
            if topic == "First":
                os.kill(proxy, signal.SIGKILL)
        servers.send_signal(signal.SIGTERM)
        self.assertEqual(servers.wait(STOP_SECONDS), 0)
        self.assertFalse(Path(f"/proc/{proxy}").exists())
