# -*- test-case-name: tests.sources.test_options -*-
"""The table of a read's options: name, default, meaning, and what reads the value.

C{docs/spark-options.rst} is made of it::

python3 -m rocketbroker.sources.option_table > docs/spark-options.rst
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from rocketbroker.sources.access import ACCESS
from rocketbroker.sources.option_values import (
    EARLIEST,
    ERROR,
    LATEST,
    assigned,
    byte_count,
    column_names,
    condition,
    duration,
    ending_offsets,
    group,
    moment,
    moments,
    natural,
    on_data_loss,
    one_of,
    pattern,
    port,
    size,
    starting_offsets,
    tag_expression,
    time_span,
    topics,
    truth,
    word,
)
from rocketbroker.sources.ranges import MAX_RECORDS

#: The broker of a store's files is not named in them.
LOCAL_BROKER: Final = "local"

#: What options are for: batch reads, streams, or both.
BATCH: Final = "batch"
STREAM: Final = "stream"
BOTH: Final = "batch, stream"


class Option(NamedTuple):
    """An option.

    @ivar attributes: of C{options.ReadOptions}; of several, the value is a tuple.
    @ivar read: its value from text.
    @ivar default: in words.
    @ivar meaning: in words, for users; reStructuredText.
    @ivar scope: what it is for.
    """

    name: str
    attributes: tuple[str, ...]
    read: Callable[[str], Any]
    default: str
    meaning: str
    scope: str = BOTH


OPTIONS: Final = (
    Option(
        "nameServer",
        ("name_server",),
        word,
        "this or ``store``",
        "The name servers: ``host:port``, several separated by ``;``.",
    ),
    *(Option(one.name, (one.attribute,), *one[2:]) for one in ACCESS),
    Option(
        "store",
        ("store",),
        word,
        "this or ``nameServer``",
        "The directory of a broker's store, to be read without a broker or beside one.",
        BATCH,
    ),
    Option(
        "subscribe",
        ("topics",),
        topics,
        "this, ``subscribePattern`` or ``assign``",
        "Topics, separated by commas.",
    ),
    Option(
        "subscribePattern",
        ("pattern",),
        pattern,
        "none",
        "A regular expression (Python's) for whole names of topics. Topics of the "
        "system are left out; retry and dead-letter topics, too, unless the "
        "expression begins with ``%``.",
    ),
    Option(
        "assign",
        ("assigned",),
        assigned,
        "none",
        'Single queues: ``{"orders": {"broker-a": [0, 1]}}``. One that does not '
        "exist is refused.",
    ),
    Option(
        "startingOffsets",
        ("starting",),
        starting_offsets,
        "``earliest``; of a stream ``latest``",
        "Where to begin: ``earliest``; ``latest``; ``latest-N``, N messages before the "
        "end of each queue; ``group:G``, where a consumer group goes on (not with "
        "``store``); ``export:DIR``, where an export ended, in a directory or at "
        "another address of ``export run --to``; or "
        '``{"orders": {"broker-a": {"0": 5}}}``. A name that does not exist is '
        "refused.",
    ),
    Option(
        "endingOffsets",
        ("ending",),
        ending_offsets,
        "``latest``",
        "Where to end, exclusive: ``latest``, which is fixed once per query, or JSON "
        "as above. A queue that is not named is read to its end.",
        BATCH,
    ),
    Option(
        "startingTimestamp",
        ("starting_time",),
        moment,
        "none",
        "Messages stored at this time or later: ms since 1970, ISO 8601 (UTC unless "
        "it names a zone), or ``-10m`` before now (``ms``, ``s``, ``m``, ``h``, "
        "``d``). Goes before the options of offsets.",
    ),
    Option(
        "endingTimestamp",
        ("ending_time",),
        moment,
        "none",
        "Messages stored before this time, so that adjoining reads neither overlap "
        "nor miss any.",
        BATCH,
    ),
    Option(
        "startingOffsetsByTimestamp",
        ("starting_times",),
        moments,
        "none",
        'The same by queue: ``{"orders": {"broker-a": {"0": "-10m"}}}``. Goes before '
        "``startingOffsets``.",
    ),
    Option(
        "endingOffsetsByTimestamp",
        ("ending_times",),
        moments,
        "none",
        "The same for ends; a queue that is not named is read to its end.",
        BATCH,
    ),
    Option(
        "startingOffsetsByTimestampStrategy",
        ("starting_strategy",),
        one_of(ERROR, LATEST, EARLIEST),
        "``latest``",
        "Where a queue begins that has no message of the starting time or later: "
        "``latest``, at its end; ``earliest``; or ``error``, which fails. Also for "
        "``startingTimestamp``.",
    ),
    Option(
        "endingOffsetsByTimestampStrategy",
        ("ending_strategy",),
        one_of(ERROR, LATEST),
        "``latest``",
        "The same for the ending time: ``latest`` or ``error``.",
        BATCH,
    ),
    Option(
        "missingQueues",
        ("missing_queues",),
        one_of(EARLIEST, LATEST),
        "``earliest``",
        "Where a queue begins that the JSON of a start does not name, or of which the "
        "group or the export knows nothing: ``earliest`` or ``latest``.",
    ),
    Option(
        "tags",
        ("tags",),
        tag_expression,
        "``*``",
        "Only messages with one of these tags: ``a || b``. Brokers do not send the "
        "others.",
    ),
    Option(
        "sqlFilter",
        ("sql_filter",),
        condition,
        "none",
        "Only messages whose properties satisfy this condition in RocketMQ's SQL92: "
        "``region = 'eu' AND price > 10``. Brokers do not send the others. Not with "
        "``tags``.",
    ),
    Option(
        "pushDown",
        ("push_down",),
        truth,
        "``false``",
        "Whether conditions of the query on ``storeTimestamp``, ``queueOffset``, "
        "``queueId``, ``brokerName``, ``topic`` and ``tags`` make less to be read. "
        "Needs PySpark 4.1 and a session with "
        "``spark.sql.python.filterPushdown.enabled=true``, as "
        "``rocketbroker.spark.pushdown.configure(builder)`` sets it: without it, Spark "
        "fails the query. Times are searched for: where a broker's clock went back, "
        "messages around that moment may be missed.",
        BATCH,
    ),
    Option(
        "columns",
        ("columns", "select"),
        column_names,
        "``native``",
        "``native``; ``kafka``, the columns of Spark's Kafka source; or names of "
        "columns, separated by commas. What is not asked for is not computed.",
    ),
    Option(
        "maxRecordsPerPartition",
        ("max_records",),
        natural,
        str(MAX_RECORDS),
        "A partition has at most so many messages.",
    ),
    Option(
        "minPartitions",
        ("least_partitions",),
        natural,
        "cores",
        "There are at least so many partitions, if there are as many messages.",
    ),
    Option(
        "failOnDataLoss",
        ("fail_on_data_loss", "record_data_loss"),
        on_data_loss,
        "``true``",
        "Whether the read fails if messages that it must have are gone: ``true``; "
        "``false``, go on with what is there; ``record``, go on and log which are "
        "gone.",
    ),
    Option(
        "verifyCounts",
        ("verify_counts",),
        truth,
        "``true``",
        "Whether each range must give each of its offsets once. Never with a filter.",
    ),
    Option(
        "detectReset",
        ("detect_reset",),
        truth,
        "``true``",
        "Whether a start that remembers a message (``export:DIR``) fails if another "
        "one stands at its offset: the topic was deleted and created again.",
    ),
    Option(
        "decompress",
        ("decompress",),
        truth,
        "``true``",
        "Whether compressed bodies are made large again.",
    ),
    Option(
        "pullBatchSize",
        ("pull_batch_size",),
        natural,
        "1024",
        "How many messages a pull asks for; brokers may give fewer.",
    ),
    Option(
        "pullBytes",
        ("pull_bytes",),
        byte_count,
        "4m",
        "How many bytes a pull asks for, at most 64m.",
    ),
    Option(
        "pullConcurrency",
        ("pull_concurrency",),
        natural,
        "4",
        "How many pulls a task has under way; with a filter, one.",
    ),
    Option(
        "pullTimeout",
        ("pull_timeout_ms",),
        duration,
        "30s",
        "How long a request may take (``ms`` unless it names a unit).",
    ),
    Option(
        "retryTimeout",
        ("retry_timeout_ms",),
        time_span,
        "2m",
        "How long to go on asking brokers that do not answer, because they restart or "
        "the network is gone; ``0``: not at all.",
    ),
    Option(
        "brokerName",
        ("broker_name",),
        word,
        f"``{LOCAL_BROKER}``",
        "With ``store``: what its broker is called; its files do not say.",
        BATCH,
    ),
    Option(
        "maxOffsetsPerTrigger",
        ("max_offsets",),
        natural,
        "none",
        "A micro-batch has at most so many messages, shared among the queues by what "
        "waits in each, at least one of each.",
        STREAM,
    ),
    Option(
        "maxBytesPerTrigger",
        ("max_bytes",),
        size,
        "none",
        "The same in bytes as stored, by the mean size of the next messages of each "
        "queue: ``64m``.",
        STREAM,
    ),
    Option(
        "minOffsetsPerTrigger",
        ("min_offsets",),
        natural,
        "none",
        "A micro-batch begins when so many messages wait, or at the latest after "
        "``maxTriggerDelay``. Not under ``availableNow``.",
        STREAM,
    ),
    Option(
        "maxTriggerDelay",
        ("max_delay_ms",),
        duration,
        "15m",
        "How long ``minOffsetsPerTrigger`` may hold up a micro-batch.",
        STREAM,
    ),
    Option(
        "limitsOnOldSpark",
        ("limits_on_old_spark",),
        truth,
        "``false``",
        "Whether the four options above hold on PySpark 4.0 and 4.1, too. There, "
        "``availableNow`` is one micro-batch, and with a limit it would end before all "
        "is read.",
        STREAM,
    ),
    Option(
        "discoveryInterval",
        ("discovery_ms",),
        duration,
        "30s",
        "How often a stream looks for new queues, and new topics of "
        "``subscribePattern``. They are read from their first message on.",
        STREAM,
    ),
    Option(
        "commitGroup",
        ("commit_group",),
        group,
        "none",
        "A consumer group to which a stream commits its offsets, for tools that show "
        "lag. The stream itself never goes by them; a broker that refuses the group, "
        "because it does not know it, say, is logged.",
        STREAM,
    ),
    Option(
        "metricsPort",
        ("metrics_port",),
        port,
        "none",
        "A port of 127.0.0.1 where a stream answers Prometheus: lag of each queue in "
        "messages and seconds.",
        STREAM,
    ),
)


INTRODUCTION: Final = """\
.. Made from the code:
   python3 -m rocketbroker.sources.option_table > docs/spark-options.rst

Options of reads
================

Names are taken in any case. An option that is not known is refused with the list of
those that are, a value that makes no sense with one sentence.

``rocketbroker.arrow.read`` takes the options of batch reads by names as Python has them
(``starting_offsets``, ``tls_ca``), but those that share out a read among tasks.

Writes take the options of access, too: ``tls`` and those that begin with it, and
``accessKey``, ``secretKey`` and ``securityToken``. Spark masks keys, passwords and
tokens where it shows options.

"""


def options_page() -> str:
    """The page, in reStructuredText."""
    lines = [".. list-table::", "   :header-rows: 1", "   :widths: 20 15 15 50", ""]
    heading = ("Option", "Default", "For", "Meaning")
    rows = [
        (f"``{each.name}``", each.default, each.scope, each.meaning) for each in OPTIONS
    ]
    for first, *others in (heading, *rows):
        lines += [f"   * - {first}", *(f"     - {cell}" for cell in others)]
    return INTRODUCTION + "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(options_page(), end="")
