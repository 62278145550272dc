"""Exports in a session of one's own; prints what came as JSON.

python -m tests.integration.spark_exports MASTER NAMESRV TOPIC FOLDER [KEY=VALUE ...]
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from pyspark.sql import SparkSession

from rocketbroker.export.api import ExportFailed, export, export_with
from rocketbroker.export.spark_jobs import SessionCopyJobs


def main() -> None:
    """Export in several ways."""
    master, names, topic, folder, *settings = sys.argv[1:]
    builder = SparkSession.builder.master(master)
    for key, _, value in (each.partition("=") for each in settings):
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    options: dict[str, Any] = {"nameServer": names, "subscribe": topic}
    found: dict[str, object] = {}
    done = export(spark, os.path.join(folder, "context"), target=60 << 10, **options)
    found["context"] = [done.rows, done.files, done.statuses]
    done = export(spark, os.path.join(folder, "context"), **options)
    found["again"] = [done.rows, done.files, done.statuses]
    framed = SessionCopyJobs(spark, by_frame=True)
    done = export_with(framed, os.path.join(folder, "frame"), 60 << 10, options)
    found["frame"] = [done.rows, done.files, done.statuses]
    try:
        export(spark, os.path.join(folder, "none"), **{**options, "subscribe": "nope"})
    except ExportFailed as error:
        found["failed"] = str(error)
    # It is still the caller's.
    found["alive"] = spark.range(3).count()
    spark.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
