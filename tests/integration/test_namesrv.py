"""The name server as a process."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.fastjson import loads
from scripts.lab.servers import Server, ask, environment, free_base

#: How long a program may take; nothing is asserted about it.
SECONDS = 120.0

#: How twistd ends after SIGTERM: of late by the same signal.
STOPPED = (0, -signal.SIGTERM)


class ProgramTests(SynchronousTestCase):
    """`twistd -n namesrv`."""

    def setUp(self) -> None:
        """A folder and a port."""
        self.folder = Path(tempfile.mkdtemp(prefix="rocketbroker-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.port = free_base()
        self.settings: dict[str, object] = {
            "bindAddress": "127.0.0.1",
            "listenPort": self.port,
            "kvConfigPath": self.folder / "namesrv" / "kvConfig.json",
            "metricsPromExporterPort": self.port + 1,
        }

    def server(self) -> Server:
        """The name server, started."""
        server = Server("namesrv", self.settings, self.folder, self.port)
        self.addCleanup(server.stop)
        server.start()
        return server

    def run_program(self, *args: str) -> tuple[int, str, str]:
        """Exit status, output and errors of a name server that ends by itself."""
        twistd = Path(sys.executable).parent / "twistd"
        done = subprocess.run(
            [sys.executable, str(twistd), "-n", "--pidfile=", "namesrv", *args],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            cwd=self.folder,
            env=environment(),
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    def file(self, **settings: object) -> str:
        """A settings file."""
        path = self.folder / f"{len(list(self.folder.iterdir()))}.conf"
        whole = {**self.settings, **settings}
        path.write_text("".join(f"{key}={value}\n" for key, value in whole.items()))
        return str(path)

    def test_life(self) -> None:
        """It says once that it is ready, keeps settings over a restart, and stops."""
        server = self.server()
        put = {"namespace": "n", "key": "k", "value": "v"}
        self.assertEqual(
            ask(self.port, Command(RequestCode.PUT_KV_CONFIG, put)).code, 0
        )
        self.assertIn(server.stop(), STOPPED)
        server.start()
        listed = ask(
            self.port, Command(RequestCode.GET_KVLIST_BY_NAMESPACE, {"namespace": "n"})
        )
        self.assertEqual(loads(listed.body), {"table": {"k": "v"}})
        self.assertIn(server.stop(), STOPPED)
        line = (
            "The Name Server boot success. serializeType=JSON, "
            f"address 127.0.0.1:{self.port}"
        )
        log = server.log.read_text()
        self.assertEqual(log.count(line), 2)
        self.assertNotIn("Traceback", log)

    def test_changedSettings(self) -> None:
        """A setting changed from afar is in the file, and in force after a restart."""
        server = self.server()
        body = b"needWaitForService=true"
        changed = ask(self.port, Command(RequestCode.UPDATE_NAMESRV_CONFIG, body=body))
        self.assertEqual(changed.code, 0)
        server.stop()
        server.start()
        route = Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "T"})
        self.assertEqual(ask(self.port, route).remark, "name server not ready")

    def test_refusals(self) -> None:
        """What is wrong is one sentence on standard error, and exit status 1."""
        blocked = self.folder / "file"
        blocked.write_text("")
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", self.port))
            taken.listen()
            for args, words in (
                (("--nonsense",), "nonsense"),
                (("-c", "/nowhere"), "/nowhere"),
                (("-c", self.file(listenPort="many")), "listenPort"),
                (("-c", self.file(kvConfigPath=f"{blocked}/kv.json")), "kv.json"),
                (("-c", self.file()), f"127.0.0.1:{self.port}"),
            ):
                status, out, errors = self.run_program(*args)
                self.assertEqual((status, out), (1, ""), errors)
                self.assertEqual(errors.count("\n"), 1, errors)
                self.assertIn(words, errors)

    def test_metricsPortTaken(self) -> None:
        """A metrics port in use is a sentence, too."""
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", self.port + 1))
            taken.listen()
            settings = self.file(metricsPromExporterHost="127.0.0.1")
            status, out, errors = self.run_program("-c", settings)
        self.assertEqual((status, out), (1, ""), errors)
        self.assertEqual(errors.count("\n"), 1, errors)
        self.assertIn("metricsPromExporterPort", errors)

    def test_helpAndSettings(self) -> None:
        """Help and the printed settings end well."""
        for flag in ("-h", "--help"):
            status, out, _ = self.run_program(flag)
            self.assertEqual(status, 0)
            self.assertIn("--configFile", out)
        status, out, errors = self.run_program("-p", "-c", self.file())
        self.assertEqual((status, errors), (0, ""))
        self.assertIn(f"listenPort={self.port}\n", out)
