"""Our proxy as a process, C{rocketbroker proxy run}, at a port that it keeps."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

from scripts.lab.servers import STOP_SECONDS, environment, free_base


class ProxyServer:
    """One proxy, which may be started again and again.

    @ivar address: for clients: host and port.
    @ivar metrics: its page of metrics: host and port, once it is up.
    @ivar log: what it has said.
    """

    def __init__(
        self, names: str, folder: Path, port: int | None = None, **settings: object
    ) -> None:
        """
        @param names: the name server: host and port.
        @param folder: for its log.
        @param port: C{None}: one that is free.
        @param settings: as rmq-proxy.json has them.
        """
        port = free_base() if port is None else port
        self.address = f"127.0.0.1:{port}"
        self.metrics = ""
        self.log = folder / f"proxy-{port}.log"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._words = ["-n", names, "--metrics-port", "0", "--output", "json"]
        for key, value in {"grpcServerPort": port, **settings}.items():
            self._words += ["--set", f"{key}={value}"]

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> float:
        """Start it; how long it takes until it is ready, in seconds."""
        begin = time.monotonic()
        with open(self.log, "ab") as log:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "rocketbroker.cli.command", "proxy", "run"),
                    *self._words,
                ],
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment(),
                cwd=self._folder,
            )
        self._process = process
        assert process.stdout is not None
        with process.stdout as output:
            line = output.readline()
        if not line:
            self.stop(signal.SIGKILL)
            raise RuntimeError(f"the proxy is not ready:\n{self.log.read_text()}")
        self.metrics = str(json.loads(line)["metrics"])
        return time.monotonic() - begin

    def send_signal(self, how: int) -> None:
        """Send it a signal, if it is up."""
        if self._process is not None:
            self._process.send_signal(how)

    def stop(self, how: int = signal.SIGTERM) -> int | None:
        """Stop it; its exit status."""
        if self._process is None:
            return None
        self._process.send_signal(how)
        try:
            return self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()
