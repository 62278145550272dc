"""Commands and reads by Spark in one process, which starts one JVM for all.

    python spark_process.py

reads a line of JSON for each: a list of words, the first of which is C{rocketbroker},
C{checkpoint}, C{reads}, C{secured}, C{streams}, C{writes}, or C{python}, with the path
of a program. It answers with a line: the exit status, and what was printed.
"""

from __future__ import annotations

import atexit
import io
import json
import runpy
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from typing import ClassVar

from scripts.lab.servers import environment
from tests.integration import (
    spark_reads,
    spark_secured,
    spark_streams,
    spark_writes,
)


class SparkProcess:
    """The other end of it, for tests: one process until this one ends."""

    now: ClassVar[SparkProcess | None] = None

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.integration.spark_process"],
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(self.stop)

    @classmethod
    def run(cls, *words: str) -> subprocess.CompletedProcess[str]:
        """Carry out a command; its exit status and what it printed."""
        if cls.now is None:
            cls.now = cls()
        process = cls.now._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(words) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process has ended: {process.wait()}")
        code, output = json.loads(line)
        return subprocess.CompletedProcess(words, code, output)

    def stop(self) -> None:
        """End it."""
        self._process.communicate()


def carry_out(words: list[str]) -> tuple[int, str]:
    """Run one command; its exit status and what it printed."""
    from rocketbroker.cli.command import main

    commands: dict[str, Callable[[], object]] = {
        "checkpoint": spark_streams.go_on,
        "python": lambda: runpy.run_path(words[1]),
        "reads": spark_reads.main,
        "secured": spark_secured.main,
        "streams": spark_streams.main,
        "writes": spark_writes.main,
    }
    output = io.StringIO()
    code: object = 0
    sys.argv = words
    with redirect_stdout(output), redirect_stderr(output):
        try:
            commands.get(words[0], main)()
        except SystemExit as end:
            code = end.code or 0
        except BaseException:
            code = 1
            traceback.print_exc()
    return code if isinstance(code, int) else 1, output.getvalue()


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(carry_out(json.loads(line))), flush=True)
