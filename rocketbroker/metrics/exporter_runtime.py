# -*- test-case-name: tests.metrics.test_exporter_runtime -*-
"""The exporter's metrics of a broker's state, from the figures of request 28.

What there is no queue for is 0, as in L{rocketbroker.broker.admin.runtime_info}.
C{docs/facts/security-metrics.md 6.2}.
"""

from __future__ import annotations

import re
from typing import Final

from rocketbroker.broker.broker import Broker
from rocketbroker.metrics.samples import Samples

#: Metric, figure, meaning.
FIGURES: Final = (
    (
        "rocketmq_brokeruntime_msg_put_total_today_now",
        "msgPutTotalTodayNow",
        "messages stored",
    ),
    (
        "rocketmq_brokeruntime_msg_gettotal_today_now",
        "msgGetTotalTodayNow",
        "messages pulled",
    ),
    (
        "rocketmq_brokeruntime_msg_puttotal_todaymorning",
        "msgPutTotalTodayMorning",
        "messages stored when this day began",
    ),
    (
        "rocketmq_brokeruntime_msg_gettotal_todaymorning",
        "msgGetTotalTodayMorning",
        "messages pulled when this day began",
    ),
    (
        "rocketmq_brokeruntime_msg_puttotal_yesterdaymorning",
        "msgPutTotalYesterdayMorning",
        "messages stored when the day before began",
    ),
    (
        "rocketmq_brokeruntime_msg_gettotal_yesterdaymorning",
        "msgGetTotalYesterdayMorning",
        "messages pulled when the day before began",
    ),
    (
        "rocketmq_brokeruntime_putmessage_times_total",
        "putMessageTimesTotal",
        "messages appended, those of the system too",
    ),
    (
        "rocketmq_brokeruntime_put_message_size_total",
        "putMessageSizeTotal",
        "bytes appended",
    ),
    (
        "rocketmq_brokeruntime_put_message_average_size",
        "putMessageAverageSize",
        "bytes of a message on the average",
    ),
    (
        "rocketmq_brokeruntime_putmessage_entire_time_max",
        "putMessageEntireTimeMax",
        "ms that the longest append took",
    ),
    (
        "rocketmq_brokeruntime_getmessage_entire_time_max",
        "getMessageEntireTimeMax",
        "ms that the longest read took",
    ),
    (
        "rocketmq_brokeruntime_put_latency_99",
        "putLatency99",
        "ms that 99 of 100 appends of the last minute took at most",
    ),
    (
        "rocketmq_brokeruntime_put_latency_999",
        "putLatency999",
        "the same of 999 of 1000",
    ),
    (
        "rocketmq_brokeruntime_dispatch_behind_bytes",
        "dispatchBehindBytes",
        "bytes appended, not dispatched",
    ),
    ("rocketmq_brokeruntime_dispatch_maxbuffer", "dispatchMaxBuffer", "0"),
    (
        "rocketmq_brokeruntime_commitlog_maxoffset",
        "commitLogMaxOffset",
        "end of the commit log",
    ),
    (
        "rocketmq_brokeruntime_commitlog_minoffset",
        "commitLogMinOffset",
        "begin of the commit log",
    ),
    (
        "rocketmq_brokeruntime_commitlog_disk_ratio",
        "commitLogDiskRatio",
        "how full the disk of the commit log is, 0 to 1",
    ),
    (
        "rocketmq_brokeruntime_consumequeue_disk_ratio",
        "consumeQueueDiskRatio",
        "how full the disk of the consume queues is, 0 to 1",
    ),
    ("rocketmq_brokeruntime_pagecache_lock_time_mills", "pageCacheLockTimeMills", "0"),
    (
        "rocketmq_brokeruntime_remain_transientstore_buffer_numbs",
        "remainTransientStoreBufferNumbs",
        "2147483647: no pool",
    ),
    (
        "rocketmq_brokeruntime_start_accept_sendrequest_time",
        "startAcceptSendRequestTimeStamp",
        "startAcceptSendRequestTimeStamp",
    ),
    (
        "rocketmq_brokeruntime_send_threadpool_queue_size",
        "sendThreadPoolQueueSize",
        "sends that wait for the disk",
    ),
    (
        "rocketmq_brokeruntime_send_threadpoolqueue_capacity",
        "sendThreadPoolQueueCapacity",
        "how many may wait",
    ),
    (
        "rocketmq_brokeruntime_send_threadpoolqueue_headwait_timemills",
        "sendThreadPoolQueueHeadWaitTimeMills",
        "ms that the first has waited",
    ),
    (
        "rocketmq_brokeruntime_pull_threadpoolqueue_size",
        "pullThreadPoolQueueSize",
        "pulls that wait for a read of the disk",
    ),
    (
        "rocketmq_brokeruntime_pull_threadpoolqueue_capacity",
        "pullThreadPoolQueueCapacity",
        "how many may wait",
    ),
    (
        "rocketmq_brokeruntime_pull_threadpoolqueue_headwait_timemills",
        "pullThreadPoolQueueHeadWaitTimeMills",
        "ms that the first has waited",
    ),
    (
        "rocketmq_brokeruntime_query_threadpoolqueue_size",
        "queryThreadPoolQueueSize",
        "0",
    ),
    (
        "rocketmq_brokeruntime_query_threadpool_queue_capacity",
        "queryThreadPoolQueueCapacity",
        "queryThreadPoolQueueCapacity",
    ),
    (
        "rocketmq_brokeruntime_query_threadpoolqueue_headwait_timemills",
        "queryThreadPoolQueueHeadWaitTimeMills",
        "0",
    ),
)

#: Metric, and the class of C{putMessageDistributeTime}.
TIMES: Final = (
    ("rocketmq_brokeruntime_pmdt_0ms", "<=0ms"),
    ("rocketmq_brokeruntime_pmdt_0to10ms", "0~10ms"),
    ("rocketmq_brokeruntime_pmdt_10to50ms", "10~50ms"),
    ("rocketmq_brokeruntime_pmdt_50to100ms", "50~100ms"),
    ("rocketmq_brokeruntime_pmdt_100to200ms", "100~200ms"),
    ("rocketmq_brokeruntime_pmdt_200to500ms", "200~500ms"),
    ("rocketmq_brokeruntime_pmdt_500to1s", "500ms~1s"),
    ("rocketmq_brokeruntime_pmdt_1to2s", "1~2s"),
    ("rocketmq_brokeruntime_pmdt_2to3s", "2~3s"),
    ("rocketmq_brokeruntime_pmdt_3to4s", "3~4s"),
    ("rocketmq_brokeruntime_pmdt_4to5s", "4~5s"),
    ("rocketmq_brokeruntime_pmdt_5to10s", "5~10s"),
    ("rocketmq_brokeruntime_pmdt_10stomore", "10s~"),
)

#: The figure with three rates, their meaning, and the metric of each.
RATES: Final = (
    (
        "putTps",
        "messages stored a second",
        (
            "rocketmq_brokeruntime_put_tps10",
            "rocketmq_brokeruntime_put_tps60",
            "rocketmq_brokeruntime_put_tps600",
        ),
    ),
    (
        "getFoundTps",
        "pulls a second that found something",
        (
            "rocketmq_brokeruntime_getfound_tps10",
            "rocketmq_brokeruntime_getfound_tps60",
            "rocketmq_brokeruntime_getfound_tps600",
        ),
    ),
    (
        "getMissTps",
        "pulls a second that found nothing",
        (
            "rocketmq_brokeruntime_getmiss_tps10",
            "rocketmq_brokeruntime_getmiss_tps60",
            "rocketmq_brokeruntime_getmiss_tps600",
        ),
    ),
    (
        "getTotalTps",
        "pulls a second",
        (
            "rocketmq_brokeruntime_gettotal_tps10",
            "rocketmq_brokeruntime_gettotal_tps60",
            "rocketmq_brokeruntime_gettotal_tps600",
        ),
    ),
    (
        "getTransferredTps",
        "messages pulled a second",
        (
            "rocketmq_brokeruntime_gettransfered_tps10",
            "rocketmq_brokeruntime_gettransfered_tps60",
            "rocketmq_brokeruntime_gettransfered_tps600",
        ),
    ),
)


def add_runtime(samples: Samples, broker: Broker, oldest: int) -> None:
    """Add all of them.

    @param oldest: the store time of the oldest message in ms; -1: there is none.
    """
    table, store = broker.runtime_info.table(), broker.store
    labels = {
        "brokerIP": broker.address,
        "brokerHost": "",
        "des": table["brokerVersionDesc"],
        "boottime": table["bootTimestamp"],
        "broker_version": table["brokerVersion"],
    }

    def add(name: str, words: str, value: float) -> None:
        # The exporter gives no types; OpenMetrics knows this end of counters only.
        family = samples.counter if name.endswith("_total") else samples.gauge
        family(name, words, value, **labels)

    for name, key, words in FIGURES:
        add(name, words, float(table[key]))
    found = re.findall(r"\[(\S+)\]:(\d+)", table["putMessageDistributeTime"])
    counts = {key: int(count) for key, count in found}
    for name, key in TIMES:
        words = "messages of the last minute by the time of their append"
        add(name, words, counts.get(key, 0))
    for key, words, names in RATES:
        # A window that the broker has not lived through is empty.
        for name, rate in zip(names, table[key].split(), strict=False):
            add(name, words, float(rate))
    root = store.space.queues
    for name, words, number in (
        (
            "rocketmq_brokeruntime_commitlogdir_capacity_total",
            "bytes of the disk",
            root.total,
        ),
        (
            "rocketmq_brokeruntime_commitlogdir_capacity_free",
            "bytes of the disk that are free",
            root.usable,
        ),
        (
            "rocketmq_brokeruntime_remain_howmanydata_toflush",
            "bytes of the commit log that are not on the disk",
            store.published_position - store.flushed_position,
        ),
        (
            "rocketmq_brokeruntime_earliest_message_timestamp",
            "store time of the oldest message, in ms; -1: there is none",
            oldest,
        ),
    ):
        add(name, words, number)
