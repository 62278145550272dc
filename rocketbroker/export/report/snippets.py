# -*- test-case-name: tests.export.report.test_snippets -*-
"""Programs that read an export, as they stand in reports; pure.

Each is whole: it can be pasted and run. They use only columns that every file has.
"""

from __future__ import annotations

from typing import Final

from rocketbroker.export.plans import escape

SPARK: Final = """\
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
messages = spark.read.parquet({spark!r})
messages.groupBy("dt", "hour", "brokerName", "queueId").count().show()
"""

DUCKDB: Final = """\
SELECT dt, hour, count(*) AS messages
FROM read_parquet({glob}, hive_partitioning = true)
GROUP BY dt, hour ORDER BY dt, hour;
"""

PANDAS: Final = """\
import pandas

messages = pandas.read_parquet({folder!r}, columns=["queueId", "queueOffset"])
print(messages.groupby("queueId")["queueOffset"].agg(["min", "max", "count"]))
"""

POLARS: Final = """\
import polars

messages = polars.scan_parquet({glob!r}, hive_partitioning=True)
print(messages.group_by("dt", "hour").len().sort("dt", "hour").collect())
"""


def snippets(address: str, topic: str) -> list[tuple[str, str]]:
    """Programs that read a topic: of each the name of its tool, and its text.

    @param address: the export's root, as users name it.
    """
    folder = f"{address.rstrip('/')}/{escape(topic)}"
    glob = f"{folder}/**/*.parquet"
    # The file system that Spark brings for S3 has another name.
    spark = f"s3a://{folder[5:]}" if folder.startswith("s3://") else folder
    quoted = "'" + glob.replace("'", "''") + "'"
    return [
        ("Spark", SPARK.format(spark=spark)),
        ("DuckDB", DUCKDB.format(glob=quoted)),
        ("pandas", PANDAS.format(folder=folder)),
        ("Polars", POLARS.format(glob=glob)),
    ]
