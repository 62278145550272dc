"""Exports from a running cluster: what is sent, and what must be in the files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.messages import Message
from rocketbroker.blocking.producer import Producer
from rocketbroker.blocking.settings import Settings
from tests.integration.spark_process import SparkProcess

TOPIC = "exported"
COUNT = 2000
COMMAND = [sys.executable, "-m", "rocketbroker.cli.command"]


def body(number: int) -> bytes:
    """Every fiftieth is compressed on its way."""
    return b"%d," % number * (2000 if number % 50 == 0 else 20)


def fill(names: str, numbers: range) -> None:
    """Send messages to two queues."""
    with Client(Settings(names, seconds=30)) as client:
        client.create_topic(TOPIC, queues=2)
        messages = (
            Message(
                TOPIC,
                body(number),
                "odd" if number % 2 else "even",
                [f"k{number}"],
                {"number": str(number)},
            )
            for number in numbers
        )
        for result in Producer(client).send_all(messages):
            assert result.status == 0


def export(*words: str) -> subprocess.CompletedProcess[str]:
    """One C{rocketbroker export run}."""
    return SparkProcess.run("rocketbroker", "export", "run", *words, "--cores", "2")


def rows(root: Path) -> list[tuple[int, bytes, str, list[str]]]:
    """Number, body, tag and keys of each row of all Parquet files, sorted."""
    found = []
    for path in root.rglob("*.parquet"):
        for row in pq.ParquetFile(path).read().to_pylist():
            number = int(dict(row["properties"])["number"])
            found.append((number, row["body"], row["tags"], row["keys"]))
    return sorted(found)


def expected(count: int) -> list[tuple[int, bytes, str, list[str]]]:
    """The same of what was sent."""
    return [(n, body(n), "odd" if n % 2 else "even", [f"k{n}"]) for n in range(count)]
