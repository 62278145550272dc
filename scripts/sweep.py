#!/usr/bin/env python3
"""Damage stores in each way there is, and look at what comes of it.

    python3 scripts/sweep.py [rot] [--quick]

rot turns every bit of the last records, after a clean stop and after a kill: whatever
is handed out is what was sent, and nothing else is lost.

All in memory. Prints figures, and up to 20 of what was wrong; exit status 1 if anything
was. --quick: some of the cases, as the unit tests have them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.test import environment

if __name__ == "__main__" and "--inside" not in sys.argv:
    python = environment("spark,test")
    sys.exit(subprocess.call([str(python), __file__, "--inside", *sys.argv[1:]]))

from tests.sweeps import rot

MOST_SHOWN = 20


def sweep_rot(quick: bool) -> list[str]:
    """Turned bits."""
    figures = rot.Figures()
    for clean in (True, False):
        rot.sweep(figures, clean, 41 if quick else 1)
    print(f"rot: {figures}")
    return figures.wrong


SWEEPS: dict[str, Callable[[bool], list[str]]] = {"rot": sweep_rot}


def main() -> int:
    """Run those asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("sweeps", nargs="*", choices=[[], *SWEEPS], default=[])
    parser.add_argument("--quick", action="store_true")
    words = parser.parse_args()
    good = True
    for name in words.sweeps or SWEEPS:
        begin = time.monotonic()
        wrong = SWEEPS[name](words.quick)
        print(f"{name}: {time.monotonic() - begin:.0f} s")
        for what in wrong[:MOST_SHOWN]:
            print(f"  {what}")
        good = good and not wrong
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
