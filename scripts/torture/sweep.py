#!/usr/bin/env python3
"""Damage stores in each way there is: the sweeps of C{tests/sweeps/}, as a program.

    python3 scripts/torture/sweep.py [torn] [rot] [blocks] [power] [slaves] [broker]
                                     [transactions] [--quick] [--workloads 150]

The sweeps step stores and brokers in memory, as tests do, and so live there; --help
says what each of them damages, and what must be left.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.compiled import ROOT
from scripts.lab.inside import enter

if __name__ == "__main__":
    enter(__file__)
    words = [word for word in sys.argv[1:] if word != "--inside"]
    sys.exit(subprocess.call([sys.executable, "-m", "tests.sweeps", *words], cwd=ROOT))
