"""Name server and broker as processes, started as a user would."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rocketbroker.wire.command import Command
from rocketbroker.wire.frames import decode, encode

ROOT = Path(__file__).resolve().parent.parent.parent

#: What servers say when they are ready: a broker when name servers know it.
READY_LINE = b"boot success"

#: How long a server may take until it says so, in seconds; generous,
#: because continuous integration may be busy. Nothing is asserted about it.
READY_SECONDS = 120.0

#: How long it may take to stop before it is killed.
STOP_SECONDS = 120.0

#: How long an answer may take.
ANSWER_SECONDS = 30.0


#: Nobody else is given the ports below one that is listened on.
_claims: list[socket.socket] = []


@atexit.register
def _release() -> None:
    for claim in _claims:
        claim.close()


def free_base() -> int:
    """A port such that it and the next 18 are free on the loopback address.

    Below the range that the kernel takes ports of outgoing connections from. No other
    process is given them until this one ends.
    """
    start = 12000 + (os.getpid() * 20) % 8000
    bases: list[int] = [*range(start, 20000, 20), *range(12000, start, 20)]
    for base in bases:
        with contextlib.ExitStack() as stack:
            try:
                for port in range(base, base + 20):
                    probe = stack.enter_context(socket.socket())
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind(("127.0.0.1", port))
                probe.listen()
            except OSError:
                continue
            _claims.append(probe.dup())
            return base
    raise RuntimeError("no free ports")


def environment(*more: Path) -> dict[str, str]:
    """Variables under which programs of this checkout run.

    @param more: directories on Python's path besides, for plug-ins.

    They keep their compiled modules, as those of an installed package are kept.
    """
    paths = [str(ROOT), str(ROOT / "twisted_plugins"), *map(str, more)]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    return variables


def own_folder(folder: Path | None) -> Path:
    """Make that directory, or one with a name of its own."""
    if folder is None:
        return Path(tempfile.mkdtemp(prefix="rocketbroker-"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


#: Settings with which a machine that is busy elsewhere refuses nothing.
PATIENT: dict[str, object] = {
    "waitTimeMillsInSendQueue": 20_000,
    "osPageCacheBusyTimeOutMills": 20_000,
}


#: With ROCKETBROKER_TEST_WORKERS=2 in the environment all brokers have workers.
WORKERS = int(os.environ.get("ROCKETBROKER_TEST_WORKERS", "0"))


class Server:
    """One `twistd -n NAME -c FILE`.

    @ivar paths: directories on Python's path besides, for plug-ins.
    @ivar prefix: words before the command, as those of C{prlimit}.
    """

    def __init__(
        self, name: str, settings: dict[str, object], folder: Path, port: int
    ) -> None:
        self.name = name
        self.port = port
        self.folder = folder
        self.log = folder / f"{name}.log"
        self._file = folder / f"{name}.conf"
        self._settings: dict[str, object] = {}
        self.set(**settings)
        self.paths: list[Path] = []
        self.prefix: list[str] = []
        self.process: subprocess.Popen[bytes] | None = None

    def set(self, **settings: object) -> None:
        """Change settings, for the next start."""
        self._settings = {**self._settings, **settings}
        lines = (f"{key}={value}\n" for key, value in self._settings.items())
        self._file.write_text("".join(lines))

    def launch(self) -> None:
        """Start it."""
        twistd = Path(sys.executable).parent / "twistd"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [
                    *self.prefix,
                    sys.executable,
                    str(twistd),
                    "-n",
                    f"--pidfile={self.folder}/{self.name}.pid",
                    self.name,
                    "-c",
                    str(self._file),
                ],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=environment(*self.paths),
            )

    def start(self) -> None:
        """Start it and wait until it says that it is ready."""
        begin = self.log.stat().st_size if self.log.exists() else 0
        self.launch()
        assert self.process is not None
        end = time.monotonic() + READY_SECONDS
        while time.monotonic() < end and self.process.poll() is None:
            if READY_LINE in self.log.read_bytes()[begin:]:
                return
            time.sleep(0.005)
        self.stop(signal.SIGKILL)
        raise RuntimeError(f"{self.name} is not ready:\n{self.log.read_text()}")

    def send_signal(self, how: int) -> None:
        """Send it a signal, if it is up."""
        if self.process is not None:
            self.process.send_signal(how)

    def stop(self, how: int = signal.SIGTERM) -> int | None:
        """Stop it; its exit status."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return self.process.returncode


class Cluster:
    """A name server and a broker with a store of their own.

    @ivar names: the name server, for clients: host and port.
    @ivar address: the broker's main port: host and port.
    """

    def __init__(self, folder: Path | None = None, /, **settings: object) -> None:
        """
        @param folder: a new directory for all that they have, which stays; None: one
            that is removed in the end.
        """
        self.folder = own_folder(folder)
        self._stays = folder is not None
        base = free_base()
        self.names = f"127.0.0.1:{base}"
        self.address = f"127.0.0.1:{base + 10}"
        self.broker_metrics = base + 5
        self.namesrv_metrics = base + 6
        self.store = self.folder / "store"
        self.namesrv = Server(
            "namesrv",
            {
                "listenPort": base,
                "kvConfigPath": self.folder / "kvConfig.json",
                "metricsPromExporterPort": self.namesrv_metrics,
            },
            self.folder,
            base,
        )
        self.broker = Server(
            "rocketbroker",
            {
                "brokerClusterName": "DefaultCluster",
                "brokerName": "broker-a",
                "brokerId": 0,
                "brokerIP1": "127.0.0.1",
                "listenPort": base + 10,
                "namesrvAddr": self.names,
                "storePathRootDir": self.store,
                "storePathCommitLog": self.store / "commitlog",
                "autoCreateTopicEnable": "true",
                "enablePropertyFilter": "true",
                "metricsPromExporterPort": self.broker_metrics,
                **PATIENT,
                "workers": WORKERS,
                **settings,
            },
            self.folder,
            base + 10,
        )

    def start(self) -> Cluster:
        """Start both."""
        self.namesrv.start()
        self.broker.start()
        return self

    def logs(self) -> str:
        """What both have said."""
        return "\n".join(
            server.log.read_text(errors="replace")
            for server in (self.namesrv, self.broker)
            if server.log.exists()
        )

    def stop(self) -> None:
        """Stop both, and remove everything unless it stays."""
        self.broker.stop()
        self.namesrv.stop()
        if not self._stays:
            shutil.rmtree(self.folder, ignore_errors=True)


def ask(port: int, command: Command, host: str = "127.0.0.1") -> Command:
    """The response of a server on this machine."""
    with socket.create_connection((host, port), ANSWER_SECONDS) as sock:
        sock.sendall(encode(command))
        data = b""
        while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
            piece = sock.recv(65536)
            if not piece:
                raise ConnectionError("closed before the answer")
            data += piece
    return decode(data[4:])


def workers_of(owner: int) -> list[int]:
    """The processes of the workers of a broker."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes().split(b"\0")
            parent = int((path / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, IndexError):
            continue
        if parent == owner and b"rocketbroker.app.worker_process" in words:
            found.append(int(path.name))
    return sorted(found)


def children(pid: int) -> list[int]:
    """The processes that a process has begun."""
    return [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]


def is_there(process: int) -> bool:
    """Whether a process has not ended."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] != "Z"
