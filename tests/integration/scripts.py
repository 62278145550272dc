"""Scripts of this checkout, run as a user would."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(name: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run C{scripts/NAME.py} to its end; what it says and what it complains of are one.

    @param name: with its room: C{torture/crash}.
    @param words: what it is told; C{--inside} to run in this environment.
    """
    return subprocess.run(
        [sys.executable, f"scripts/{name}.py", *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
