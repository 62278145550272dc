#!/usr/bin/env python3
"""rocketbroker, installed from its wheel, with each PySpark that it is made for.

    python3 scripts/spark_versions.py [--versions 4.0.5,4.1.4,4.2.1,4.3.0]
                                      [--environments DIR]
                                      [--messages 4000] [--seconds 1800]
                                      [--only 'session;read, store;write']

Builds the wheel of this checkout and, for each version of PySpark, an environment
outside of it, with the wheel and its extra C{spark}. There, with a broker that runs
from that wheel, too, each does what a user would, and all rows are compared:

  - the export, by C{rocketbroker export run}, from the broker's store and from the
    broker, and a second run that finds nothing new;
  - C{spark.read}, in a session of the user's own, from both;
  - C{spark.readStream} into Parquet, with C{availableNow}, begun twice;
  - C{df.write} and C{df.writeStream} into topics.

Prints a table. The exit status is the number of checks that failed. Environments are
kept for the next time, in the cache directory of the user unless said otherwise.
Standard library only, until it runs inside an environment.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ("4.0.5", "4.1.4", "4.2.1", "4.3.0")
TOPIC = "Versions"

#: What a wheel is made of.
SOURCES = ("rocketbroker", "pyspark_rocketmq", "twisted_plugins")
FILES = ("setup.cfg", "pyproject.toml", "README.rst", "CHANGES.rst", "LICENSE")

#: A streaming worker of Python has 10 s to start, which Spark lets nobody change. On a
#: machine that is busy elsewhere that is too little now and then: it gets some tries.
BUSY = "failed to connect back"
TRIES = 4


def build(folder: Path) -> Path:
    """The wheel of this checkout; a copy is built, so that nothing is left in it."""
    source = folder / "source"
    source.mkdir()
    unwanted = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in SOURCES:
        shutil.copytree(ROOT / name, source / name, ignore=unwanted)
    for name in FILES:
        shutil.copy(ROOT / name, source)
    words = ["-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder)]
    builder = folder / "builder"
    venv.create(builder, with_pip=True)
    subprocess.run([str(builder / "bin" / "python"), *words, str(source)], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def install(wheel: Path, folder: Path, version: str) -> Path:
    """The Python of an environment with the wheel and this PySpark."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    pip = [str(python), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, f"{wheel}[spark]", f"pyspark=={version}"], check=True)
    # An earlier wheel has the same version: this replaces it.
    again = ["--force-reinstall", "--no-deps", str(wheel)]
    subprocess.run([*pip, *again], check=True)
    return python


def environment() -> dict[str, str]:
    """Variables that lead neither to this checkout nor to a Spark of this machine."""
    unwanted = ("PYTHONPATH", "SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
    return {name: text for name, text in os.environ.items() if name not in unwanted}


@contextlib.contextmanager
def standalone(command: str, folder: Path) -> Iterator[str]:
    """Name server and broker, running meanwhile; the name server's address."""
    store = ["--dir", str(folder / "store"), "--port", "0"]
    with open(folder / "broker.log", "wb") as log:
        process = subprocess.Popen(
            [
                command,
                "standalone",
                *store,
                "--namesrv-port",
                "0",
                "--metrics-port=off",
            ],
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=folder,
            env=environment(),
            text=True,
        )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line.startswith("ready:"):
            raise SystemExit((folder / "broker.log").read_text())
        yield line.split()[3].rstrip(",")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        process.stdout.close()


def check_version(
    python: Path, folder: Path, words: argparse.Namespace
) -> list[dict[str, Any]]:
    """What came of the checks of one version."""
    folder.mkdir()
    # The copy finds no package beside it but those that are installed.
    program = shutil.copy(__file__, folder / "checks.py")
    out, errors = folder / "rows", folder / "errors"
    with (
        standalone(str(python.parent / "rocketbroker"), folder) as names,
        open(out, "wb") as out_file,
        open(errors, "wb") as errors_file,
    ):
        more = ["--messages", str(words.messages), "--only", words.only]
        process = subprocess.Popen(
            [str(python), str(program), "--inside", names, str(folder), *more],
            cwd=folder,
            env=environment(),
            stdout=out_file,
            stderr=errors_file,
            # With all that it starts, as the JVM.
            start_new_session=True,
        )
        try:
            fault = "" if process.wait(words.seconds) == 0 else last_line(errors)
        except subprocess.TimeoutExpired:
            fault = f"not done after {words.seconds:g} s"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    lines = out.read_text().splitlines()
    rows = [json.loads(line) for line in lines if line.startswith('{"check"')]
    if fault:
        rows.append({"check": "all", "fault": fault, "seconds": words.seconds})
    return rows


def last_line(path: Path) -> str:
    """The last line of a file."""
    return (path.read_text().strip().splitlines() or ["not a word"])[-1]


# What runs inside an environment.


class Checks:
    """The checks of one environment.

    @ivar names: the name server.
    @ivar folder: a directory for all that is written.
    @ivar count: how many messages are in the topic.
    """

    def __init__(self, names: str, folder: Path, count: int) -> None:
        self.names = names
        self.folder = folder
        self.count = count
        self.sent = {(body(n), tag(n)) for n in range(count)}
        self.spark: Any = None

    def fill(self) -> None:
        """Send the messages, and make the topics that are written to."""
        from rocketbroker.blocking.client import Client
        from rocketbroker.blocking.messages import Message
        from rocketbroker.blocking.producer import Producer
        from rocketbroker.blocking.settings import Settings

        with Client(Settings(self.names)) as client:
            for name in (TOPIC, "Written", "Streamed"):
                client.create_topic(name, queues=3)
            messages = (Message(TOPIC, body(n), tag(n)) for n in range(self.count))
            for result in Producer(client).send_all(messages):
                assert result.status == 0

    def source(self, kind: str) -> dict[str, str]:
        """Options that name the store or the broker."""
        if kind == "broker":
            return {"nameServer": self.names}
        return {"store": str(self.folder / "store"), "brokerName": "broker-a"}

    def export(self, kind: str) -> str:
        """Export, and export again; a fault, or nothing."""
        root = self.folder / f"export-{kind}"
        place = {"broker": ["--namesrv", self.names]}.get(
            kind, ["--store", str(self.folder / "store")]
        )
        for status in (0, 3):
            done = subprocess.run(
                [
                    *(str(Path(sys.executable).parent / "rocketbroker"), "export"),
                    *("run", TOPIC, "--to", str(root), "--cores", "2", *place),
                ],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            if done.returncode != status:
                last = (done.stdout.strip().splitlines() or [""])[-1]
                return f"exit status {done.returncode}, not {status}: {last}"
        return self.compared(parquet_rows(root / TOPIC))

    def compared(self, rows: list[tuple[bytes, str]]) -> str:
        """What differs from the messages sent; nothing if none does."""
        if len(rows) != self.count:
            return f"{len(rows)} rows, not {self.count}"
        return "" if set(rows) == self.sent else "the rows are not the messages sent"

    def session(self) -> str:
        """A user's session: the source is found by itself, and may be registered."""
        from rocketbroker.spark.sessions import prepare_environment, register
        from rocketbroker.spark.source import RocketMQDataSource

        prepare_environment()
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local[2]").appName("versions")
        self.spark = builder.config("spark.ui.enabled", "false").getOrCreate()
        self.spark.sparkContext.setLogLevel("OFF")
        frame = self.spark.read.format("rocketmq")
        frame = frame.options(**self.source("store"), subscribe=TOPIC).load()
        if "queueOffset" not in frame.columns:
            return f"the columns are {frame.columns}"
        register(self.spark, RocketMQDataSource)
        return ""

    def read(self, kind: str, topic: str = TOPIC) -> list[tuple[bytes, str]]:
        """The rows of a topic, by a batch read."""
        frame = self.spark.read.format("rocketmq")
        frame = frame.options(**self.source(kind), subscribe=topic).load()
        rows = frame.select("body", "tags").collect()
        return [(bytes(row.body), row.tags) for row in rows]

    def stream(self) -> str:
        """A stream into Parquet, begun again when all is read."""
        for _ in range(2):
            frame = self.spark.readStream.format("rocketmq")
            frame = frame.option("startingOffsets", "earliest")
            frame = frame.options(**self.source("broker"), subscribe=TOPIC).load()
            query = (
                frame.select("body", "tags")
                .writeStream.format("parquet")
                .option("path", str(self.folder / "streamed"))
                .option("checkpointLocation", str(self.folder / "checkpoint"))
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()
        frame = self.spark.read.parquet(str(self.folder / "streamed"))
        rows = frame.select("body", "tags").collect()
        return self.compared([(bytes(row.body), row.tags) for row in rows])

    def write(self) -> str:
        """A frame into a topic, read back; and into files, for a stream."""
        frame = self.spark.read.format("rocketmq")
        frame = frame.options(**self.source("store"), subscribe=TOPIC).load()
        frame = frame.select("body", "tags")
        writer = frame.write.format("rocketmq").mode("append")
        writer.options(nameServer=self.names, topic="Written").save()
        frame.write.parquet(str(self.folder / "files"))
        return self.compared(self.read("broker", "Written"))

    def stream_write(self) -> str:
        """A stream of files into a topic, begun again when all is written."""
        place = str(self.folder / "files")
        for _ in range(2):
            frame = self.spark.readStream.schema("body binary, tags string")
            query = (
                frame.parquet(place)
                .writeStream.format("rocketmq")
                .options(nameServer=self.names, topic="Streamed")
                .option("checkpointLocation", str(self.folder / "checkpoint-sink"))
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()
        return self.compared(self.read("broker", "Streamed"))


def body(number: int) -> bytes:
    """The body of a message; every fiftieth is compressed on its way."""
    return b"%d," % number * (2000 if number % 50 == 0 else 20)


def tag(number: int) -> str:
    """The tag of a message."""
    return "odd" if number % 2 else "even"


def parquet_rows(folder: Path) -> list[tuple[bytes, str]]:
    """The rows of an export's files."""
    import pyarrow.parquet as pq

    found: list[tuple[bytes, str]] = []
    for path in sorted(folder.rglob("*.parquet")):
        table = pq.ParquetFile(path).read(["body", "tags"]).to_pydict()
        found += zip(table["body"], table["tags"], strict=True)
    return found


def inside(checks: Checks, only: list[str]) -> None:
    """Make the checks; a line of JSON for each.

    @param only: the names of those that are wanted; none for all.
    """
    steps: list[tuple[str, Callable[[], str]]] = [
        ("export, store", lambda: checks.export("store")),
        ("export, broker", lambda: checks.export("broker")),
        ("session", checks.session),
        ("read, store", lambda: checks.compared(checks.read("store"))),
        ("read, broker", lambda: checks.compared(checks.read("broker"))),
        ("read, empty", lambda: str(checks.read("broker", "Written") or "")),
        ("stream", checks.stream),
        ("write", checks.write),
        ("stream write", checks.stream_write),
    ]
    checks.fill()
    for name, step in steps:
        if only and name not in only:
            continue
        begun = time.monotonic()
        fault = BUSY
        for _ in range(TRIES):
            fault = outcome(step) if BUSY in fault else fault
        seconds = round(time.monotonic() - begun, 1)
        row = {"check": name, "fault": fault, "seconds": seconds}
        print(json.dumps(row), flush=True)
    if checks.spark is not None:
        checks.spark.stop()


def outcome(step: Callable[[], str]) -> str:
    """The fault that a check has found; nothing if there is none."""
    try:
        return step()
    except Exception as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        return f"{type(error).__name__}: {' | '.join(lines[:1] + lines[-1:])}"


def table(found: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    """The lines of the table: a column for each version; then all faults."""
    checks = list(
        dict.fromkeys(row["check"] for rows in found.values() for row in rows)
    )
    yield " ".join([" " * 16, *(f"{version:>10}" for version in found)])
    for check in checks:
        cells = []
        for rows in found.values():
            row = next((row for row in rows if row["check"] == check), None)
            text = "-" if row is None else f"{row['seconds']:.1f} s"
            cells.append("FAILED" if row and row["fault"] else text)
        yield " ".join([f"{check:<16}", *(f"{cell:>10}" for cell in cells)])
    for version, rows in found.items():
        for row in rows:
            if row["fault"]:
                yield f"{version}: {row['check']}: {row['fault']}"


def outside(words: argparse.Namespace) -> int:
    """Make the environments and the checks; how many failed."""
    environments = words.environments.absolute()
    found: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory(prefix="rocketbroker-versions-") as name:
        folder = Path(name)
        print("building the wheel", flush=True)
        wheel = build(folder)
        for version in words.versions.split(","):
            print(f"PySpark {version}", flush=True)
            python = install(wheel, environments / version, version)
            found[version] = check_version(python, folder / version, words)
            for line in table({version: found[version]}):
                print(line, flush=True)
    for line in table(found):
        print(line)
    return sum(bool(row["fault"]) for rows in found.values() for row in rows)


def main() -> int:
    """Either of the two."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--versions", default=",".join(VERSIONS), metavar="V,V")
    parser.add_argument(
        "--environments",
        type=Path,
        default=cache / "rocketbroker-spark-versions",
        metavar="DIR",
    )
    parser.add_argument("--messages", type=int, default=4000, metavar="N")
    parser.add_argument("--seconds", type=float, default=1800.0, metavar="S")
    parser.add_argument("--only", default="", metavar="CHECK;CHECK")
    parser.add_argument("--inside", nargs=2, help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.inside:
        names, folder = words.inside
        only = [name for name in words.only.split(";") if name]
        inside(Checks(names, Path(folder), words.messages), only)
        return 0
    # Whoever ends us wants everything ended that we started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    return outside(words)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
