"""The official Java client on a lead: commands as JSON lines to the program in java/.

The Java side decides nothing; what a test asserts, it asserts in Python.
"""

from __future__ import annotations

import base64
import fcntl
import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from twisted.trial.unittest import SkipTest

PROJECT = Path(__file__).resolve().parent / "java"

#: The oldest and the newest client that we promise to serve.
VERSIONS = ("4.9.8", "5.3.3")


#: How long something may take that comes by itself, in seconds. Clients ask for routes
#: and send heartbeats each 30 seconds, and divide queues anew each 20: what one misses
#: at its start comes after all three, and later on a machine that is busy elsewhere.
PATIENCE = 120.0

#: Options of a Java that lives for a short time: its start costs less processor time.
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


class JavaError(Exception):
    """What the client raised: its class, the response code (0: none) and its words."""

    def __init__(self, kind: str, code: int, text: str) -> None:
        super().__init__(f"{kind} {code}: {text}")
        self.kind = kind
        self.code = code
        self.text = text


def why_not() -> str | None:
    """Why Java cannot run here, None if it can."""
    missing = [name for name in ("java", "javac", "mvn") if shutil.which(name) is None]
    if missing:
        return f"needs a JDK with Maven; not found: {', '.join(missing)}"
    return None


def build(version: str) -> str:
    """Compile the driver against one version of the client; the class path."""
    target = PROJECT / "target" / version
    sources = [*(PROJECT / "src").rglob("*.java"), PROJECT / "pom.xml"]
    stamp = target / "complete"
    newest = max(source.stat().st_mtime for source in sources)
    with building():
        if not stamp.exists() or stamp.stat().st_mtime < newest:
            maven(version, target, "compile", "dependency:copy-dependencies")
            stamp.touch()
    return f"{target / 'classes'}:{target / 'lib'}/*"


@contextmanager
def building() -> Iterator[None]:
    """Only one process at a time calls Maven, whose repository is shared by all."""
    target = PROJECT / "target"
    target.mkdir(exist_ok=True)
    with open(target / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def maven(version: str, target: Path, *words: str) -> None:
    """Carry out goals for one version, with everything in C{target}."""
    done = subprocess.run(
        [
            "mvn",
            "-q",
            "-B",
            "-f",
            str(PROJECT / "pom.xml"),
            f"-Drocketmq.version={version}",
            f"-DbuildTo={target}",
            f"-DoutputDirectory={target / 'lib'}",
            *words,
        ],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"Maven: {done.stdout[-2000:]}{done.stderr[-2000:]}")


class Program:
    """A program with an official client inside, which carries out commands."""

    def __init__(
        self,
        words: Sequence[str],
        folder: Path,
        log: str,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """
        @param words: what starts it.
        @param log: the file in C{folder} for what it says besides answers.
        @param variables: of its environment, instead of ours.
        """
        self._errors = open(folder / log, "wb")  # noqa: SIM115
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            cwd=folder,
            env=variables,
            text=True,
            encoding="utf-8",
        )

    def __call__(self, what: str, **words: object) -> Any:
        """Carry out one command; its answer.

        @raise JavaError: the client raised something.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": what, **words}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"it has gone: {self._process.wait()}")
        answer = cast("dict[str, Any]", json.loads(line))
        if "error" in answer:
            raise JavaError(answer["error"], answer["code"], answer["text"])
        return answer.get("ok")

    def send(self, name: str, topic: str, body: bytes, **words: object) -> Any:
        """Send one message with the producer called C{name}."""
        return self("send", name=name, topic=topic, body=encoded(body), **words)

    def received(
        self, name: str, at_least: int, seconds: float = PATIENCE
    ) -> list[Any]:
        """What a push consumer has, once it has that many or the time is over."""
        return cast(
            "list[Any]",
            self(
                "received", name=name, atLeast=at_least, timeoutMs=int(seconds * 1000)
            ),
        )

    def send_signal(self, how: int) -> None:
        """Send the process a signal."""
        self._process.send_signal(how)

    def stop(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._errors.close()


class JavaClient(Program):
    """One Java process with the official client inside."""

    def __init__(
        self, version: str, names: str, folder: Path, prefix: Sequence[str] = ()
    ) -> None:
        """
        @param prefix: words before the command, as those of C{ip netns exec}.
        """
        reason = why_not()
        if reason is not None:
            raise SkipTest(reason)
        path = build(version)
        # Where the command line of 4.9 wants it.
        quiet = folder / "conf" / "logback_tools.xml"
        quiet.parent.mkdir(exist_ok=True)
        quiet.write_text('<configuration><root level="OFF"/></configuration>')
        words = [
            *prefix,
            "java",
            *QUICK,
            "-Xmx256m",
            f"-Duser.home={folder}",
            f"-Drocketmq.home.dir={folder}",
            f"-Djava.io.tmpdir={folder}",
            f"-Dlogback.configurationFile={quiet}",
            f"-Drmq.logback.configurationFile={quiet}",
            "-cp",
            path,
            "driver.Driver",
            names,
        ]
        super().__init__(words, folder, f"java-{version}.log")


def encoded(body: bytes) -> str:
    """A body as the driver wants it."""
    return base64.b64encode(body).decode("ascii")


def body_of(message: dict[str, Any]) -> bytes:
    """The body of a message that the driver has seen."""
    return base64.b64decode(message["body"])
