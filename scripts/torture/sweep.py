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

from scripts.test import ROOT, environment

if __name__ == "__main__":
    command = [str(environment("spark,test")), "-m", "tests.sweeps", *sys.argv[1:]]
    sys.exit(subprocess.call(command, cwd=ROOT))
