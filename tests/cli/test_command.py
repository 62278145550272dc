"""The command C{rocketbroker}."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from pathlib import Path

import click
from click.testing import CliRunner, Result
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.cli.command import command, main
from rocketbroker.cli.export.commands import Spark, display, run_export
from rocketbroker.cli.lazycommands import LazyCommands
from rocketbroker.errors import ConfigurationError
from rocketbroker.export.progress import LineDisplay
from tests.missing import needs


class CommandTests(SynchronousTestCase):
    """Verbs and options."""

    def call(self, *words: str) -> Result:
        """Call the command in this process."""
        return CliRunner().invoke(command, words, prog_name="rocketbroker")

    def test_help(self) -> None:
        """Each verb says what it does; -h is --help."""
        for words, printed in (
            (("-h",), "standalone"),
            (("standalone", "--help"), "--namesrv-port"),
            (("export", "run", "-h"), "3 nothing new, 4 data loss"),
        ):
            result = self.call(*words)
            self.assertEqual(result.exit_code, 0)
            self.assertIn(printed, result.output)

    def test_sentences(self) -> None:
        """What stands beside the name of a verb is the beginning of its help."""
        assert isinstance(command, LazyCommands)
        for name, place in command.places.items():
            found = command.get_command(click.Context(command), name)
            assert found is not None
            self.assertEqual(place.help, found.get_short_help_str(200), name)

    def test_documented(self) -> None:
        """docs/command-line.rst names every verb on a cluster."""
        assert isinstance(command, LazyCommands)
        root = Path(__file__).resolve().parent.parent.parent
        text = (root / "docs" / "command-line.rst").read_text("utf-8")
        for noun, place in command.places.items():
            if not place.path.startswith("rocketbroker.cli.cluster."):
                continue
            found = command.get_command(click.Context(command), noun)
            if not isinstance(found, click.Group):
                self.assertRegex(text, rf"``(rocketbroker )?{noun}[ `]")
                continue
            for verb in found.list_commands(click.Context(found)):
                named = re.search(rf"``{noun} .*\b{verb}\b", text)
                self.assertTrue(named, f"{noun} {verb}")

    def test_listIsLs(self) -> None:
        """Each noun that has ls has list, too."""
        assert isinstance(command, LazyCommands)
        for noun in command.list_commands(click.Context(command)):
            found = command.get_command(click.Context(command), noun)
            if not isinstance(found, click.Group):
                continue
            context = click.Context(found)
            listing = found.get_command(context, "ls")
            self.assertIs(found.get_command(context, "list"), listing, noun)

    def test_version(self) -> None:
        """It says its version."""
        self.assertIn("rocketbroker, version", self.call("--version").output)

    def test_wrongUse(self) -> None:
        """What makes no sense is refused before anything is done."""
        for words, printed in (
            (("bogus",), "No such command 'bogus'"),
            (("standalone", "--temporary", "--dir", "x"), "exclude each other"),
            (
                ("standalone", "--join", "--namesrv-port", "0"),
                "--join and --namesrv-port exclude each other",
            ),
            (("standalone", "--port", "x"), "'x' is not a valid integer"),
            (("export", "run", "T"), "Missing option '--to'"),
            (
                ("export", "run", "T", "--to", "d"),
                "one of --namesrv, --context and --store",
            ),
            (
                ("export", "run", "--to", "d", "--store", "s"),
                "one of TOPIC, --pattern and --assign is needed",
            ),
            (
                ("export", "run", "T", "--pattern", "U", "--to", "d", "--store", "s"),
                "one of TOPIC, --pattern and --assign is needed",
            ),
            (
                ("export", "run", "T", "--to", "d", "--store", "s", "--conf", "x"),
                "--conf needs KEY=VALUE, not 'x'",
            ),
            (
                ("export", "run", "T", "--to", "d", "--store", "s", "--namesrv", "n"),
                "one of --namesrv, --context and --store",
            ),
        ):
            result = self.call(*words)
            self.assertEqual(result.exit_code, 2)
            self.assertIn(printed, result.output)

    @needs("pyarrow")
    def test_options(self) -> None:
        """Words that make no sense are refused before anything begins."""
        usual = ("export", "run", "T", "--store", "s", "--to", "d")
        for words, sentence in (
            (("--from", "later"), "startingOffsets='later'"),
            (("--from", "group:g"), "startingOffsets=group: needs nameServer"),
            (("--from", '{"U": {"b": {"0": 1}}}'), "names topic 'U'"),
            (("--tags", "a", "--sql", "x = 1"), "one of tags and sqlFilter"),
            (("--sql", "x ="), "sqlFilter='x ='"),
            (("--columns", "bdy"), "there is no column 'bdy'"),
            (("--file-size", "x"), "--file-size 'x' is no number of bytes"),
        ):
            result = self.call(*usual, *words)
            self.assertIsInstance(result.exception, ConfigurationError)
            self.assertIn(sentence, str(result.exception))

    def test_timeWithoutZoneIsSaidToBeUTC(self) -> None:
        """A time of an export is UTC if it does not say otherwise, and that is told."""
        usual = ("export", "run", "T", "--store", "s", "--to", "d", "--sql", "x =")
        for words, told in (
            (("--since", "2026-11-23T07:30"), True),
            (("--until", "2026-11-23"), True),
            (("--since", "2026-11-23T07:30Z", "--until", "-1h"), False),
        ):
            error = self.call(*usual, *words).stderr
            self.assertEqual("is read as UTC." in error, told, words)

    @needs("pyarrow")
    def test_times(self) -> None:
        """A time that is none is refused before anything begins."""
        words = ("export", "run", "a", "--store", "s", "--to", "d", "--since", "soon")
        result = self.call(*words)
        self.assertIsInstance(result.exception, ConfigurationError)
        self.assertIn("startingTimestamp='soon': is neither", str(result.exception))

    @needs("pyarrow")
    def test_noStore(self) -> None:
        """An export that cannot begin ends with 1 and one line."""
        given = {"store": self.mktemp(), "subscribe": "T"}
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = run_export(given, self.mktemp(), Spark(1))
        self.assertEqual(code, 1)
        (line,) = out.getvalue().splitlines()
        self.assertIn("event=failed reason=", line)
        self.assertIn("There is no store in", line)

    def test_display(self) -> None:
        """Without a terminal progress is lines."""
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertIsInstance(display(), LineDisplay)


class MainTests(SynchronousTestCase):
    """L{main}: one sentence and an exit status."""

    def status(self, *words: str) -> tuple[object, str]:
        """What main ends with, and says on standard error."""
        before = sys.argv
        self.addCleanup(setattr, sys, "argv", before)
        sys.argv = ["rocketbroker", *words]
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            ended = self.assertRaises(SystemExit, main)
        return ended.code, errors.getvalue()

    @needs("pyarrow")
    def test_sentence(self) -> None:
        """What goes wrong is said without a traceback."""
        path = self.mktemp()
        code, printed = self.status("export", "abandon", path, "a")
        self.assertEqual(code, 1)
        text = f"{os.path.abspath(path)} has no plan of a that waits"
        self.assertEqual(printed, f"rocketbroker: {text}\n")
        self.assertFalse(os.path.exists(path))

    @needs("pyarrow")
    def test_rootIsAFile(self) -> None:
        """So is a directory that is none."""
        path = self.mktemp()
        with open(path, "w"):
            pass
        code, printed = self.status("export", "run", "a", "--store", "s", "--to", path)
        self.assertEqual(code, 1)
        self.assertEqual(
            printed, f"rocketbroker: {os.path.abspath(path)} is not a directory\n"
        )

    def test_refused(self) -> None:
        """What the system refuses is said with what was refused."""
        path = self.mktemp()
        refused = click.Command("refused", callback=lambda: os.stat(path))
        assert isinstance(command, click.Group)
        command.add_command(refused)
        self.addCleanup(command.commands.pop, "refused")
        code, printed = self.status("refused")
        self.assertEqual(code, 1)
        self.assertEqual(printed, f"rocketbroker: {path}: No such file or directory\n")

    def test_wrongUse(self) -> None:
        """Wrong use ends with 2, and says what is right."""
        code, printed = self.status("export", "run", "a")
        self.assertEqual(code, 2)
        self.assertIn("Missing option '--to'", printed)
