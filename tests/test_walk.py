"""The steps of README and the pages: how they are found, and which are left out."""

from __future__ import annotations

import re

import click
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.command import command
from scripts.walk_pages import Step, all_steps, steps
from scripts.walk_reasons import ELSEWHERE, REASONS, SYNOPSIS, reason_for, stale

PAGE = """\
A page with ``/healthz/live``, and ``/etc/file``::

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
        """They stand where the first one does."""
        page = "::\n\n    import a\n\nand::\n\n    import b\n"
        self.assertEqual(
            steps("docs/spark.rst", page),
            [Step("docs/spark.rst", 3, "python", "import a\n\nimport b\n")],
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
        """What is left out everywhere is known by number: think before it grows."""
        left_out = [step for step in all_steps() if reason_for(step, is_short=False)]
        shell = [step for step in left_out if step.kind == "shell"]
        self.assertLessEqual(len(shell), 9, shell)
        self.assertEqual(
            len(set(REASONS)) + len(set(ELSEWHERE)), len(REASONS + ELSEWHERE)
        )

    def test_synopsesKnowTheirOptions(self) -> None:
        """Each option and argument of a synopsis is one of the command's."""
        for step in all_steps():
            if reason_for(step, is_short=False) != SYNOPSIS:
                continue
            words = [w for w in step.text.split() if re.fullmatch(r"[a-z]+", w)]
            found: click.Command | None = command
            for word in words[1:3]:
                assert isinstance(found, click.Group)
                found = found.get_command(click.Context(found), word)
            assert found is not None
            known = {name for one in found.params for name in one.opts}
            for option in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", step.text):
                self.assertIn(option, known, step.where)
