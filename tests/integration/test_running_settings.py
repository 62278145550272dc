"""Settings that are changed while servers run, and found again by the next start."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.blocking.connections import Connections
from rocketbroker.blocking.settings import Settings
from rocketbroker.config.properties import parse
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from scripts.lab.servers import Cluster, environment, free_base

#: The requests that change and show settings, of a broker and of a name server.
BROKER = RequestCode.UPDATE_BROKER_CONFIG, RequestCode.GET_BROKER_CONFIG
NAMES = RequestCode.UPDATE_NAMESRV_CONFIG, RequestCode.GET_NAMESRV_CONFIG


def asked(address: str, code: int, body: bytes = b"") -> bytes:
    """The body of the answer to a request that must succeed."""
    connections = Connections(Settings(address))
    try:
        answer = connections.to(address).invoke(Command(code, {}, body), 10)
    finally:
        connections.close()
    assert answer.code == 0, answer.remark
    return answer.body


def shown(address: str, codes: tuple[int, int]) -> dict[str, str]:
    """The settings of a server."""
    return parse(asked(address, codes[1]).decode("utf-8"))


class FileTests(SynchronousTestCase):
    """Servers with C{-c}."""

    def test_restart(self) -> None:
        """The file is changed in its place, and read by the next start."""
        cluster = Cluster()
        self.addCleanup(cluster.stop)
        file = cluster.folder / "rocketbroker.conf"
        real = cluster.folder / "real.conf"
        text = "# by hand\n" + file.read_text() + "brokerPermission=6\n# end\n"
        real.write_text(text)
        file.unlink()
        file.symlink_to(real)
        os.chmod(real, 0o600)
        cluster.start()
        asked(cluster.address, BROKER[0], b"brokerPermission=4\nregionId=north\n")
        asked(cluster.names, NAMES[0], b"orderMessageEnable=true\n")
        changed = text.replace("Permission=6", "Permission=4") + "regionId=north\n"
        self.assertEqual(real.read_text(), changed)
        self.assertTrue(file.is_symlink())
        self.assertEqual(real.stat().st_mode & 0o777, 0o600)
        self.assertEqual((cluster.folder / "real.conf.bak").read_text(), text)
        for server in (cluster.broker, cluster.namesrv):
            server.stop(signal.SIGKILL)
        cluster.start()
        self.assertEqual(shown(cluster.address, BROKER)["brokerPermission"], "4")
        self.assertEqual(shown(cluster.names, NAMES)["orderMessageEnable"], "true")


class StoreTests(SynchronousTestCase):
    """Servers without C{-c}."""

    def setUp(self) -> None:
        """A folder and ports."""
        self.folder = Path(tempfile.mkdtemp(prefix="rocketbroker-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        base = free_base()
        self.names, self.broker = f"127.0.0.1:{base}", f"127.0.0.1:{base + 10}"
        self.words = [
            *("standalone", "--dir", str(self.folder), "--metrics-port", "off"),
            *("--namesrv-port", str(base), "--port", str(base + 10)),
        ]

    def start(self) -> subprocess.Popen[str]:
        """Start both servers and wait until they are ready."""
        process = subprocess.Popen(
            [sys.executable, "-m", "rocketbroker.cli.command", *self.words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        self.addCleanup(process.kill)
        assert process.stdout is not None
        self.assertIn("ready", process.stdout.readline())
        return process

    def stop(self, process: subprocess.Popen[str]) -> str:
        """Stop them; their log."""
        process.terminate()
        return process.communicate(timeout=300)[1]

    def test_restart(self) -> None:
        """The store keeps what was changed, and the log of the next start says it."""
        first = self.start()
        asked(self.broker, BROKER[0], b"brokerPermission=4\n")
        asked(self.names, NAMES[0], b"orderMessageEnable=true\n")
        log = self.stop(first)
        kept = self.folder / "config" / "broker.properties"
        self.assertEqual(kept.read_text(), "brokerPermission=4\n")
        self.assertIn(f"brokerPermission=4 (was 6); kept in {kept}", log)
        # As RocketMQ would have left it: with all settings.
        kept.write_text("brokerPermission=4\nlistenPort=1\nstorePathRootDir=/evil\n")
        second = self.start()
        self.assertEqual(shown(self.broker, BROKER)["brokerPermission"], "4")
        self.assertEqual(shown(self.names, NAMES)["orderMessageEnable"], "true")
        log = self.stop(second)
        self.assertIn(
            f"Settings that requests have changed are taken from {kept}: "
            "brokerPermission.",
            log,
        )


class HomeTests(SynchronousTestCase):
    """Programs without C{-c}, in the home directory."""

    def test_printed(self) -> None:
        """What requests have changed there is in force, and nothing else of it."""
        home = Path(self.mktemp()).absolute()
        kept = "brokerPermission=4\nenableTopicList=false\nlistenPort=1\n"
        for folder, name in (("store/config", "broker"), ("namesrv", "namesrv")):
            (home / folder).mkdir(parents=True)
            (home / folder / f"{name}.properties").write_text(kept)
        for program, line in (
            ("rocketbroker", "brokerPermission=4"),
            ("namesrv", "enableTopicList=false"),
        ):
            twistd = str(Path(sys.executable).parent / "twistd")
            output = subprocess.run(
                [sys.executable, twistd, program, "-p"],
                capture_output=True,
                text=True,
                timeout=300,
                env={**environment(), "HOME": str(home)},
            ).stdout.splitlines()
            self.assertIn(line, output)
            self.assertNotIn("listenPort=1", output)
