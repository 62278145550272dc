"""What command lines of servers share."""

from __future__ import annotations

import io
import os
import sys
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

from twisted.application.service import Service
from twisted.logger import ILogObserver, LogEvent, Logger, formatEvent
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from rocketbroker.app.logs import Log
from rocketbroker.app.options import (
    ServerOptions,
    kept_changes,
    log_ignored,
    or_refuse,
    printed,
)
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.remoting import RemotingServerOptions
from rocketbroker.errors import ConfigurationError, StoreError


class IgnoredTests(SynchronousTestCase):
    """L{log_ignored}."""

    def test_lines(self) -> None:
        """A line for each key that is not known, or was removed, and one for keys
        without effect."""
        lines: list[str] = []

        @implementer(ILogObserver)
        def observe(event: LogEvent) -> None:
            lines.append(formatEvent(event))

        log = Logger(observer=observe)
        options = BrokerOptions(append_ack_async=True, transfer_msg_by_heap=False)
        keys = ["transferMsgByHeap", "appendAckAsync", "regionId"]
        unknown = ["color", "autocreateTopicEnabel", "metricsExporterNames"]
        log_ignored(log, unknown, keys, [options])
        self.assertEqual(
            lines,
            [
                "The setting color is not known here.",
                "The setting autocreateTopicEnabel is not known here. Did you mean "
                "autoCreateTopicEnable?",
                "The setting metricsExporterNames was removed: RocketMQ's own "
                "rocketmq-exporter runs with this broker as it is; start it beside the "
                "broker for metrics under its names.",
                "These settings have no effect here: appendAckAsync, "
                "transferMsgByHeap (docs/settings.rst).",
            ],
        )
        log_ignored(log, [], ["regionId"], [options])
        self.assertEqual(len(lines), 4)


class PrintedTests(SynchronousTestCase):
    """L{printed}."""

    def test_eachKeyOnce(self) -> None:
        """Of two options with one key the later one's value is in force."""
        parts = (BrokerOptions(), RemotingServerOptions(listen_port=10911))
        lines = printed(parts).splitlines()
        self.assertIn("listenPort=10911", lines)
        keys = [line.partition("=")[0] for line in lines]
        self.assertEqual(len(keys), len(set(keys)))
        self.assertIn("controllerAddr=", lines)

    def test_onlySome(self) -> None:
        """Some keys can be picked."""
        self.assertEqual(printed([BrokerOptions()], {"traceOn", "x"}), "traceOn=true\n")


class KeptTests(SynchronousTestCase):
    """L{kept_changes}."""

    def test_kept(self) -> None:
        """What requests may change is taken from the file, and nothing else."""
        path = Path(self.mktemp())
        self.assertEqual(kept_changes(str(path), [BrokerOptions]), {})
        path.write_text("brokerPermission=4\nlistenPort=1\nfileReservedTime=1\n")
        found = kept_changes(str(path), [BrokerOptions])
        self.assertEqual(found, {"brokerPermission": "4"})


class OptionsTests(SynchronousTestCase):
    """Flags, and how they refuse."""

    def refused(self, *args: str) -> str:
        """What is said on standard error before exit status 1."""
        printed = io.StringIO()
        with redirect_stderr(printed), self.assertRaises(SystemExit) as caught:
            ServerOptions().parseOptions(args)
        self.assertEqual(caught.exception.code, 1)
        return printed.getvalue()

    def test_flags(self) -> None:
        """The flags are those of RocketMQ's scripts, short and long."""
        options = ServerOptions()
        options.parseOptions(["-c", "file", "-n", "a:1;b:2", "-p"])
        self.assertEqual(options["configFile"], "file")
        self.assertEqual(options["namesrvAddr"], "a:1;b:2")
        self.assertTrue(options["printConfigItem"])
        options.parseOptions(["--configFile", "other"])
        self.assertEqual(options["configFile"], "other")

    def test_unknown(self) -> None:
        """A flag or a word that means nothing is one sentence."""
        for args in (["--nonsense"], ["-m"], ["-c"], ["word"]):
            printed = self.refused(*args)
            self.assertEqual(printed.count("\n"), 1, printed)

    def test_help(self) -> None:
        """-h and --help show the flags and end well; --version says which."""
        for flag, said in (
            ("-h", "--configFile"),
            ("--help", "--configFile"),
            ("--version", "rocketbroker, version"),
        ):
            shown = io.StringIO()
            out, sys.stdout = sys.stdout, shown
            try:
                with self.assertRaises(SystemExit) as caught:
                    ServerOptions().parseOptions([flag])
            finally:
                sys.stdout = out
            self.assertIn(caught.exception.code, (0, None))
            self.assertIn(said, shown.getvalue())

    def test_daemonHasNoParentAndNoReadyLine(self) -> None:
        """Flags that need the foreground are refused for a daemon."""
        for args in (["--exit-with-parent"], ["--output", "json"]):
            options = ServerOptions()
            parent: Any = {"nodaemon": False, "pidfile": "p"}
            options.parent = parent
            options.parseOptions(args)
            error = self.assertRaises(ConfigurationError, options.start_flags)
            self.assertIn("is not for a daemon", str(error))
            parent["nodaemon"] = True
            options.start_flags()

    def test_readyLineIsSaid(self) -> None:
        """By the verbs in each form; by twistd only as JSON, as its log says it."""
        options = ServerOptions()
        options.parseOptions([])
        self.assertFalse(options.says_ready)
        options.run_by("broker run")
        self.assertTrue(options.says_ready)
        options = ServerOptions()
        options.parseOptions(["--output", "json"])
        self.assertTrue(options.says_ready)

    def test_pidFile(self) -> None:
        """In the foreground no process id is written unless a file is named."""
        for given, nodaemon, kept in (
            ("twistd.pid", True, None),
            ("twistd.pid", False, "twistd.pid"),
            ("mine.pid", True, "mine.pid"),
        ):
            options = ServerOptions()
            parent: Any = {"nodaemon": nodaemon, "pidfile": given}
            options.parent = parent
            options.parseOptions([])
            self.assertEqual(parent["pidfile"], kept)


class LogTests(SynchronousTestCase):
    """Where the log goes, among twistd's own flags."""

    def opened(self, parent: dict[str, object] | None, *args: str) -> Log | None:
        """The log of a command line."""
        options = ServerOptions()
        mine: Any = parent
        options.parent = mine
        options.parseOptions(args)
        log = options.open_log()
        if log is not None and log.output is not None:
            self.addCleanup(log.output.close)
        return log

    def parent(self, **words: object) -> dict[str, object]:
        """twistd's flags."""
        return {"nodaemon": True, "pidfile": "p", "logfile": None, **words}

    def path(self, log: Log | None) -> str | None:
        """Where a log is written."""
        assert log is not None
        return log.output.path if log.output is not None else None

    def test_places(self) -> None:
        """A file of ours, a file of twistd's, or standard output in the foreground."""
        ours, theirs = (os.path.abspath(self.mktemp()) for _ in range(2))
        for args, words, path in (
            (["--log-file", ours], {}, ours),
            ([], {"logfile": theirs}, theirs),
            ([], {"logfile": "-"}, None),
            ([], {}, None),
            ([], {"nodaemon": False}, os.path.abspath("twistd.log")),
        ):
            log = self.opened(self.parent(**words), *args)
            self.assertEqual(self.path(log), path)

    def test_both(self) -> None:
        """Two places are refused."""
        for flag in ("logfile", "syslog", "logger"):
            parent = self.parent(**{flag: "x"})
            error = self.assertRaises(
                ConfigurationError, self.opened, parent, "--log-file", "y"
            )
            self.assertEqual(
                str(error), f"--log-file and twistd's --{flag} exclude each other."
            )

    def test_others(self) -> None:
        """twistd's other places stay twistd's; a daemon has no standard output."""
        self.assertIs(self.opened(self.parent(syslog=True)), None)
        self.assertIs(self.opened(self.parent(logger="a.b")), None)
        parent = self.parent(nodaemon=False, logfile="-")
        self.assertRaises(ConfigurationError, self.opened, parent)


class RefuseTests(SynchronousTestCase):
    """An operator's mistake is one sentence and exit status 1."""

    def test_mistakes(self) -> None:
        """Settings and stores that cannot be used end the program with the reason."""
        for error in (ConfigurationError("No such key."), StoreError("It is locked.")):

            @or_refuse
            def serve(error: Exception = error) -> Service:
                raise error

            printed = io.StringIO()
            with redirect_stderr(printed), self.assertRaises(SystemExit) as caught:
                serve()
            self.assertEqual(caught.exception.code, 1)
            self.assertEqual(printed.getvalue(), f"{error}\n")

    def test_otherErrors(self) -> None:
        """A mistake of ours is not hidden."""

        @or_refuse
        def serve() -> Service:
            raise ZeroDivisionError

        self.assertRaises(ZeroDivisionError, serve)
