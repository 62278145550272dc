"""Writes by the data source C{rocketmq} in one Spark session; prints JSON.

    writes NAMESRV FOLDER LOG

A command of L{tests.integration.spark_process}. The topics C{written} and C{streamed}
have to exist.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from rocketbroker.spark.sessions import local_session, reason

ROWS = 5000


def main() -> None:
    """Write a frame and a stream, and what cannot be written."""
    names, folder, log = sys.argv[1:]
    spark = local_session("writes", 2, log)
    frame = spark.range(0, ROWS, 1, 3).selectExpr(
        "concat('row ', id) AS body",
        "if(id % 2 = 0, 'even', 'odd') AS tags",
        "array(concat('k', id)) AS keys",
        "map('number', cast(id AS string)) AS properties",
    )

    def write(given: Any, **options: str) -> None:
        words = {"nameServer": names, "topic": "written", "idempotent": "true"}
        mode = options.pop("mode", "append")
        writer = given.write.format("rocketmq").mode(mode)
        writer.options(**(words | options)).save()

    def refusal(given: Any, **options: str) -> str:
        try:
            write(given, **options)
        except Exception as error:
            return reason(error)
        return "none"

    write(frame)
    frame.limit(1500).coalesce(1).write.parquet(f"{folder}/in")
    stream = spark.readStream.schema("body string, tags string").parquet(f"{folder}/in")
    for _ in range(2):
        query = (
            stream.select("body", "tags")
            .writeStream.format("rocketmq")
            .option("nameServer", names)
            .option("topic", "streamed")
            .option("idempotent", "true")
            .option("checkpointLocation", f"{folder}/checkpoint")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        # As after a crash before the end: the batch comes again.
        for commit in Path(f"{folder}/checkpoint/commits").glob("*0*"):
            commit.unlink()
    found = {
        "overwrite": refusal(frame, mode="overwrite"),
        "type": refusal(frame.selectExpr("1 AS body")),
        "topic": refusal(frame, topic="no such"),
        "null": refusal(frame.selectExpr("nullif(body, 'row 4000') AS body")),
    }
    spark.stop()
    print(json.dumps(found))
