#!/usr/bin/env python3
"""Build the documentation as HTML; a warning is an error.

    python3 scripts/docs.py [pages] [api] [--into DIR] [--no-install]

C{pages} are those of docs/, built by Sphinx; C{api} has a page for each package, module
and class, made of their docstrings by pydoctor. Both, unless one is named. They are put
into DIR (build/docs in the checkout). The exit status is 1 if there was a warning, such
as a link to a name that does not exist; the warnings are printed.

What builds them is installed into .env in the checkout (the extra C{docs}), unless
--no-install says that this Python has it. Standard library only.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.test import ROOT, environment

#: Names whose values pydoctor does not read: regular expressions with possessive
#: quantifiers, which Python has since 3.11.
UNREAD = (
    "rocketbroker.wire.json_reader._*",
    "rocketbroker.wire.bodies.registration._*",
)


def pages(python: Path, into: Path) -> list[str]:
    """The command that builds the pages of docs/."""
    sphinx = [str(python), "-m", "sphinx", "-b", "html", "-q", "-W", "--keep-going"]
    return [*sphinx, "-d", str(into / ".doctrees"), "docs", str(into / "pages")]


def api(python: Path, into: Path) -> list[str]:
    """The command that builds the pages of the modules."""
    return [
        *(str(python), "-m", "pydoctor", "--warnings-as-errors", "--quiet"),
        *("--docformat=epytext", "--project-name=rocketbroker"),
        *(f"--privacy=HIDDEN:{name}" for name in UNREAD),
        *(f"--project-base-dir={ROOT}", f"--html-output={into / 'api'}"),
        *("rocketbroker", "pyspark_rocketmq"),
    ]


#: What can be built, by its name.
PARTS = {"pages": pages, "api": api}


def main() -> int:
    """Install unless told not to, then build."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help="pages, api")
    parser.add_argument("--into", type=Path, default=ROOT / "build" / "docs")
    parser.add_argument("--no-install", action="store_true")
    words = parser.parse_args()
    if unknown := [part for part in words.parts if part not in PARTS]:
        parser.error(f"{unknown[0]} is neither of {' and '.join(PARTS)}")
    into = words.into.absolute()
    into.mkdir(parents=True, exist_ok=True)
    python = Path(sys.executable) if words.no_install else environment("docs")
    code = 0
    for part in words.parts or PARTS:
        if subprocess.call(PARTS[part](python, into), cwd=ROOT):
            print(f"{part}: not built without a warning", file=sys.stderr)
            code = 1
        else:
            print(f"{part}: {into / part / 'index.html'}")
    return code


if __name__ == "__main__":
    sys.exit(main())
