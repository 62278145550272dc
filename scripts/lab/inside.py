"""The Python that has what scripts need: that of .env in the checkout.

A script begins with::

    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

    from scripts.lab.inside import enter

    if __name__ == "__main__":
        enter(__file__)

and may then import what is not in the standard library. This module imports nothing
else.
"""

from __future__ import annotations

import sys
from pathlib import Path

from scripts.compiled import ROOT, inside
from scripts.test import environment


def enter(path: str) -> None:
    """Run a script with that Python, and end with its exit status; nothing if it does
    already, which the word C{--inside} says, or C{--no-install}.

    With C{--compiled} it runs in a copy of the checkout with the compiled codec.
    """
    if not {"--inside", "--no-install"} & {*sys.argv}:
        script = Path(path).resolve().relative_to(ROOT)
        sys.exit(inside(environment("spark,test"), str(script)))
