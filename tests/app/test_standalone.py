"""Name server and broker in one process."""

from __future__ import annotations

import gc
import io
import os
import socket
from contextlib import redirect_stderr
from pathlib import Path
from typing import ClassVar

import attrs
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.logs import LogOptions
from rocketbroker.app.slave_process import SlaveProcess, slave_settings
from rocketbroker.app.standalone import (
    Flags,
    free_port,
    merged,
    run_standalone,
)
from rocketbroker.app.startflags import LOOPBACK, StartFlags
from rocketbroker.app.temporary import INDEX, SEGMENT
from rocketbroker.broker.broker import VIP_DISTANCE
from rocketbroker.errors import ConfigurationError


class PortTests(SynchronousTestCase):
    """Any free port."""

    def test_free(self) -> None:
        """The port and its VIP port can both be bound."""
        port = free_port(LOOPBACK)
        for each in (port, port - VIP_DISTANCE, port + 1):
            with socket.socket() as sock:
                sock.bind((LOOPBACK, each))


class MergedTests(SynchronousTestCase):
    """Flags and the settings file."""

    given: ClassVar = {
        "listenPort": "1",
        "metricsPromExporterPort": "2",
        "storePathRootDir": "/a",
        "storePathCommitLog": "/b",
        "brokerIP1": "10.0.0.1",
        "namesrvAddr": "a:1",
        "flushDiskType": "SYNC_FLUSH",
    }

    def test_file(self) -> None:
        """Without flags each key of the file counts."""
        self.assertEqual(merged(self.given, Flags()), self.given)

    def test_flags(self) -> None:
        """Flags win, 0 among them."""
        start = StartFlags.from_texts(["listenPort=3"], metrics_port="off")
        flags = Flags(directory="/d", port=0, advertise="b.example", start=start)
        self.assertEqual(
            merged(self.given, flags),
            {
                **self.given,
                "listenPort": "0",
                "metricsPromExporterPort": "0",
                "storePathRootDir": "/d",
                "brokerIP1": "b.example",
            },
        )

    def test_directoryIsAPathLikeAnyOther(self) -> None:
        """It begins where the command is started, or in the home directory."""
        for directory, place in (
            ("d", os.path.abspath("d")),
            ("~/d", os.path.expanduser("~/d")),
        ):
            settings = merged(self.given, Flags(directory=directory))
            self.assertEqual(settings["storePathRootDir"], place)

    def test_temporary(self) -> None:
        """What is thrown away lies in one directory, with small files."""
        flags = Flags(directory="/tmp/x", is_temporary=True)
        settings = merged(self.given, flags)
        self.assertNotIn("storePathCommitLog", settings)
        self.assertEqual(settings["storePathRootDir"], "/tmp/x")
        self.assertEqual(settings["mappedFileSizeCommitLog"], str(SEGMENT))
        own = {"mappedFileSizeCommitLog": "4096", "maxIndexNum": "8"}
        self.assertEqual(
            merged(own, attrs.evolve(flags, directory=None)),
            {**own, "maxHashSlotNum": INDEX["maxHashSlotNum"]},
        )

    def test_advertisedPort(self) -> None:
        """A port beside the address is told instead of the one that is listened on."""
        self.assertEqual(
            merged({"listenPort": "1"}, Flags(advertise="b.example:30911")),
            {
                "listenPort": "1",
                "brokerIP1": "b.example",
                "rocketbrokerAdvertisedPort": "30911",
            },
        )
        for text in ("b:0", "b:65536", "b:x", "[::1]:"):
            error = self.assertRaises(
                ConfigurationError, merged, {}, Flags(advertise=text)
            )
            self.assertEqual(
                str(error),
                f"--advertise cannot be {text!r}: its port must be from 1 to 65535.",
            )

    def test_advertise(self) -> None:
        """An address that is none is refused."""
        error = self.assertRaises(
            ConfigurationError, merged, {}, Flags(advertise="10.0.0.1 # mine")
        )
        self.assertTrue(
            str(error).startswith("--advertise cannot be '10.0.0.1 # mine'")
        )


class SlaveTests(SynchronousTestCase):
    """The settings of a slave."""

    def test_settings(self) -> None:
        """They are the master's, but for its place, its ports, and whom it follows."""
        given = {
            **MergedTests.given,
            "haListenPort": "5",
            "haMasterAddress": "c:2",
            "brokerRole": "SYNC_MASTER",
            "rocketbrokerAdvertisedPort": "9",
            "rocketbrokerAdminPort": "10",
        }
        admin = slave_settings(given, "/s", 1, 7, 8, 11)["rocketbrokerAdminPort"]
        self.assertEqual(admin, "11")
        self.assertEqual(
            slave_settings(given, "/s", 1, 7, 8),
            {
                "listenPort": "7",
                "metricsPromExporterPort": "8",
                "storePathRootDir": "/s",
                "brokerIP1": "10.0.0.1",
                "flushDiskType": "SYNC_FLUSH",
                "brokerRole": "SLAVE",
                "brokerId": "1",
            },
        )

    def test_ports(self) -> None:
        """A slave is shown with its ports; metrics may be off."""
        for metrics, shown in ((8, "slave a:7 (metrics 8)"), (0, "slave a:7")):
            settings = slave_settings({}, "/s", 1, 7, metrics)
            slave = SlaveProcess(1, "a:7", "/s/broker.log", settings)
            self.assertEqual(slave.shown("a:7"), shown)


class RefusalTests(SynchronousTestCase):
    """What is wrong is found before the reactor runs."""

    def refused(
        self, config: str, directory: str | None, is_joining: bool = False
    ) -> str:
        """What is said on standard error before exit status 1."""
        output = io.StringIO()
        self.addCleanup(gc.enable)  # off while a server starts
        flags = Flags(
            directory=directory,
            is_temporary=directory is None,
            namesrv_port=0,
            port=0,
            is_joining=is_joining,
            start=StartFlags(metrics_port="off"),
            config=config,
        )
        with redirect_stderr(output), self.assertRaises(SystemExit) as caught:
            run_standalone(flags, LogOptions())
        self.assertEqual(caught.exception.code, 1)
        self.assertEqual(output.getvalue().count("\n"), 1, output.getvalue())
        return output.getvalue()

    def test_nobodyToJoin(self) -> None:
        """--join without name servers is one sentence."""
        path = Path(self.mktemp())
        path.write_text("namesrvAddr=\n")
        said = self.refused(str(path), self.mktemp(), True)
        self.assertIn("--join needs name servers to join: set namesrvAddr", said)

    def test_noFile(self) -> None:
        """A settings file that is not there is one sentence."""
        path = self.mktemp()
        self.assertIn(path, self.refused(path, self.mktemp()))

    def test_badValue(self) -> None:
        """So is a value that does not fit, for either of them, or a temporary one."""
        path = Path(self.mktemp())
        for text in ("flushDiskType=NEVER", "scanNotActiveBrokerInterval=soon"):
            path.write_text(text)
            key = text.partition("=")[0]
            self.assertIn(key, self.refused(str(path), self.mktemp()))
            self.assertIn(key, self.refused(str(path), None))
