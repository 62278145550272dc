#!/usr/bin/env python3
"""The whole way of a message, on a machine that has only Python.

    python3 scripts/quickstart.py [--messages 100000] [--keep DIR] [--no-install]
                                  [--no-export]

Makes an environment (.env in the checkout), starts a name server and a broker, sends
messages of mixed size with keys, tags and properties from several producers to several
queues, receives them all with a consumer, exports the topic to Parquet with Spark,
reads the Parquet back, and compares every message. Exit status 0 if all were equal.
Nothing is left running, and nothing but the environment is left behind, unless --keep
says so. --no-export ends when all are received, and needs no Spark. Standard library
only, until it runs inside the environment.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036  # whoever starts it may have an older one
    sys.exit(
        f"{sys.argv[0]} needs Python 3.11 or newer; this one, {sys.executable}, is "
        f"{sys.version.split()[0]}. With python3.11 or a later one it works."
    )

import argparse
import contextlib
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.test import environment

if TYPE_CHECKING:
    from rich.console import Console

TOPIC = "quickstart"
QUEUES = 8
PRODUCERS = 4
TAGS = ("created", "paid", "packed", "shipped", "returned")
CITIES = ("Köln", "München", "São Paulo", "大阪", "Reykjavík")

#: Bodies are slices of so many bytes.
BLOB = random.Random(20261121).randbytes(64 * 1024)
#: Most messages are small, some large enough to be compressed on the way.
SIZES = (16, 60, 100, 128, 200, 300, 500, 1000)
LARGE = 6000
LARGE_EVERY = 97

READY_SECONDS = 60.0
IDLE_SECONDS = 30.0
COMMAND = [sys.executable, "-m", "rocketbroker.cli.command"]
ROOT = Path(__file__).resolve().parent.parent


class Content(NamedTuple):
    """What a message is made of."""

    body: bytes
    tag: str
    keys: tuple[str, ...]
    properties: dict[str, str]


class Stage(NamedTuple):
    """One line of the summary."""

    name: str
    messages: int
    size: int
    seconds: float


class Wrong(Exception):
    """Something is not as it must be; the text is for the reader."""


def content(number: int) -> Content:
    """What message C{number} is made of; the same whoever asks."""
    size = LARGE if number % LARGE_EVERY == 0 else SIZES[number * 7 % len(SIZES)]
    start = number * 131 % (len(BLOB) - LARGE)
    return Content(
        f"{number}:".encode() + BLOB[start : start + size],
        TAGS[number % len(TAGS)],
        (f"order-{number}", f"customer-{number % 1000}"),
        {"number": str(number), "city": CITIES[number % len(CITIES)]},
    )


def produce(names: str, numbers: range, sent: Any) -> None:
    """A producer, in a process of its own: half in batches, half one by one."""
    from rocketbroker.blocking.client import Client
    from rocketbroker.blocking.messages import Message
    from rocketbroker.blocking.producer import Producer
    from rocketbroker.blocking.settings import Settings

    def messages(some: range) -> Iterator[Message]:
        for number in some:
            made = content(number)
            yield Message(TOPIC, made.body, made.tag, made.keys, made.properties)

    with Client(Settings(names)) as client:
        producer = Producer(client)
        for begin in range(0, len(numbers), 500):
            some = numbers[begin : begin + 500]
            batch = begin // 500 % 2
            way = producer.send_batch if batch else producer.send_all
            for result in way(messages(some)):
                if result.status != 0:
                    raise Wrong(f"a send was answered with {result.status}")
                with sent.get_lock():
                    sent.value += len(result.message_ids)


@contextlib.contextmanager
def standalone(folder: Path) -> Iterator[str]:
    """Name server and broker, running meanwhile; the name server's address."""
    settings = folder / "broker.conf"
    settings.write_text("mappedFileSizeCommitLog=67108864\n")
    with open(folder / "broker.log", "wb") as log:
        process = subprocess.Popen(
            [*COMMAND, "standalone", "--dir", str(folder / "store"), "--port", "0"]
            + ["--namesrv-port", "0", "--metrics-port", "off", "-c", str(settings)],
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=ROOT,
        )
    try:
        yield ready(process, folder / "broker.log")
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()


def ready(process: subprocess.Popen[bytes], log: Path) -> str:
    """The name server's address, from the line that says that all is ready."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(b"ready:"):
            return line.split(b"name server ")[1].split(b",")[0].decode()
    raise Wrong(f"the broker did not start:\n{log.read_text()}")


class Bar:
    """A progress bar with rate and time left."""

    def __init__(self, console: "Console", label: str, total: int) -> None:
        from rich import progress

        self._progress = progress.Progress(
            progress.TextColumn("{task.description:<9}"),
            progress.BarColumn(bar_width=None),
            progress.TextColumn("{task.completed:,.0f} of {task.total:,.0f}"),
            progress.TextColumn("{task.fields[rate]:>12}"),
            progress.TimeRemainingColumn(),
            console=console,
            expand=True,
        )
        self._task = self._progress.add_task(label, total=total, rate="")
        self._began = time.monotonic()

    def __enter__(self) -> "Bar":
        self._progress.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._progress.stop()

    def show(self, count: int) -> None:
        """So many are done."""
        seconds = max(time.monotonic() - self._began, 0.001)
        rate = f"{count / seconds:,.0f}/s"
        self._progress.update(self._task, completed=count, rate=rate)


def send(names: str, total: int, console: "Console") -> Stage:
    """Create the topic and let all producers send."""
    from rocketbroker.blocking.client import Client
    from rocketbroker.blocking.settings import Settings

    with Client(Settings(names)) as client:
        client.create_topic(TOPIC, queues=QUEUES)
    context = multiprocessing.get_context("spawn")
    sent = context.Value("q", 0)
    producers = [
        context.Process(target=produce, args=(names, range(n, total, PRODUCERS), sent))
        for n in range(PRODUCERS)
    ]
    began = time.monotonic()
    try:
        # They leave an interrupt to us: traces of all of them would help nobody.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        for producer in producers:
            producer.start()
        signal.signal(signal.SIGINT, before)
        with Bar(console, "sending", total) as progress:
            while any(producer.is_alive() for producer in producers):
                progress.show(sent.value)
                time.sleep(0.05)
            progress.show(sent.value)
        seconds = time.monotonic() - began
        for producer in producers:
            producer.join()
    finally:
        for producer in producers:
            if producer.is_alive():
                producer.kill()
                producer.join()
    if sent.value != total:
        raise Wrong(f"{sent.value} of {total} messages were sent")
    size = sum(len(content(number).body) for number in range(total))
    return Stage("sent", total, size, seconds)


class Checked:
    """Messages as they come, each compared with what was sent, each once.

    @ivar places: of each number: message id, queue, queue offset.
    @ivar size: the bytes of all bodies.
    """

    def __init__(self, total: int) -> None:
        self._total = total
        self.places: dict[int, tuple[str, int, int]] = {}
        self.size = 0

    def take(
        self,
        body: bytes,
        tag: str | None,
        keys: list[str] | None,
        properties: dict[str, str],
        place: tuple[str, int, int],
    ) -> None:
        """One more message.

        @raise Wrong: it is not as it was sent, or came before.
        """
        where = f"message {place[0]} of queue {place[1]}, offset {place[2]}"
        number = int(properties.get("number", "-1"))
        if not 0 <= number < self._total:
            raise Wrong(f"{where} was never sent")
        if number in self.places:
            raise Wrong(f"{where} came before, as {self.places[number]}")
        sent = content(number)
        same = (
            body == sent.body
            and tag == sent.tag
            and keys == list(sent.keys)
            and sent.properties.items() <= properties.items()
            and properties.get("UNIQ_KEY") == place[0]
        )
        if not same:
            raise Wrong(f"{where} is not as it was sent")
        self.places[number] = place
        self.size += len(body)


def receive(names: str, total: int, console: "Console") -> tuple[Stage, Checked]:
    """Receive all messages with a consumer."""
    from rocketbroker.blocking.client import Client
    from rocketbroker.blocking.consumer import Consumer
    from rocketbroker.blocking.settings import Settings

    checked = Checked(total)
    began = moved = time.monotonic()
    bar = Bar(console, "receiving", total)
    with Client(Settings(names)) as client, bar as progress:
        consumer = Consumer(client, "quickstart-consumer", TOPIC)
        while len(checked.places) < total:
            for one in consumer.poll():
                place = (one.message_id, one.queue_id, one.queue_offset)
                checked.take(one.body, one.tags, one.keys, one.properties, place)
                moved = time.monotonic()
            progress.show(len(checked.places))
            if time.monotonic() - moved > IDLE_SECONDS:
                raise Wrong(f"{len(checked.places)} of {total} messages were received")
        consumer.commit()
    seconds = time.monotonic() - began
    return Stage("received", total, checked.size, seconds), checked


def export(names: str, total: int, folder: Path) -> Stage:
    """Export the topic with Spark."""
    began = time.monotonic()
    code = subprocess.call(
        [*COMMAND, "export", "run", TOPIC, "--namesrv", names, "--to", str(folder)],
        cwd=ROOT,
    )
    if code:
        raise Wrong(f"the export ended with exit status {code}")
    seconds = time.monotonic() - began
    size = sum(path.stat().st_size for path in folder.rglob("*.parquet"))
    return Stage("exported", total, size, seconds)


def read_back(total: int, folder: Path, console: "Console") -> tuple[Stage, Checked]:
    """Read the Parquet files and compare each message."""
    import pyarrow.parquet as pq

    checked = Checked(total)
    began = time.monotonic()
    with Bar(console, "comparing", total) as progress:
        for path in sorted(folder.rglob("*.parquet")):
            for batch in pq.ParquetFile(path).iter_batches(batch_size=2000):
                for row in batch.to_pylist():
                    checked.take(
                        row["body"],
                        row["tags"],
                        row["keys"],
                        dict(row["properties"]),
                        (row["msgId"], row["queueId"], row["queueOffset"]),
                    )
                progress.show(len(checked.places))
    if len(checked.places) != total:
        raise Wrong(
            f"{len(checked.places)} of {total} messages are in the Parquet files"
        )
    seconds = time.monotonic() - began
    return Stage("compared", total, checked.size, seconds), checked


def summary(stages: list[Stage], console: "Console") -> None:
    """Print the table."""
    from rich.table import Table

    table = Table()
    for title in ("", "messages", "MB", "seconds", "messages/s", "MB/s"):
        table.add_column(title, justify="right" if title else "left")
    for stage in stages:
        seconds = max(stage.seconds, 0.001)
        megabytes = stage.size / 1_000_000
        table.add_row(
            stage.name,
            f"{stage.messages:,}",
            f"{megabytes:,.1f}",
            f"{stage.seconds:,.1f}",
            f"{stage.messages / seconds:,.0f}",
            f"{megabytes / seconds:,.1f}",
        )
    console.print(table)


def inside(total: int, folder: Path, no_export: bool) -> int:
    """All stages, in the environment; the exit status."""
    from rich.console import Console

    console = Console()
    try:
        with standalone(folder) as names:
            console.print(f"name server {names}, store {folder / 'store'}")
            stages = [send(names, total, console)]
            received_stage, received = receive(names, total, console)
            stages.append(received_stage)
            if not no_export:
                stages.append(export(names, total, folder / "export"))
        if not no_export:
            compared_stage, exported = read_back(total, folder / "export", console)
            stages.append(compared_stage)
            if exported.places != received.places:
                raise Wrong("the Parquet files say other places than the broker")
    except Wrong as wrong:
        console.print(f"wrong: {wrong}", markup=False)
        return 1
    summary(stages, console)
    done = "received" if no_export else "received and exported"
    console.print(f"all {total:,} messages were {done} once, and equal")
    return 0


def main() -> int:
    """Find or make the environment, then run inside it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--messages", type=int, default=100_000, metavar="N")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep all files there")
    parser.add_argument("--no-install", action="store_true", help="run as it is here")
    parser.add_argument("--no-export", action="store_true", help="send and receive")
    words = parser.parse_args()
    if words.messages < 1:
        parser.error("--messages must be 1 or more")
    if not words.no_install:
        python = environment("spark")
        given = [str(python), __file__, "--no-install", *sys.argv[1:]]
        os.execv(python, given)
    # Whoever ends us wants everything ended that we started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if words.keep is not None:
        folder = words.keep.absolute()
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            parser.error(f"{folder} is not empty")
        return inside(words.messages, folder, words.no_export)
    folder = Path(tempfile.mkdtemp(prefix="rocketbroker-quickstart-"))
    try:
        return inside(words.messages, folder, words.no_export)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
