#!/usr/bin/env python3
"""Bring every Python package needed and run the whole suite.

    python3 scripts/test.py [--no-install] [--no-skips] [names of tests ...]

--no-install uses this Python as it is; --no-skips fails when a test was skipped.
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

#: Where what is installed lies.
INSTALLED = ("rocketbroker", "pyspark_rocketmq", "twisted_plugins")

#: How many of the slowest tests are named.
MAX_SLOW = 15


def environment(extras: str) -> Path:
    """The Python of the checkout's environment, with rocketbroker and C{extras}."""
    python = ENVIRONMENT / "bin" / "python"
    stamp = ENVIRONMENT / f".installed-{extras.replace(',', '-')}"
    # An editable installation links each module by itself: a new one needs another.
    modules = (p for top in INSTALLED for p in sorted((ROOT / top).rglob("*.py")))
    parts = [(ROOT / "setup.cfg").read_bytes(), *(str(p).encode() for p in modules)]
    wanted = hashlib.sha256(b"\n".join(parts)).hexdigest()
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
    command = [str(python), "-b", "-W", "error", "-m", "twisted.trial"]
    process = subprocess.Popen(
        [*command, "--reporter=timing", *names],
        cwd=ROOT,
        env=variables,
        text=True,
        errors="replace",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.stdout is not None
    tail: list[str] = []
    times: list[tuple[float, str]] = []
    name = ""
    for line in process.stdout:
        if timed := re.match(r"\(([\d.]+) secs\)$", line):
            times.append((float(timed[1]), name))
            continue
        if begun := re.match(r"(tests(?:\.\w+)+) \.\.\. ", line):
            # What the test prints may stand between its name and its time.
            name = begun[1]
        print(line, end="", flush=True)
        tail = [*tail[-9:], line]
    code = process.wait()
    print("the slowest:")
    for seconds, name in sorted(times, reverse=True)[:MAX_SLOW]:
        print(f"  {seconds:8.2f} s  {name}")
    counts = dict.fromkeys(("successes", "failures", "errors", "skips"), 0)
    for kind, number in re.findall(r"(\w+)=(\d+)", "".join(tail)):
        counts[kind] = int(number)
    failed = counts["failures"] + counts["errors"]
    if code and not failed:
        failed = 1
    if counts["skips"] and "--no-skips" in sys.argv:
        print("tests were skipped, which --no-skips forbids")
        code = code or 1
    print(f"{counts['successes']} passed, {failed} failed, {counts['skips']} skipped")
    return code


def main() -> int:
    """Install unless told not to, then run."""
    words = [word for word in sys.argv[1:] if not word.startswith("--no-")]
    if "--no-install" in sys.argv:
        python = Path(sys.executable)
    else:
        python = environment("spark,test")
    return run(python, words or ["tests"])


if __name__ == "__main__":
    sys.exit(main())
