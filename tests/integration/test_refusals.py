"""What operators and strangers do wrong: one sentence, one connection, nobody else."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.messages import Message
from rocketbroker.blocking.producer import Producer
from rocketbroker.blocking.settings import Settings
from scripts.lab.servers import Cluster, environment, free_base
from tests.integration.javacase import until

#: A whole frame with an empty JSON object as its header and no body.
FRAME = struct.pack(">II", 6, 2) + b"{}"


class MissingExtras(SynchronousTestCase):
    """Verbs without what their extra brings, as after C{pip install .} alone."""

    def test_exportsNameTheirExtra(self) -> None:
        """One sentence says what is missing and how to install it."""
        root = Path(self.mktemp()).absolute()
        (root / "_rocketbroker").mkdir(parents=True)
        for verb, missing in (
            ("verify", "numpy"),
            ("report", "numpy"),
            ("report", "jinja2"),
        ):
            program = (
                f"import sys; sys.modules[{missing!r}] = None\n"
                "from rocketbroker.cli.command import main; main()"
            )
            done = subprocess.run(
                [sys.executable, "-c", program, "export", verb, str(root)],
                capture_output=True,
                text=True,
                env=environment(),
            )
            self.assertEqual(done.returncode, 1, done)
            self.assertEqual(
                done.stderr,
                f"rocketbroker: {missing} is not installed: "
                "pip install 'rocketbroker[spark]'\n",
            )


class RefusedStarts(SynchronousTestCase):
    """A program that cannot start says why, in one sentence, with exit status 1."""

    def setUp(self) -> None:
        """A folder and ports of its own."""
        self.folder = Path(tempfile.mkdtemp(prefix="rocketbroker-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.port = free_base()

    def start(self, program: str, *words: str) -> str:
        """Start a program that must refuse; what it said."""
        twistd = Path(sys.executable).parent / "twistd"
        command = [sys.executable, str(twistd), "-n", "--pidfile="]
        done = subprocess.run(
            [*command, program, *words],
            capture_output=True,
            text=True,
            timeout=300,
            cwd=self.folder,
            env=environment(),
        )
        output = done.stderr
        self.assertEqual(done.returncode, 1, output + done.stdout)
        self.assertEqual(len(output.strip().splitlines()), 1, output)
        self.assertNotIn("Traceback", output + done.stdout)
        return output

    def settings(self, **pairs: object) -> str:
        """A settings file."""
        path = self.folder / "settings.conf"
        own = {
            "listenPort": self.port + 10,
            "kvConfigPath": self.folder / "kv.json",
            "brokerIP1": "127.0.0.1",
            "storePathRootDir": self.folder / "store",
            "metricsPromExporterPort": 0,
        }
        lines = [f"{key}={value}\n" for key, value in {**own, **pairs}.items()]
        path.write_text("".join(lines))
        return str(path)

    @contextmanager
    def occupied(self, port: int) -> Iterator[None]:
        """Another program listens on a port."""
        with socket.socket() as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(("0.0.0.0", port))
            taken.listen()
            yield

    def test_flags(self) -> None:
        """An unknown flag is named."""
        for program in ("namesrv", "rocketbroker"):
            self.assertIn("bogus", self.start(program, "--bogus"))

    def test_unreadable(self) -> None:
        """A settings file that is not there is named."""
        for program in ("namesrv", "rocketbroker"):
            missing = str(self.folder / "missing.conf")
            self.assertIn(missing, self.start(program, "-c", missing))

    def test_badValue(self) -> None:
        """A value that does not fit its key is named with it."""
        for program in ("namesrv", "rocketbroker"):
            output = self.start(program, "-c", self.settings(listenPort="many"))
            self.assertIn("listenPort", output)
            self.assertIn("many", output)

    def test_portInUse(self) -> None:
        """A port that somebody has is named: main, VIP, metrics, and replication."""
        for program, port, more in (
            ("namesrv", self.port + 10, {}),
            ("rocketbroker", self.port + 10, {}),
            ("rocketbroker", self.port + 8, {}),
            ("rocketbroker", self.port + 11, {}),
            ("rocketbroker", self.port + 1, {"metricsPromExporterPort": self.port + 1}),
            ("namesrv", self.port + 2, {"metricsPromExporterPort": self.port + 2}),
        ):
            with self.occupied(port):
                output = self.start(program, "-c", self.settings(**more))
            self.assertIn(str(port), output)

    def test_unwritable(self) -> None:
        """A store that cannot be written is named."""
        blocked = self.folder / "file"
        blocked.write_text("")
        path = self.settings(storePathRootDir=blocked / "store")
        self.assertIn(str(blocked), self.start("rocketbroker", "-c", path))

    def test_lockedStore(self) -> None:
        """A store that another broker uses is named, and that broker's process; it is
        not hurt."""
        cluster = Cluster().start()
        self.addCleanup(cluster.stop)
        path = self.settings(storePathRootDir=cluster.store)
        output = self.start("rocketbroker", "-c", path)
        self.assertIn(str(cluster.store), output)
        process = cluster.broker.process
        assert process is not None
        self.assertIn(f"process {process.pid}.", output)
        with Client(Settings(cluster.names)) as client:
            sent = Producer(client).send(Message("AfterTheOther", b"x"))
        self.assertEqual(sent.status, 0)

    def test_lockedInTheBackground(self) -> None:
        """A broker that twistd sends to the background, and to another directory, still
        has its store, by a path that begins where it was started; here with another
        reactor."""
        path = self.settings(storePathRootDir="store")
        pid = self.folder / "twistd.pid"
        (self.folder / "elsewhere").mkdir()
        twistd = Path(sys.executable).parent / "twistd"
        command = [sys.executable, str(twistd), f"--pidfile={pid}", "--reactor=poll"]
        command += [
            "--rundir=elsewhere",
            f"--logfile={self.folder}/log",
            "rocketbroker",
            "-c",
            path,
        ]
        env = environment()
        subprocess.run(command, check=True, timeout=300, cwd=self.folder, env=env)
        number = int(pid.read_text())
        try:
            with open(self.folder / "store" / "lock", "r+b") as lock:
                self.assertRaises(
                    BlockingIOError, fcntl.lockf, lock, fcntl.LOCK_EX | fcntl.LOCK_NB, 1
                )
            log = self.folder / "log"
            self.assertTrue(until(lambda: "boot success" in log.read_text(), 60))
        finally:
            os.kill(number, signal.SIGTERM)
            while Path(f"/proc/{number}").exists():
                time.sleep(0.05)


class Strangers(SynchronousTestCase):
    """Whatever a stranger sends costs him his own connection and nobody else's."""

    def setUp(self) -> None:
        """A cluster, and a client of good standing."""
        self.cluster = Cluster().start()
        self.addCleanup(self.cluster.stop)
        client = Client(Settings(self.cluster.names))
        self.addCleanup(client.close)
        self.producer = Producer(client)
        self.producer.send(Message("Strangers", b"before"))

    def ports(self) -> dict[str, int]:
        """All ports that are spoken to, by name."""
        main = self.cluster.broker.port
        return {
            "namesrv": self.cluster.namesrv.port,
            "main": main,
            "vip": main - 2,
            "metrics": self.cluster.broker_metrics,
        }

    def connect(self, port: int) -> socket.socket:
        """A connection that gives up after a while."""
        stranger = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.addCleanup(stranger.close)
        return stranger

    def broken(self, port: int, name: str) -> float:
        """How many connections a port of either server has closed for nonsense."""
        url = f"http://127.0.0.1:{port}/metrics"
        with urllib.request.urlopen(url, timeout=20) as answer:
            text = answer.read().decode()
        pattern = rf'rocketbroker_connections_broken_total{{.*port="{name}".*}} (\S+)'
        match = re.search(pattern, text)
        assert match is not None, text
        return float(match[1])

    def test_garbage(self) -> None:
        """Garbage, oversized and impossible frames close that connection only."""
        cluster = self.cluster
        for server, name in (("namesrv", "main"), ("main", "main"), ("vip", "vip")):
            port = self.ports()[server]
            metrics = cluster.broker_metrics
            if server == "namesrv":
                metrics = cluster.namesrv_metrics
            before = self.broken(metrics, name)
            pieces = (
                b"GET / HTTP/1.0\r\n\r\n",
                b"\xff" * 100,
                struct.pack(">I", 1 << 24) + b"x" * 100,
                struct.pack(">II", 20, 4000) + b"x" * 100,
                struct.pack(">II", 20, 2 << 24) + b"x" * 100,
                struct.pack(">II", 4, 0),
                struct.pack(">II", 10, 6) + b"{code:",
                struct.pack(">II", 30, 26 | 1 << 24) + b"\x7f" * 26,
            )
            for piece in pieces:
                stranger = self.connect(port)
                stranger.sendall(piece)
                self.assertEqual(stranger.recv(100), b"", (server, piece[:20]))
            self.assertEqual(self.broken(metrics, name) - before, len(pieces), server)
            self.assertEqual(self.producer.send(Message("Strangers", b"x")).status, 0)

    def test_halfFrames(self) -> None:
        """Half frames, held open by many, disturb nobody; then they are dropped."""
        strangers = []
        for name, port in self.ports().items():
            for size in range(len(FRAME)):
                stranger = self.connect(port)
                stranger.sendall(FRAME[:size])
                strangers.append((name, stranger))
        for _ in range(20):
            self.assertEqual(self.producer.send(Message("Strangers", b"x")).status, 0)
        for _, stranger in strangers:
            stranger.close()
        self.assertEqual(self.producer.send(Message("Strangers", b"x")).status, 0)

    def test_unknownCode(self) -> None:
        """A request that nobody serves is answered with code 3 and its code."""
        header = b'{"code":4711,"flag":0,"language":"JAVA","opaque":9,"version":0}'
        for name in ("namesrv", "main", "vip"):
            stranger = self.connect(self.ports()[name])
            stranger.sendall(struct.pack(">II", 4 + len(header), len(header)) + header)
            answer = stranger.recv(1000)
            self.assertIn(b'"code":3', answer)
            self.assertIn(b"request type 4711 not supported", answer)
            self.assertNotIn(b"Traceback", answer)

    def test_noFileDescriptorIsLost(self) -> None:
        """Connections that come and go leave nothing open."""
        process = self.cluster.broker.process
        assert process is not None
        folder = f"/proc/{process.pid}/fd"

        def count() -> int:
            self.producer.send(Message("Strangers", b"x"))
            return len(os.listdir(folder))

        for _ in range(20):  # all files are open from then on
            before = count()
            time.sleep(0.1)
        for number in range(200):
            stranger = self.connect(self.cluster.broker.port)
            stranger.sendall(b"\xff" * 8 if number % 2 else FRAME[:7])
            stranger.close()
        until(lambda: count() <= before)
        self.assertLessEqual(count(), before)
