"""Commands of which some are imported when they are wanted."""

from __future__ import annotations

import click
from click.testing import CliRunner
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.cli.lazycommands import LazyCommands, VerbPath

PLACE = "tests.cli.test_lazycommands:away"


@click.command("away")
def away() -> None:
    """Stands elsewhere."""
    click.echo("gone")


@click.group(cls=LazyCommands, places={"away": VerbPath(PLACE, "Stands elsewhere.")})
def group() -> None:
    """Two verbs."""


@group.command("here")
def here() -> None:
    """Stands in the group."""
    click.echo("stayed")


class LazyCommandsTests(SynchronousTestCase):
    """A group with a verb of each kind."""

    def call(self, *words: str) -> tuple[int, str]:
        """Exit status and output."""
        result = CliRunner().invoke(group, words)
        return result.exit_code, result.output

    def test_verbs(self) -> None:
        """Both are listed, and run."""
        status, text = self.call("--help")
        self.assertEqual(status, 0)
        self.assertIn("away  Stands elsewhere.", text)
        self.assertIn("here  Stands in the group.", text)
        self.assertEqual(self.call("away"), (0, "gone\n"))
        self.assertEqual(self.call("here"), (0, "stayed\n"))

    def test_listIsLs(self) -> None:
        """Who looks for list finds ls; help names only ls."""

        @click.group(cls=LazyCommands, elsewhere={"reset": "See 'other reset'."})
        def noun() -> None:
            """A noun."""

        @noun.command("ls")
        def noun_ls() -> None:
            """List."""
            click.echo("all")

        for word in ("ls", "list"):
            result = CliRunner().invoke(noun, [word])
            self.assertEqual((result.exit_code, result.output), (0, "all\n"))
        self.assertNotIn("list", CliRunner().invoke(noun, ["--help"]).output)
        self.assertEqual(self.call("list")[0], 2)

    def test_elsewhereIsTold(self) -> None:
        """A verb that people look for in a noun says where it is."""

        @click.group(cls=LazyCommands, elsewhere={"reset": "See 'other reset'."})
        def noun() -> None:
            """A noun."""

        result = CliRunner().invoke(noun, ["reset", "x", "--to", "y"])
        self.assertEqual(result.exit_code, 2)
        self.assertIn("No such command 'reset'. See 'other reset'.", result.output)

    def test_unknown(self) -> None:
        """Another is refused."""
        status, text = self.call("there")
        self.assertEqual(status, 2)
        self.assertIn("No such command 'there'", text)

    def test_late(self) -> None:
        """What another verb needs is not imported."""
        places = {"away": VerbPath("tests.cli.cluster.nowhere:away", "Away.")}
        lazy = LazyCommands("lazy", commands=[here], places=places)
        self.assertEqual(CliRunner().invoke(lazy, ["here"]).output, "stayed\n")
        result = CliRunner().invoke(lazy, ["away"])
        self.assertIsInstance(result.exception, ModuleNotFoundError)

    def test_nothingImported(self) -> None:
        """Help and completion need none of them."""
        places = {
            "away": VerbPath("tests.cli.cluster.nowhere:away", "Stands elsewhere.")
        }
        lazy = LazyCommands("lazy", commands=[here], places=places)
        self.assertIn("Stands elsewhere.", CliRunner().invoke(lazy, ["--help"]).output)
        found = lazy.shell_complete(click.Context(lazy), "aw")
        self.assertEqual(
            [(item.value, item.help) for item in found], [("away", "Stands elsewhere.")]
        )
