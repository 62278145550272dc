"""The Java broker and name server: processes beside ours, for a test."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from twisted.trial.unittest import SkipTest

from scripts.lab.javaclient import PROJECT, QUICK, building, maven, why_not

#: What it says when it is ready.
READY_LINE = "boot success"

#: How long it may take until then, and until it has stopped, in seconds; nothing is
#: asserted about it.
MAX_SECONDS = 300.0

#: What it reaches of Java's inside.
OPEN = [
    f"--add-{kind}=java.base/{name}=ALL-UNNAMED"
    for kind, names in {
        "opens": ["java.nio", "sun.nio.ch", "java.lang", "java.util"],
        "exports": ["jdk.internal.ref", "jdk.internal.misc"],
    }.items()
    for name in names
]


def jars(version: str, name: str) -> Path:
    """The folder with all that a server consists of."""
    target = PROJECT / "target" / f"{name}-{version}"
    stamp = target / "complete"
    newest = (PROJECT / "pom.xml").stat().st_mtime
    with building():
        if not stamp.exists() or stamp.stat().st_mtime < newest:
            artifact = f"-Drocketmq.artifact=rocketmq-{name}"
            maven(version, target, artifact, "dependency:copy-dependencies")
            stamp.touch()
    return target / "lib"


class JavaServer:
    """One `java STARTUP -c FILE`.

    @ivar name: of the artifact, and of its logs.
    @ivar main: the class that starts it.
    @ivar option: what names the file of settings.
    @ivar ready: what it says when it is ready.
    @ivar home: where its logs are.
    """

    name: ClassVar[str]
    main: ClassVar[str]
    option: ClassVar[str] = "-c"
    ready: ClassVar[str] = READY_LINE

    def __init__(
        self,
        version: str,
        folder: Path,
        settings: dict[str, object],
        options: Iterable[str] = QUICK,
    ) -> None:
        """
        @param options: of Java.
        """
        reason = why_not()
        if reason is not None:
            raise SkipTest(reason)
        self.home = folder
        self._jars = jars(version, self.name)
        self._options = options
        self._file = folder / f"{self.name}.conf"
        (folder / "conf").mkdir(parents=True)
        self._settings: dict[str, object] = {}
        self.set(**settings, rocketmqHome=folder)
        # 4.9 does not start without it.
        (folder / "conf" / f"logback_{self.name}.xml").write_text(
            '<configuration><appender name="file" class="ch.qos.logback.core.'
            f'FileAppender"><file>{folder}/logs/{self.name}.log</file><encoder>'
            "<pattern>%d %level %logger - %m%n</pattern></encoder></appender>"
            '<root level="INFO"><appender-ref ref="file"/></root></configuration>'
        )
        self._process: subprocess.Popen[bytes] | None = None

    def set(self, **settings: object) -> None:
        """Change settings, for the next start."""
        self._settings = {**self._settings, **settings}
        self._file.write_text(self.written(self._settings))

    def written(self, settings: dict[str, object]) -> str:
        """Settings as it reads them."""
        return "".join(f"{key}={value}\n" for key, value in settings.items())

    def start(self) -> float:
        """Start it; after how many seconds it was ready."""
        console = self.home / "console.log"
        begun = time.monotonic()
        with open(console, "wb") as log:
            self._process = subprocess.Popen(
                [
                    "java",
                    "-Xms512m",
                    "-Xmx512m",
                    *self._options,
                    *OPEN,
                    f"-Drocketmq.home.dir={self.home}",
                    f"-Duser.home={self.home}",
                    "-cp",
                    f"{self._jars}/*",
                    f"org.apache.rocketmq.{self.name}.{self.main}",
                    self.option,
                    str(self._file),
                ],
                stdout=log,
                stderr=log,
                cwd=self.home,
            )
        while time.monotonic() < begun + MAX_SECONDS and self._process.poll() is None:
            if self.ready in console.read_text(errors="replace"):
                return time.monotonic() - begun
            time.sleep(0.005)
        self.stop(signal.SIGKILL)
        raise RuntimeError(f"Java's {self.name} is not ready:\n{self.output()[-4000:]}")

    @property
    def pid(self) -> int:
        """Its process number."""
        assert self._process is not None
        return self._process.pid

    def send_signal(self, how: int) -> None:
        """Send it a signal, if it is up."""
        if self._process is not None:
            self._process.send_signal(how)

    def output(self) -> str:
        """Its console and its logs."""
        logs = sorted((self.home / "logs").rglob("*.log"))
        paths = [self.home / "console.log", *logs]
        return "\n".join(path.read_text(errors="replace") for path in paths)

    def stop(self, how: int = signal.SIGTERM) -> None:
        """Stop it."""
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(how)
        try:
            process.wait(MAX_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class JavaBroker(JavaServer):
    """The broker."""

    name = "broker"
    main = "BrokerStartup"


class JavaNameServer(JavaServer):
    """The name server."""

    name = "namesrv"
    main = "NamesrvStartup"
