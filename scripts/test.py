#!/usr/bin/env python3
"""Bring every Python package needed and run the whole suite.

    python3 scripts/test.py [--no-install] [names of tests ...]

The environment is .env in the checkout. The last line is
`N passed, N failed, N skipped`. Standard library only.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".env"


def environment(extras: str) -> Path:
    """The Python of the checkout's environment, with rocketbroker and C{extras}."""
    python = ENVIRONMENT / "bin" / "python"
    stamp = ENVIRONMENT / f".installed-{extras.replace(',', '-')}"
    parts = [(ROOT / "setup.cfg").read_bytes(), str(ROOT).encode()]
    parts += [p.name.encode() for p in sorted(ROOT.glob("twisted_plugins/**/*.py"))]
    wanted = hashlib.sha256(b"".join(parts)).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    if not python.exists():
        venv.create(ENVIRONMENT, with_pip=True)
    print("installing rocketbroker and what it needs into .env", flush=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--editable"]
    subprocess.run([*install, f"{ROOT}[{extras}]"], check=True, cwd=ROOT)
    stamp.write_text(wanted)
    return python


def run(python: Path, names: list[str]) -> int:
    """Run trial, pass its output on, and close with the counts; its exit status."""
    variables = dict(os.environ)
    variables["PATH"] = f"{python.parent}{os.pathsep}{variables.get('PATH', '')}"
    process = subprocess.Popen(
        [str(python), "-b", "-W", "error", "-m", "twisted.trial", *names],
        cwd=ROOT,
        env=variables,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.stdout is not None
    tail: list[str] = []
    for line in process.stdout:
        print(line, end="", flush=True)
        tail = [*tail[-9:], line]
    code = process.wait()
    counts = dict.fromkeys(("successes", "failures", "errors", "skips"), 0)
    for kind, number in re.findall(r"(\w+)=(\d+)", "".join(tail)):
        counts[kind] = int(number)
    failed = counts["failures"] + counts["errors"]
    if code and not failed:
        failed = 1
    print(f"{counts['successes']} passed, {failed} failed, {counts['skips']} skipped")
    return code


def main() -> int:
    """Install unless told not to, then run."""
    words = sys.argv[1:]
    if "--no-install" in words:
        words.remove("--no-install")
        python = Path(sys.executable)
    else:
        python = environment("spark,test")
    return run(python, words or ["tests"])


if __name__ == "__main__":
    sys.exit(main())
