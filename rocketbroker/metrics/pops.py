# -*- test-case-name: tests.metrics.test_pops -*-
"""Consumption by POP as Prometheus sees it: RocketMQ's families, and ours.

RocketMQ's: C{docs/facts/security-metrics.md 5.5}, group P. The lag of a revive queue
counts messages, as RocketMQ's does, whose name says milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rocketbroker.broker.pop.room import SCAN_BOUNDS, PopRoom
from rocketbroker.metrics.existing import ExistingNames
from rocketbroker.metrics.samples import Samples
from rocketbroker.store.interfaces import (
    CREATE_MAPPED_FILE_FAILED,
    MESSAGE_ILLEGAL,
    OS_PAGE_CACHE_BUSY,
    PROPERTIES_SIZE_EXCEEDED,
    PUT_OK,
    SERVICE_NOT_AVAILABLE,
)

#: RocketMQ's names of what became of an append.
_STATUSES: Final = {
    PUT_OK: "PUT_OK",
    MESSAGE_ILLEGAL: "MESSAGE_ILLEGAL",
    PROPERTIES_SIZE_EXCEEDED: "PROPERTIES_SIZE_EXCEEDED",
    SERVICE_NOT_AVAILABLE: "SERVICE_NOT_AVAILABLE",
    CREATE_MAPPED_FILE_FAILED: "CREATE_MAPPED_FILE_FAILED",
    OS_PAGE_CACHE_BUSY: "OS_PAGE_CACHE_BUSY",
}

_KINDS: Final = {True: "CK", False: "ACK"}


def status_name(status: int) -> str:
    """RocketMQ's name of what became of an append."""
    return _STATUSES.get(status, "UNKNOWN_ERROR")


def add_pops(
    samples: Samples, pop: PopRoom, now_ms: int, existing: ExistingNames
) -> Iterator[None]:
    """Add the families of POP."""
    written = samples.counters(
        "rocketmq_pop_revive_in_message_total",
        "check points and acknowledgements that were stored",
    )
    for (group, topic, is_point, status), count in list(pop.log.written.items()):
        yield
        if not existing.both(group, topic):
            continue
        labels = samples.labels(
            consumer_group=group,
            topic=topic,
            revive_message_type=_KINDS[is_point],
            put_status=status_name(status),
        )
        written.add(labels, count)
    read = samples.counters(
        "rocketmq_pop_revive_out_message_total",
        "check points and acknowledgements that were read again",
    )
    for (group, topic, queue_id, is_point), count in list(pop.revive.read.items()):
        yield
        if not existing.both(group, topic):
            continue
        labels = samples.labels(
            consumer_group=group,
            topic=topic,
            queue_id=str(queue_id),
            revive_message_type=_KINDS[is_point],
        )
        read.add(labels, count)
    revived = samples.counters(
        "rocketmq_pop_revive_retry_messages_total", "messages given out again"
    )
    for (group, topic, status), count in list(pop.revive.revived.items()):
        yield
        if not existing.both(group, topic):
            continue
        labels = samples.labels(
            consumer_group=group, topic=topic, put_status=status_name(status)
        )
        revived.add(labels, count)
    _add_revive_queues(samples, pop, now_ms)
    _add_totals(samples, pop)


def _add_revive_queues(samples: Samples, pop: PopRoom, now_ms: int) -> None:
    lag = samples.gauges(
        "rocketmq_pop_revive_lag_milliseconds",
        "messages of a revive queue that are not worked off",
    )
    latency = samples.gauges(
        "rocketmq_pop_revive_latency_milliseconds",
        "for how long the oldest open check point has been due",
    )
    for queue in pop.revive.queues:
        labels = samples.labels(queue_id=str(queue.queue.queue_id))
        oldest = queue.oldest()
        first = queue.next_offset if oldest is None else oldest.offset
        lag.add(labels, max(0, queue.queue.max_offset - first))
        due = now_ms if oldest is None else oldest.point.revive_ms
        latency.add(labels, max(0, now_ms - due))


def _add_totals(samples: Samples, pop: PopRoom) -> None:
    samples.gauge(
        "rocketmq_pop_offset_buffer_size",
        "check points whose offsets are not committed",
        pop.progress.size(),
    )
    samples.gauge(
        "rocketmq_pop_checkpoint_buffer_size",
        "check points that are not in the log",
        len(pop.buffer),
    )
    samples.histogram(
        "rocketmq_pop_buffer_scan_time_consume_milliseconds",
        "how long looks at them took",
        SCAN_BOUNDS,
        pop.scans,
        pop.scan_ms,
    )
    for name, words, value in (
        ("rocketbroker_pops_total", "pops that came", pop.pop_requests.requests),
        (
            "rocketbroker_pops_found_total",
            "pops that were answered with messages",
            pop.pop_requests.found,
        ),
        (
            "rocketbroker_pops_woken_total",
            "pops that waited and were woken",
            pop.pops.woken,
        ),
        (
            "rocketbroker_pops_expired_total",
            "pops that waited in vain",
            pop.pops.expired,
        ),
        (
            "rocketbroker_pops_refused_total",
            "pops for which there was no room to wait",
            pop.pops.refused,
        ),
        (
            "rocketbroker_pop_merged_total",
            "check points acknowledged in memory",
            pop.buffer.merged,
        ),
        (
            "rocketbroker_pop_retries_total",
            "check points tried again to store",
            pop.buffer.failures,
        ),
        (
            "rocketbroker_pop_re_put_total",
            "messages that could not be revived",
            pop.revive.re_put,
        ),
        (
            "rocketbroker_pop_lost_total",
            "messages gone before they could be revived",
            pop.revive.lost,
        ),
    ):
        samples.counter(name, words, value)
    samples.gauge("rocketbroker_pops_waiting", "pops that wait", pop.pops.held)
    samples.gauge(
        "rocketbroker_pop_notifications_waiting",
        "notifications that wait",
        pop.notified.held,
    )
