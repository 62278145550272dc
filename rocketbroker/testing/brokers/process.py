# -*- test-case-name: tests.integration.test_testing -*-
"""The child process with a name server and a broker, which all tests share.

It begins with the first test that wants it and ends with the process of the tests, also
when that is killed. Workers of C{pytest-xdist}, and children of a fork, are processes
of their own, and have each a broker of their own.

Its log goes into a file without a name, as a pipe would have to be emptied, and a file
with a name would stay behind if the tests are killed.
"""

from __future__ import annotations

import atexit
import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from typing import Final, final

from rocketbroker.errors import ConfigurationError

#: Settings for tests, which may be set otherwise. A client commits every five seconds,
#: and by the way with each pull: where no pull waits for long, a test sees at once how
#: far its consumer is.
SETTINGS: Final = {"longPollingEnable": "false", "shortPollingTimeMills": "100"}

#: How long the broker may take to stop.
STOP_SECONDS: Final = 30.0


@final
class BrokerProcess:
    """One C{rocketbroker standalone --testing --temporary}.

    @ivar process: the child.
    @ivar name_server: C{host:port}.
    @ivar address: of the broker, likewise.
    @ivar numbers: for names that no other test has.
    @ivar owner: the process that started it.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        """
        Start it and wait until it is ready.

        @param settings: of a broker, beside L{SETTINGS}.
        @raise ConfigurationError: it did not start.
        """
        self.numbers = itertools.count(1)
        self.owner = os.getpid()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        command = [
            # A module of the tests' directory may have the name of one of ours.
            *(sys.executable, "-P", "-m", "rocketbroker.cli.command", "standalone"),
            *("--testing", "--temporary", "--exit-with-parent", "--output", "json"),
            *("--namesrv-port", "0", "--port", "0", "--metrics-port", "off"),
        ]
        for key, value in {**SETTINGS, **settings}.items():
            command += ["--set", f"{key}={value}"]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            # Control-C is for the tests, which still use it until they end.
            process_group=0,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            status = self.process.wait()
            said = self.log(0)
            self.stop()
            raise ConfigurationError(
                f"The broker for tests did not start, exit status {status}: {said}"
            )
        ready = json.loads(line)
        self.name_server: str = ready["namesrv"]
        self.address: str = ready["brokers"][0]["address"]

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    @property
    def log_end(self) -> int:
        """The length of its log, in bytes."""
        return os.fstat(self._log.fileno()).st_size

    def log(self, start: int) -> str:
        """What it has logged from C{start} on."""
        data = os.pread(self._log.fileno(), self.log_end - start, start)
        return data.decode("utf-8", "replace")

    def stop(self) -> None:
        """Stop it; idempotent."""
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._log.close()


_running: Final[dict[frozenset[tuple[str, str]], BrokerProcess]] = {}
_lock: Final = threading.Lock()


def shared(settings: Mapping[str, str]) -> BrokerProcess:
    """The broker of this process with these settings, started with the first call.

    @raise ConfigurationError: it did not start.
    """
    key = frozenset(settings.items())
    with _lock:
        found = _running.get(key)
        if found is not None and found.owner == os.getpid() and not found.is_running:
            found.stop()
            found = None
        if found is None or found.owner != os.getpid():
            found = _running[key] = BrokerProcess(settings)
    return found


@atexit.register
def _stop_all() -> None:
    for process in _running.values():
        if process.owner == os.getpid():
            process.stop()
