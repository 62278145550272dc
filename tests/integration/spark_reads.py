"""Reads by the data source C{rocketmq} in one Spark session; prints what came as JSON.

    reads NAMESRV STORE TOPIC LOG

A command of L{tests.integration.spark_process}.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from rocketbroker.spark.pushdown import SETTING
from rocketbroker.spark.sessions import local_session, reason


def main() -> None:
    """Read in several ways."""
    names, store, topic, log = sys.argv[1:]
    spark = local_session("reads", 2, log)

    def read(schema: str | None = None, **options: str) -> Any:
        reader = spark.read.format("rocketmq")
        if not {"subscribePattern", "assign"} & options.keys():
            reader = reader.option("subscribe", topic)
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
        "sql": [
            read(sqlFilter="TAGS = 'even'", **more).count()
            for more in ({}, {"store": store})
        ],
        "chosen": [list(pair) for pair in read(columns="queueOffset,tags").dtypes],
        "before the end": read(startingOffsets="latest-7").count(),
        "pattern": read(subscribePattern=topic[:3] + ".*").count(),
        "assigned": sorted(
            {
                row.queueId
                for row in read(assign=f'{{"{topic}": {{"broker-a": [1]}}}}').collect()
            }
        ),
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
        "unknown queue": refusal(
            endingOffsets=json.dumps({topic: {"broker-a": {"9": 1}}})
        ),
        "unknown topic": refusal(subscribe="nope"),
        "data loss": refusal(endingOffsets=offsets(topic, 10**9)),
    }
    found |= pushed(spark, lambda: read(pushDown="true"))
    spark.stop()
    print(json.dumps(found))


def pushed(spark: Any, read: Callable[[], Any]) -> dict[str, object]:
    """What comes where Spark lets the source see to conditions."""
    spark.conf.set(SETTING, "true")
    rows = read().where("queueId = 0 and queueOffset >= 5 and queueOffset < 8")
    after = read().where("storeTimestamp >= timestamp'2001-01-01'")
    before = read().where("storeTimestamp < timestamp'2001-01-01'")
    return {
        "pushed": sorted([row.queueId, row.queueOffset] for row in rows.collect()),
        "pushed tags": read().where("tags = 'even'").count(),
        "pushed times": [after.count(), before.count()],
    }


def offsets(topic: str, offset: int) -> str:
    """The same offset for two queues."""
    return json.dumps({topic: {"broker-a": {"0": offset, "1": offset}}})
