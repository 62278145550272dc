"""Reads by the data source C{rocketmq} in one Spark session; prints what came as JSON.

    reads NAMESRV STORE TOPIC LOG

A command of L{tests.integration.spark_process}.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from rocketbroker.spark.sessions import local_session, reason


def main() -> None:
    """Read in several ways."""
    names, store, topic, log = sys.argv[1:]
    spark = local_session("reads", 2, log)

    def read(schema: str | None = None, **options: str) -> Any:
        reader = spark.read.format("rocketmq").option("subscribe", topic)
        if "store" not in options:
            reader = reader.option("nameServer", names)
        for name, value in options.items():
            reader = reader.option(name, value)
        if schema is not None:
            reader = reader.schema(schema)
        return reader.load()

    def refusal(**options: Any) -> str:
        try:
            read(**options).count()
        except Exception as error:
            return reason(error)
        return "none"

    rows = read("properties map<string,string>, body binary, tags string").collect()
    found = {
        "schema": [list(pair) for pair in read().dtypes],
        "numbers": sorted(int(row.properties["number"]) for row in rows),
        "sizes": sum(len(row.body) for row in rows),
        "tags": read(tags="even").count(),
        "offline": read(store=store, brokerName="broker-a").count(),
        "kafka": sorted(
            [row.partition, row.offset]
            for row in read(
                columns="kafka", startingOffsets=offsets(topic, 5)
            ).collect()
        )[:1],
        "partitions": read(maxRecordsPerPartition="100").rdd.getNumPartitions(),
        "nothing": read(startingOffsets="latest").count(),
        "unknown option": refusal(endingOfsets="latest"),
        "unknown column": refusal(schema="bdy binary"),
        "unknown topic": refusal(subscribe="nope"),
        "data loss": refusal(endingOffsets=offsets(topic, 10**9)),
    }
    spark.stop()
    print(json.dumps(found))


def offsets(topic: str, offset: int) -> str:
    """The same offset for two queues."""
    return json.dumps({topic: {"broker-a": {"0": offset, "1": offset}}})
