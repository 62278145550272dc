"""The broker's command line."""

from __future__ import annotations

import io
import os
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from twisted.logger import Logger, capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.broker import (
    IMPORTANT,
    Options,
    checked_topics,
    log_recovery,
    log_settings,
    makeService,
    settings_of,
    workers_of,
)
from rocketbroker.app.options import printed
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import ConfigurationError
from rocketbroker.remoting.turns import Turns
from rocketbroker.store.recovery.outcome import RecoveryOutcome, Trust


class RecoveryLinesTests(SynchronousTestCase):
    """L{log_recovery}."""

    def lines(self, outcome: RecoveryOutcome, *report: str) -> list[str]:
        """The lines of the log."""
        with capturedLogs() as events:
            log_recovery(Logger(), "/store", outcome, report)
        return [f"{event['log_level'].name}: {formatEvent(event)}" for event in events]

    def test_clean(self) -> None:
        """After a clean stop one line tells what was read."""
        outcome = RecoveryOutcome(
            clean=True, trust=Trust.NONE, end=500, records=3, seconds=0.12345
        )
        self.assertEqual(
            self.lines(outcome),
            [
                "info: Opened the store /store after a clean stop in 0.123 s: 3 "
                "messages were read, the log ends at 500, 0 bytes were cut off."
            ],
        )

    def test_newStore(self) -> None:
        """Of a store without messages there was no stop to speak of."""
        outcome = RecoveryOutcome(clean=True, trust=Trust.NONE)
        self.assertEqual(
            self.lines(outcome),
            ["info: Opened the store /store in 0.0 s: it has no messages yet."],
        )

    def test_crash(self) -> None:
        """After a crash it also tells what was cut off; warnings follow."""
        outcome = RecoveryOutcome(
            clean=False, trust=Trust.NONE, end=500, cut_bytes=20, cut_position=500
        )
        opened, warning = self.lines(outcome, "Rules of ACL are not served.")
        self.assertIn("after a crash in", opened)
        self.assertIn("20 bytes were cut off at 500.", opened)
        self.assertEqual(warning, "warn: Store: Rules of ACL are not served.")


class SettingsTests(SynchronousTestCase):
    """What flags and file say."""

    def file(self, text: str) -> str:
        """A settings file."""
        path = Path(self.mktemp())
        path.write_text(text)
        return str(path)

    def settings(self, *args: str) -> BrokerSettings:
        """The settings of a command line."""
        options = Options()
        options.parseOptions(args)
        return settings_of(options)

    def test_none(self) -> None:
        """Without a file all is as RocketMQ has it."""
        settings = self.settings()
        self.assertEqual(settings.server.listen_port, 10911)
        self.assertEqual(settings.broker.broker_cluster_name, "DefaultCluster")
        self.assertEqual(settings.unknown, {})

    def test_file(self) -> None:
        """A file sets all parts; what nobody knows is kept."""
        path = self.file(
            "listenPort=1234\nbrokerName = b\nflushDiskType=SYNC_FLUSH\nx=y"
        )
        settings = self.settings("-c", path)
        self.assertEqual(settings.server.listen_port, 1234)
        self.assertEqual(settings.broker.broker_name, "b")
        self.assertEqual(settings.store.flush_disk_type, "SYNC_FLUSH")
        self.assertEqual(settings.unknown, {"x": "y"})

    def test_nameServers(self) -> None:
        """The flag wins over the file; each entry is host:port."""
        path = self.file("namesrvAddr=a:1")
        self.assertEqual(self.settings("-c", path).name_servers, ("a:1",))
        both = self.settings("-c", path, "-n", "b:2;c:3")
        self.assertEqual(both.name_servers, ("b:2", "c:3"))
        with self.assertRaises(ConfigurationError):
            self.settings("-n", "nonsense")

    def logged(self, *args: str) -> list[str]:
        """What is logged of the settings of a command line."""
        with capturedLogs() as events:
            log_settings(Logger(), self.settings(*args))
        return [f"{event['log_level'].name}: {formatEvent(event)}" for event in events]

    def test_missingNameServersAreWarnedOf(self) -> None:
        """Once at the start; not where a page is asked for them."""
        asked = self.file("fetchNamesrvAddrByAddressServer=true\n")
        for args, count in ((), 1), (("-n", "a:1"), 0), (("-c", asked), 0):
            lines = "\n".join(self.logged(*args))
            self.assertEqual(lines.count("warn: No name server is configured"), count)

    def test_roleIsSaid(self) -> None:
        """The start says whether this is a master, of which name and cluster."""
        path = self.file("brokerName=b\nbrokerRole=SLAVE\nbrokerId=2\n")
        self.assertIn(
            "info: This is a slave (SLAVE): b of the cluster DefaultCluster, brokerId "
            "2.",
            self.logged("-c", path),
        )
        self.assertIn("info: This is a master (ASYNC_MASTER): ", str(self.logged()))

    def test_advertise(self) -> None:
        """The flag wins over the file; it must be an address or a name."""
        path = self.file("brokerIP1=10.0.0.1")
        settings = self.settings("-c", path, "--advertise", "b.example")
        self.assertEqual(settings.broker.broker_ip1, "b.example")
        self.assertEqual(settings.address_reason, "brokerIP1")
        with self.assertRaises(ConfigurationError):
            self.settings("--advertise", "a b")

    def test_advertisedPort(self) -> None:
        """HOST:PORT sets both; brackets belong to the host, other colons are IPv6."""
        for text, host, port in (
            ("b.example:30911", "b.example", 30911),
            ("[fd00::1]:30911", "[fd00::1]", 30911),
            ("fd00::1", "fd00::1", 10911),
            ("10.0.0.1", "10.0.0.1", 10911),
        ):
            settings = self.settings("--advertise", text)
            self.assertEqual(settings.broker.broker_ip1, host)
            self.assertEqual(settings.advertised_port, port)
            self.assertEqual(settings.server.listen_port, 10911)

    def test_setWinsOverTheFile(self) -> None:
        """--set wins over the file, and flags over --set."""
        path = self.file("brokerIP1=10.0.0.1\nbrokerName=a\nlistenPort=1")
        settings = self.settings(
            *("-c", path, "--advertise", "b.example", "--metrics-port", "off"),
            *("--set", "brokerIP1=10.0.0.2", "--set", "brokerName=b"),
            *("--set", "metricsPromExporterPort=7"),
        )
        self.assertEqual(settings.broker.broker_ip1, "b.example")
        self.assertEqual(settings.broker.broker_name, "b")
        self.assertEqual(settings.server.listen_port, 1)
        self.assertEqual(settings.broker.metrics_prom_exporter_port, 0)
        with self.assertRaises(ConfigurationError):
            self.settings("--set", "brokerName")

    def test_changesAreReadFromTheStoreOfSet(self) -> None:
        """What requests have changed lies in the store, and --set may say where that
        is, by a relative path, too."""
        root = Path(self.mktemp())
        (root / "config").mkdir(parents=True)
        (root / "config" / "broker.properties").write_text("brokerPermission=4\n")
        for path in (str(root), str(root.absolute())):
            settings = self.settings("--set", f"storePathRootDir={path}")
            self.assertEqual(settings.broker.broker_permission, 4)
        word = "requests have changed"
        kept = f"{root.absolute()}/config/broker.properties: brokerPermission."
        there = ("--set", f"storePathRootDir={root.absolute()}")
        (line,) = [line for line in self.logged(*there) if word in line]
        self.assertTrue(line.endswith(f" are taken from {kept}"), line)
        lines = self.logged("--set", "brokerPermission=4")
        self.assertNotIn(word, "\n".join(lines))
        from_home = os.path.relpath(root, os.path.expanduser("~"))
        with_home = self.settings("--set", f"storePathRootDir=~/{from_home}")
        self.assertEqual(with_home.broker.broker_permission, 4)

    def test_slaveMakesNoTopics(self) -> None:
        """A slave has its master's topics: --topic is refused."""
        slave = self.settings("--set", "brokerRole=SLAVE", "--set", "brokerId=1")
        self.assertEqual(checked_topics({}, slave), {})
        error = self.assertRaises(ConfigurationError, checked_topics, {"a": 4}, slave)
        self.assertIn("takes its topics from its master", str(error))
        self.assertEqual(checked_topics({"a": 4}, self.settings()), {"a": 4})

    def test_workers(self) -> None:
        """The flag wins over the file; it must be a number or auto."""
        path = self.file("workers=1")
        self.assertEqual(self.settings("-c", path).broker.workers, "1")
        settings = self.settings("-c", path, "--workers", "auto")
        self.assertEqual(settings.broker.workers, "auto")
        for text in ("-1", "65", "many"):
            error = self.assertRaises(
                ConfigurationError, self.settings, f"--workers={text}"
            )
            self.assertEqual(
                str(error),
                f"--workers cannot be {text!r}: it must be auto, or a whole number "
                "from 0 to 64.",
            )

    def test_workersWithoutEpoll(self) -> None:
        """Where there is no epoll there can be no workers."""
        reactor = object()
        self.assertIsNone(workers_of(reactor, Turns(), self.settings()))
        settings = self.settings("--workers", "2")
        error = self.assertRaises(
            ConfigurationError, workers_of, reactor, Turns(), settings
        )
        self.assertEqual(
            str(error),
            "workers cannot be '2': there is no epoll here, which workers need; 0 "
            "does without.",
        )

    def test_printed(self) -> None:
        """-p prints all settings in force, each once, -m the important ones."""
        parts = self.settings("-n", "a:1").parts()
        lines = printed(parts).splitlines()
        self.assertEqual(len(lines), len({line.partition("=")[0] for line in lines}))
        for line in (
            "namesrvAddr=a:1",
            "flushDiskType=ASYNC_FLUSH",
            "haMasterAddress=",
            "brokerClusterName=DefaultCluster",
            "listenPort=10911",
        ):
            self.assertIn(line, lines)
        important = printed(parts, IMPORTANT).splitlines()
        self.assertIn("namesrvAddr=a:1", important)
        self.assertIn("listenPort=10911", important)
        self.assertEqual(len(important), len(IMPORTANT))

    def test_printAndExit(self) -> None:
        """Printing ends the program before anything is opened, with status 0."""
        for flag in ("-p", "-m"):
            options = Options()
            options.parseOptions([flag])
            out = io.StringIO()
            with redirect_stdout(out), self.assertRaises(SystemExit) as caught:
                makeService(options)
            self.assertEqual(caught.exception.code, 0)
            self.assertIn("autoCreateTopicEnable=true\n", out.getvalue())

    def test_refused(self) -> None:
        """What is wrong with the file is one sentence and exit status 1."""
        for text in ("flushDiskType=NEVER", "listenPort=many", "brokerRole=SLAVE"):
            options = Options()
            options.parseOptions(["-c", self.file(text)])
            output = io.StringIO()
            with redirect_stderr(output), self.assertRaises(SystemExit) as caught:
                makeService(options)
            self.assertEqual(caught.exception.code, 1)
            self.assertEqual(output.getvalue().count("\n"), 1)
