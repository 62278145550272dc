"""A stream of the data source C{rocketmq} in one Spark session; prints what happened.

    streams NAMESRV TOPIC FOLDER LOG

copies a topic into Parquet files below C{FOLDER}, all there is when it begins, in
micro-batches of 400 messages where PySpark has them, and goes on where an earlier call
ended. A command of L{tests.integration.spark_process}, and a program of its own for
other versions of PySpark.

    checkpoint NAMESRV TOPIC FOLDER LOG

goes on with the stream that has a checkpoint below C{FOLDER}, without a limit.
"""

from __future__ import annotations

import json
import sys
import time
import urllib.request
from collections.abc import Callable
from typing import Any, Final

from rocketbroker.spark.lag import LagListener, QueueLag
from rocketbroker.spark.sessions import local_session, reason
from scripts.lab.servers import free_base

#: How long Spark may take to tell of what has been done: it does so in a thread of its
#: own.
MAX_SECONDS: Final = 60.0


def main() -> None:
    """Copy what there is, then look at a stream that waits."""
    names, topic, folder, log = sys.argv[1:]
    spark = local_session("streams", 2, log)
    lags: list[QueueLag] = []
    listener = LagListener(lambda name, found: lags.extend(found))
    spark.streams.addListener(listener)
    try:
        found: dict[str, Any] = {"batches": copied(spark, names, topic, folder)}
        found |= waiting(spark, names, topic, folder)
        until(lambda: len({lag.queue.queue_id for lag in lags}) > 1)
        found["lags"] = sorted({lag.queue.queue_id for lag in lags})
        found["behind"] = max((lag.messages for lag in lags), default=0)
    except Exception as error:
        found = {"error": reason(error)}
    spark.streams.removeListener(listener)
    spark.stop()
    print(json.dumps(found))


def go_on() -> None:
    """Copy what a checkpoint has not had, all at once; print how much that was."""
    names, topic, folder, log = sys.argv[1:]
    spark = local_session("checkpoint", 1, log)
    query = started(stream(spark, names, topic), folder)
    query.awaitTermination()
    print(json.dumps([progress["numInputRows"] for progress in query.recentProgress]))
    spark.stop()


def stream(spark: Any, names: str, topic: str, **options: str) -> Any:
    """The messages of a topic from the first one on."""
    reader = spark.readStream.format("rocketmq").option("nameServer", names)
    reader = reader.option("subscribe", topic).option("startingOffsets", "earliest")
    for name, value in options.items():
        reader = reader.option(name, value)
    return reader.load()


def copied(spark: Any, names: str, topic: str, folder: str) -> list[int]:
    """Copy what there is; how many messages each micro-batch had."""
    limits = {"maxOffsetsPerTrigger": "400", "minOffsetsPerTrigger": "400"}
    query = started(stream(spark, names, topic, commitGroup="G", **limits), folder)
    query.awaitTermination()
    return [progress["numInputRows"] for progress in query.recentProgress]


def started(messages: Any, folder: str) -> Any:
    """A query that copies messages below a folder, until it has what there is now."""
    return (
        messages.writeStream.format("parquet")
        .option("path", f"{folder}/rows")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )


def waiting(spark: Any, names: str, topic: str, folder: str) -> dict[str, Any]:
    """Let a stream wait for 5 s; what Prometheus and the progress say of it."""
    port = free_base()
    messages = stream(spark, names, topic, metricsPort=str(port)).select("queueId")
    query = messages.writeStream.format("noop").start()
    query.processAllAvailable()
    begin = time.monotonic()
    before = requests(port)
    time.sleep(5)
    after = requests(port)
    seconds = time.monotonic() - begin
    until(lambda: any(p["numInputRows"] for p in query.recentProgress))
    progress = next(p for p in query.recentProgress if p["numInputRows"])
    query.stop()
    latest = json.loads(progress["sources"][0]["latestOffset"] or "{}")
    return {
        "requests": (after - before) / seconds,
        "rows": progress["numInputRows"],
        "latest": latest.get("t"),
    }


def until(what: Callable[[], bool]) -> None:
    """Wait until something is so, or the time is over."""
    end = time.monotonic() + MAX_SECONDS
    while not what() and time.monotonic() < end:
        time.sleep(0.1)


def requests(port: int) -> float:
    """How many requests for ends a stream has sent."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        text = answer.read().decode("ascii")
    (line,) = (
        line
        for line in text.splitlines()
        if line.startswith("rocketbroker_stream_end_requests_total ")
    )
    return float(line.split()[1])


if __name__ == "__main__":
    main()
