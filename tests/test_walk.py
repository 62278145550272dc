"""The steps of README and the pages: how they are found, and which are left out."""

from __future__ import annotations

import re

import click
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.cli.command import command
from scripts.walk_pages import ROOT, Step, all_steps, pages, steps
from scripts.walk_reasons import ELSEWHERE, REASONS, SYNOPSIS, reason_for, stale

PAGE = """\
A page with ``/healthz/live``, ``/etc/file``, and ``eval "$(x)"``::

    rocketbroker top     # one
    for file in a b; do
        curl $file
    done

Another::

    $ rocketbroker mqadmin x
    = rocketbroker y

.. code-block:: python

   import os

   print(os)

Settings::

    name=value

A drawing::

    +---+

.. code-block:: sql

   SELECT 1
"""


class StepsTests(SynchronousTestCase):
    """L{steps}."""

    def test_eachBlockIsItsSteps(self) -> None:
        """A line of a shell is a step, a loop too; a program is one as a whole."""
        self.assertEqual(
            steps("docs/page.rst", PAGE),
            [
                Step("docs/page.rst", 1, "address", "/healthz/live"),
                Step("docs/page.rst", 1, "shell", 'eval "$(x)"'),
                Step("docs/page.rst", 3, "shell", "rocketbroker top     # one"),
                Step(
                    "docs/page.rst",
                    4,
                    "shell",
                    "for file in a b; do\n    curl $file\ndone",
                ),
                Step(
                    "docs/page.rst",
                    10,
                    "shell",
                    "rocketbroker mqadmin x",
                    "= rocketbroker y",
                ),
                Step("docs/page.rst", 15, "python", "import os\n\nprint(os)\n"),
                Step("docs/page.rst", 21, "settings", "name=value\n"),
                Step("docs/page.rst", 25, "text", "+---+\n"),
                Step("docs/page.rst", 29, "sql", "SELECT 1\n"),
            ],
        )

    def test_programsOfAJoinedPageAreOne(self) -> None:
        """It stands where the last one does."""
        page = "::\n\n    import a\n\nand::\n\n    import b\n"
        self.assertEqual(
            steps("docs/spark.rst", page),
            [Step("docs/spark.rst", 7, "python", "import a\n\nimport b\n")],
        )


class ReasonsTests(SynchronousTestCase):
    """The tables in C{scripts/walk_reasons.py}."""

    def test_noEntryIsStale(self) -> None:
        """Each speaks of a step that there is."""
        self.assertEqual(stale(all_steps()), [])

    def test_whatIsNoCommandHasAReason(self) -> None:
        """A drawing or a listing is named, so that no command is taken for one."""
        texts = [step for step in all_steps() if step.kind == "text"]
        self.assertEqual([s for s in texts if not reason_for(s, is_short=False)], [])

    def test_tablesAreShort(self) -> None:
        """What is left out everywhere is known by number: think before it grows.

        Five are for a cluster with TLS and accounts.
        """
        left_out = [step for step in all_steps() if reason_for(step, is_short=False)]
        shell = [step for step in left_out if step.kind == "shell"]
        self.assertLessEqual(len(shell), 24, shell)
        self.assertEqual(
            len(set(REASONS)) + len(set(ELSEWHERE)), len(REASONS + ELSEWHERE)
        )

    def test_commandsInTheTextAreKnown(self) -> None:
        """Each verb that a synopsis or a sentence names is there, with its options."""
        synopses = [
            (step.where, step.text)
            for step in all_steps()
            if reason_for(step, is_short=False) == SYNOPSIS
        ]
        self.assertTrue(synopses)
        for page in pages():
            text = " ".join((ROOT / page).read_text("utf-8").split())
            found = re.findall(r"``(rocketbroker [^`]+)``", text)
            synopses += [(page, words) for words in found]
        wrong = [(where, words) for where, words in synopses if not is_known(words)]
        self.assertEqual(wrong, [])


def is_known(text: str) -> bool:
    """Whether a command line names verbs and options that there are."""
    _, *words = re.sub(r"[\[\]|]", " ", text).split()
    if words[0].isupper():
        return True
    found: click.Command = command
    while isinstance(found, click.Group) and words:
        below = found.get_command(click.Context(found), words.pop(0))
        if below is None:
            return False
        found = below
    if found.context_settings.get("ignore_unknown_options"):
        return True
    known = {name for one in found.params for name in one.opts} | {"--help", "-h"}
    return known.issuperset(word for word in words if word.startswith("-"))
