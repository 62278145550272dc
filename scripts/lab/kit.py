"""The servers, the load generator and the yardstick that are not ours."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import Any

#: Options of the load generator: sends of 128 bytes.
SEND = ["-m", "send", "-b", "128"]


class Kit:
    """A kit.py that runs them."""

    def __init__(self, path: str, seconds: float) -> None:
        """
        @param seconds: how long a load lasts, after a second to warm up.
        """
        self._command = [sys.executable, path]
        self._seconds = str(seconds)

    @contextlib.contextmanager
    def serving(self, *words: str) -> Iterator[int]:
        """One server of the kit; its process number."""
        process = subprocess.Popen(
            [*self._command, *words], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline().split()[1])
        finally:
            subprocess.run(["pkill", "-P", str(process.pid)], check=False)
            process.terminate()
            process.wait(60)

    def load(self, port: int, pid: int, words: list[str]) -> float:
        """Microseconds of the server's CPU per message under one load."""
        return float(self.figures(port, [pid], words)["server_us_per_message"])

    def figures(
        self, port: int, pids: Iterable[int], words: list[str]
    ) -> dict[str, Any]:
        """All that is printed of one load.

        @param pids: the processes whose CPU counts.
        """
        return self.end(self.begin(port, pids, words))

    def begin(
        self, port: int, pids: Iterable[int], words: list[str]
    ) -> subprocess.Popen[str]:
        """Start a load beside others."""
        return subprocess.Popen(
            [*self._command, "load", "-p", str(port), "-t", self._seconds, "-W", "1"]
            + ["-P", ",".join(map(str, pids)), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def end(self, load: subprocess.Popen[str]) -> dict[str, Any]:
        """What a load that was started prints at its end."""
        printed, complaints = load.communicate()
        try:
            found: dict[str, Any] = json.loads(printed.strip().splitlines()[-1])
        except (IndexError, ValueError):
            sys.exit(f"load: {complaints.strip()[-300:]}")
        return found
