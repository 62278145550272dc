"""What command lines of servers share."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr
from typing import Any

from twisted.application.service import Service
from twisted.logger import ILogObserver, LogEvent, Logger, formatEvent
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from rocketbroker.app.options import ServerOptions, log_ignored, or_refuse
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.errors import ConfigurationError, StoreError


class IgnoredTests(SynchronousTestCase):
    """L{log_ignored}."""

    def test_lines(self) -> None:
        """A line for each key that is not known, and one for keys without effect."""
        lines: list[str] = []

        @implementer(ILogObserver)
        def observe(event: LogEvent) -> None:
            lines.append(formatEvent(event))

        log = Logger(observer=observe)
        options = BrokerOptions(forward_timeout=5, pop_polling_size=7)
        keys = ["popPollingSize", "forwardTimeout", "regionId"]
        log_ignored(log, ["color"], keys, [options])
        self.assertEqual(
            lines,
            [
                "The setting color is not known here.",
                "These settings have no effect here: forwardTimeout, popPollingSize "
                "(docs/settings.rst).",
            ],
        )
        log_ignored(log, [], ["regionId"], [options])
        self.assertEqual(len(lines), 2)


class OptionsTests(SynchronousTestCase):
    """Flags, and how they refuse."""

    def refused(self, *args: str) -> str:
        """What is said on standard error before exit status 1."""
        said = io.StringIO()
        with redirect_stderr(said), self.assertRaises(SystemExit) as caught:
            ServerOptions().parseOptions(args)
        self.assertEqual(caught.exception.code, 1)
        return said.getvalue()

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
            said = self.refused(*args)
            self.assertEqual(said.count("\n"), 1, said)

    def test_help(self) -> None:
        """-h and --help show the flags and end well."""
        for flag in ("-h", "--help"):
            shown = io.StringIO()
            out, sys.stdout = sys.stdout, shown
            try:
                with self.assertRaises(SystemExit) as caught:
                    ServerOptions().parseOptions([flag])
            finally:
                sys.stdout = out
            self.assertIn(caught.exception.code, (0, None))
            self.assertIn("--configFile", shown.getvalue())

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


class RefuseTests(SynchronousTestCase):
    """An operator's mistake is one sentence and exit status 1."""

    def test_mistakes(self) -> None:
        """Settings and stores that cannot be used end the program with the reason."""
        for error in (ConfigurationError("No such key."), StoreError("It is locked.")):

            @or_refuse
            def serve(error: Exception = error) -> Service:
                raise error

            said = io.StringIO()
            with redirect_stderr(said), self.assertRaises(SystemExit) as caught:
                serve()
            self.assertEqual(caught.exception.code, 1)
            self.assertEqual(said.getvalue(), f"{error}\n")

    def test_otherErrors(self) -> None:
        """A mistake of ours is not hidden."""

        @or_refuse
        def serve() -> Service:
            raise ZeroDivisionError

        self.assertRaises(ZeroDivisionError, serve)
