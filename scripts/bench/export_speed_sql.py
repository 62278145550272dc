"""Row of export_speed.py: Spark's SQL, in a process of its own.

    python -m scripts.bench.export_speed_sql STORE MESSAGES ROUNDS

writes into the current directory, and prints a line for each measurement: what it was,
in which round, and its seconds. The first round warms up.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from rocketbroker.spark.sessions import prepare_environment, register
from rocketbroker.spark.source import RocketMQDataSource
from scripts.bench.export_speed_parts import PROCESSES, TOPIC

READ, COPIED = Path("read"), Path("copied")


def session() -> SparkSession:
    """A session without settings of the JVM."""
    prepare_environment()
    builder = SparkSession.Builder().master(f"local[{PROCESSES}]")
    for name in ("spark.ui.enabled", "spark.ui.showConsoleProgress"):
        builder = builder.config(name, "false")
    found = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
    register(found, RocketMQDataSource)
    return found


def main() -> None:
    """Measure."""
    store, count, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    spark = session()

    def messages() -> DataFrame:
        reader = spark.read.format("rocketmq").option("store", store)
        return reader.option("subscribe", TOPIC).load()

    def parquet() -> None:
        messages().write.parquet(str(READ))

    def copy() -> None:
        spark.read.parquet(str(READ)).write.parquet(str(COPIED))

    def noop() -> None:
        messages().write.format("noop").mode("append").save()

    steps: dict[str, Callable[[], None]] = {
        "parquet": parquet,
        "copy": copy,
        "noop": noop,
    }
    for number in range(rounds + 1):
        for folder in (READ, COPIED):
            shutil.rmtree(folder, ignore_errors=True)
        for name, step in steps.items():
            begun = time.monotonic()
            step()
            took = time.monotonic() - begun
            if number or rounds == 1:
                print(name, number, took, flush=True)
        found = spark.read.parquet(str(COPIED)).count()
        if found != count:
            sys.exit(f"{count} messages gave {found} rows")
    spark.stop()


if __name__ == "__main__":
    main()
