"""The name server as a program: its command line."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.namesrv import (
    Options,
    makeService,
    settings_of,
    steady_ms,
)
from rocketbroker.app.options import printed
from rocketbroker.config.properties import parse


class CommandLineTests(SynchronousTestCase):
    """Flags, settings, and how they are refused."""

    def options(self, *args: str) -> Options:
        """What a command line says."""
        options = Options()
        options.parseOptions(args)
        return options

    def file(self, text: str) -> str:
        """A settings file."""
        path = self.mktemp()
        Path(path).write_text(text)
        return str(Path(path).absolute())

    def refused(self, *args: str) -> str:
        """What is said on standard error before exit status 1."""
        output = io.StringIO()
        with redirect_stderr(output), self.assertRaises(SystemExit) as caught:
            makeService(self.options(*args))
        self.assertEqual(caught.exception.code, 1)
        return output.getvalue()

    def test_defaults(self) -> None:
        """Without flags everything has its default."""
        settings = settings_of(self.options())
        self.assertEqual(settings.server.listen_port, 9876)
        self.assertEqual(settings.properties, {})

    def test_file(self) -> None:
        """The file of -c counts, and is the one that request 318 rewrites."""
        path = self.file("listenPort = 19876\n# a comment\ncolor: blue\n")
        settings = settings_of(self.options("-c", path))
        self.assertEqual(settings.server.listen_port, 19876)
        self.assertEqual(settings.options.config_store_path, path)
        self.assertEqual(settings.unknown, {"color": "blue"})

    def test_setWinsOverTheFile(self) -> None:
        """--set may be given again; a value that does not fit is refused."""
        path = self.file("listenPort = 19876\norderMessageEnable=true\n")
        options = self.options("-c", path, "--set", "listenPort=1", "--set", "a=b")
        settings = settings_of(options)
        self.assertEqual(settings.server.listen_port, 1)
        self.assertTrue(settings.options.order_message_enable)
        self.assertEqual(settings.unknown, {"a": "b"})
        self.assertIn("listenPort", self.refused("--set", "listenPort=x"))

    def test_nameServers(self) -> None:
        """-n is accepted and means nothing."""
        self.assertEqual(settings_of(self.options("-n", "a:1")).unknown, {})

    def test_print(self) -> None:
        """-p prints every key of name server, server and client, and ends well."""
        path = self.file("listenPort=19876\n")
        out = io.StringIO()
        with redirect_stdout(out), self.assertRaises(SystemExit) as caught:
            makeService(self.options("-p", "-c", path))
        self.assertEqual(caught.exception.code, 0)
        parts = settings_of(self.options("-c", path)).parts()
        self.assertEqual(out.getvalue(), printed(parts))
        shown = parse(out.getvalue())
        self.assertEqual(shown["listenPort"], "19876")
        self.assertEqual(shown["needWaitForService"], "false")
        self.assertEqual(shown["connectTimeoutMillis"], "3000")

    def test_refusals(self) -> None:
        """What is wrong is one sentence on standard error, and exit status 1."""
        bad = self.file("listenPort=many\n")
        test = self.file("clusterTest=true\n")
        blocked = self.file(f"kvConfigPath={bad}/kv.json\nlistenPort=0\n")
        for args, sentence in (
            (
                ("-c", "/nowhere"),
                "Cannot read the settings file /nowhere: No such file or directory.",
            ),
            (
                ("-c", bad),
                f"{bad}: listenPort cannot be 'many': it must be a whole number.",
            ),
            (("-c", test), f"{test}: clusterTest cannot be 'true': "),
            (
                ("-c", blocked),
                f"The key-value settings in {bad}/kv.json cannot be",
            ),
        ):
            output = self.refused(*args)
            self.assertTrue(output.startswith(sentence), output)
            self.assertEqual(output.count("\n"), 1)

    def test_important(self) -> None:
        """-m is a broker's flag."""
        output = io.StringIO()
        with redirect_stderr(output), self.assertRaises(SystemExit):
            self.options("-m")
        self.assertEqual(output.getvalue().count("\n"), 1)


class ClockTests(SynchronousTestCase):
    """L{steady_ms}."""

    def test_forward(self) -> None:
        """It never goes back."""
        self.assertLessEqual(steady_ms(), steady_ms())
