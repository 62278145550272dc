"""Reads and writes by Spark at a cluster with TLS and accounts; prints JSON.

    secured NAMESRV CA FOLDER LOG

A command of L{tests.integration.spark_process}.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from typing import Any

from rocketbroker.spark.sessions import local_session, reason


def main() -> None:
    """Write, read, stream; and do it with the wrong secret."""
    names, ca, folder, log = sys.argv[1:]
    spark = local_session("secured", 2, log)
    access = {
        "nameServer": names,
        "tls": "true",
        "tls.ca": ca,
        "accessKey": "application",
        "secretKey": "hidden-app-secret",
    }

    def read(**more: str) -> Any:
        words = {**access, "subscribe": "Orders", **more}
        return spark.read.format("rocketmq").options(**words).load()

    def refusal(**more: str) -> str:
        try:
            read(**more).count()
        except Exception as error:
            return reason(error)
        return "none"

    rows = spark.range(10).selectExpr("cast(id as string) as body")
    writer = rows.write.format("rocketmq").options(**access, topic="Orders")
    writer.mode("append").save()
    stream = spark.readStream.format("rocketmq").options(
        **access, subscribe="Orders", startingOffsets="earliest"
    )
    query = (
        stream.load()
        .select("body")
        .writeStream.format("rocketmq")
        .options(**access, topic="Orders", checkpointLocation=f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        read().explain(True)
    found = {
        "read": read().count(),
        "plan": shown.getvalue(),
        "stream": str(query.lastProgress),
        "wrong secret": refusal(secretKey="hidden-guess", retryTimeout="1s"),
        "not trusted": refusal(**{"tls.ca": f"{folder}/other.crt"}),
        "no TLS": refusal(tls="false"),
    }
    spark.stop()
    print(json.dumps(found))
