"""The contract of state machines: each does what its module's docstring says."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from twisted.trial.unittest import SynchronousTestCase

ROOT = Path(__file__).resolve().parents[1]

if TYPE_CHECKING:
    Case = SynchronousTestCase
else:
    Case = object


class Machine(Protocol):
    """What is in a state, and goes to another by an input."""

    def on(self, given: Any, /) -> object:
        """Take an input."""


def documented(doc: str) -> dict[str, dict[str, str]]:
    """The table of transitions in a docstring: by state and input the next state.

    The headings of its columns in capitals are the inputs; rows without a state go on
    with what the row before means.
    """
    table = doc[doc.index("\n    =") :].split("\n\n")[0].splitlines()[1:]
    columns = [found.span() for found in re.finditer("=+", table[0])]
    rows = [[line[a:b].strip() for a, b in columns] for line in table]
    (_, *headings), *body = rows[1], *rows[3:-1]
    return {
        state: {
            heading: cell
            for heading, cell in zip(headings, cells, strict=True)
            if heading.isupper() and cell
        }
        for state, *cells in body
        if state
    }


class MachineContract(Case):
    """One machine; a test case gives its table and its objects.

    @cvar MODULE: the module whose docstring has the table. It is read from the source:
        a compiled module has no docstring.
    """

    MODULE: str
    TABLE: Mapping[Any, Mapping[Any, Any]]
    STATES: type[IntEnum]
    INPUTS: type[IntEnum]

    def machine(self, state: Any) -> Machine:
        """One in this state."""
        raise NotImplementedError

    def state(self, machine: Any) -> object:
        """Where one is."""
        raise NotImplementedError

    def test_tableIsAsDocumented(self) -> None:
        """The docstring has all states and transitions, and no others."""
        found = {
            state.name: {given.name: leads.name for given, leads in row.items()}
            for state, row in self.TABLE.items()
        }
        path = ROOT.joinpath(*self.MODULE.split(".")).with_suffix(".py")
        doc = ast.get_docstring(ast.parse(path.read_text("utf-8")), clean=False)
        self.assertEqual(documented(doc or ""), found)
        self.assertEqual(list(self.TABLE), list(self.STATES))

    def test_eachInputInEachState(self) -> None:
        """What the table has leads on; what it has not is a mistake, which changes
        nothing."""
        for state in self.STATES:
            for given in self.INPUTS:
                machine = self.machine(state)
                wanted = self.TABLE[state].get(given)
                if wanted is None:
                    self.assertRaises(KeyError, machine.on, given)
                    wanted = state
                else:
                    machine.on(given)
                self.assertIs(self.state(machine), wanted, (state, given))
