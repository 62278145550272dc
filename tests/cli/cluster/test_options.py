"""What all verbs share."""

from __future__ import annotations

import contextlib
import io
import sys

import click
from click.testing import CliRunner
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.cli.cluster.cluster import Cluster
from rocketbroker.cli.cluster.options import (
    YES,
    asking,
    changing,
    complete_topics,
    confirm,
    showing,
)
from rocketbroker.cli.cluster.surroundings import Surroundings
from rocketbroker.cli.exit_status import Failure, NotThere
from rocketbroker.cli.rows import Rows
from rocketbroker.errors import ConnectionLost
from rocketbroker.wire.command import Command
from tests.blocking.cluster import MemoryCluster


@click.group()
def group() -> None:
    """Verbs."""


@group.command()
@showing
def show(cluster: Cluster, rows: Rows) -> None:
    """Show all brokers."""
    for broker, _ in cluster.from_each(cluster.brokers(), lambda b: topics(cluster)):
        rows.add("broker", {"name": broker.name})


def topics(cluster: Cluster) -> list[str]:
    """A request."""
    return cluster.client.topics()


@group.command()
@YES
@changing
def change(cluster: Cluster, rows: Rows, yes: bool) -> None:
    """Do half of something."""
    confirm("Do it", yes)
    rows.add("change", {"half": 1})
    raise NotThere("The other half is not there.")


@group.command()
@click.argument("word")
@asking
def ask(cluster: Cluster, word: str) -> None:
    """Print a word and the name servers."""
    click.echo(f"{word} {cluster.name_servers} {cluster.client.settings.seconds}")


class Terminal(io.StringIO):
    """An input that somebody types."""

    def isatty(self) -> bool:
        """It is one."""
        return True


class OptionsTests(SynchronousTestCase):
    """Verbs of a group, in memory."""

    def setUp(self) -> None:
        self.memory = MemoryCluster()

    def call(self, *words: str, status: int = 0) -> tuple[str, str]:
        """Call; what it wrote."""
        servers = {"ROCKETMQ_NAMESRV": "ns1:9876"}
        result = CliRunner().invoke(
            group, words, obj=Surroundings(self.memory.machine), env=servers
        )
        self.assertEqual(result.exit_code, status, result.output)
        return result.stdout, result.stderr

    def test_outputs(self) -> None:
        """A table, one array, or lines."""
        self.assertEqual(self.call("show")[0], "name\nb1\nb2\n")
        wanted = (
            '[{"kind": "broker", "name": "b1"},\n{"kind": "broker", "name": "b2"}]\n'
        )
        self.assertEqual(self.call("show", "-o", "json")[0], wanted)
        wanted = '{"kind": "broker", "name": "b1"}\n{"kind": "broker", "name": "b2"}\n'
        self.assertEqual(self.call("show", "--output", "jsonl")[0], wanted)

    def test_cluster(self) -> None:
        """Name servers and the time-out are as given."""
        words = ("ask", "x", "-n", "a:1;b:2", "--timeout", "0.5")
        self.assertEqual(self.call(*words)[0], "x ('a:1', 'b:2') 0.5\n")
        self.assertEqual(self.call("ask", "x")[0], "x ('ns1:9876',) 5.0\n")
        self.assertIn("not an address", self.call("ask", "x", "-n", "y", status=1)[1])

    def test_error(self) -> None:
        """A sentence and its status; what was done before it is shown, and valid."""
        out, err = self.call("change", "--yes", "-o", "json", status=3)
        self.assertEqual(out, '[{"kind": "change", "half": 1}]\n')
        self.assertEqual(err, "rocketbroker: The other half is not there.\n")

    def test_confirm(self) -> None:
        """Where nobody can be asked, nothing is done."""
        out, err = self.call("change", status=2)
        self.assertEqual(out, "")
        self.assertIn("Do it? Give --yes", err)

    def test_noNameServer(self) -> None:
        """Advice tells how to choose another one."""
        err = self.call("show", "-n", "nowhere:1", status=1)[1]
        self.assertIn("cannot connect to nowhere:1: nobody is there. Is the", err)

    def test_partly(self) -> None:
        """What some brokers say is shown, and the others are an error."""
        answers = iter([True, False])

        def half(command: Command) -> Command | None:
            if command.code == 206 and not next(answers):
                raise ConnectionLost("x")
            return self.memory.name_server(command)

        self.memory.machine.servers["ns1:9876"] = half
        out, err = self.call("show", status=1)
        self.assertEqual(out, "name\nb1\n")
        self.assertIn("closed", err)

    def test_watch(self) -> None:
        """Again and again, until the user interrupts; a lost server is told."""
        rounds = iter([1, 2, 3, 4])

        def lose(command: Command) -> Command | None:
            number = next(rounds) if command.code == 106 else 0
            if number == 2:
                raise ConnectionLost("x")
            if number == 4:
                raise KeyboardInterrupt
            return self.memory.name_server(command)

        self.memory.machine.servers["ns1:9876"] = lose
        before = self.memory.machine.now
        out, err = self.call("show", "--watch", "--every", "3", status=1)
        self.assertEqual(out, "name\nb1\nb2\n" * 2)
        self.assertIn("ns1:9876", err)
        self.assertEqual(self.memory.machine.now, before + 9)

    def test_ask(self) -> None:
        """A person is asked; yes is yes, and all else changes nothing."""
        for typed, wanted in (("y\n", None), ("n\n", "Nothing was changed.")):
            before = sys.stdin
            sys.stdin = Terminal(typed)
            self.addCleanup(setattr, sys, "stdin", before)
            with contextlib.redirect_stderr(io.StringIO()) as asked:
                if wanted is None:
                    confirm("Do it", False)
                else:
                    error = self.assertRaises(Failure, confirm, "Do it", False)
                    self.assertEqual((error.message, error.exit_code), (wanted, 1))
            # Releases of click differ in the blank at its end.
            self.assertEqual(asked.getvalue().rstrip(), "Do it? [y/N]:")

    def test_completion(self) -> None:
        """Topics are completed; not where the cluster cannot be asked."""
        self.memory.topics |= {"%RETRY%G": {"b1": 1}, "TBW102": {"b1": 1}}
        context = click.Context(group, obj=Surroundings(self.memory.machine))
        context.params = {"namesrv": "ns1:9876"}
        argument = click.Argument(["topic"])
        found = complete_topics(context, argument, "")
        self.assertEqual([item.value for item in found], ["T"])
        found = complete_topics(context, argument, "%R")
        self.assertEqual([item.value for item in found], ["%RETRY%G"])
        context.params = {"namesrv": "nowhere:1"}
        self.assertEqual(complete_topics(context, argument, ""), [])
