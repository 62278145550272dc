# -*- test-case-name: tests.metrics.test_timers -*-
"""Timers as Prometheus sees them: RocketMQ's families, and ours.

RocketMQ's: C{docs/facts/security-metrics.md 5.4}. The latency of delivery is in
seconds, whatever its name says.
"""

from __future__ import annotations

from collections.abc import Iterator

from rocketbroker.broker.timer.timer_counts import DELAY_BOUNDS
from rocketbroker.broker.timer.timer_service import TimerService
from rocketbroker.metrics.existing import ExistingNames
from rocketbroker.metrics.samples import Samples
from rocketbroker.metrics.store_families import DISK


def add_timers(
    samples: Samples, timers: TimerService, existing: ExistingNames
) -> Iterator[None]:
    """Add the families of timers, if they are switched on."""
    if not timers.is_on:
        return
    waiting = samples.gauges("rocketmq_timing_messages", "messages that wait")
    entered = samples.counters(
        "rocketmq_timer_enqueue_total", "messages that came to wait for their time"
    )
    delivered = samples.counters(
        "rocketmq_timer_dequeue_total", "messages delivered, or entered anew"
    )
    delays = samples.histograms(
        "rocketmq_delay_message_latency_seconds",
        "seconds from the birth of a message to its time",
        DELAY_BOUNDS,
    )
    for topic, counts in list(timers.counts.topics.items()):
        yield
        if not existing.topic(topic):
            continue
        labels = samples.labels(topic=topic, **DISK)
        waiting.add(labels, counts.waiting)
        entered.add(labels, counts.entered)
        delivered.add(labels, counts.delivered)
        if counts.entered:
            delays.add(labels, counts.delays, counts.seconds)
    add_totals(samples, timers)


def add_totals(samples: Samples, timers: TimerService) -> None:
    """Add how far the timers are, and what went wrong."""
    entering, delivering, outlet = timers.entering, timers.delivering, timers.outlet
    behind_ms = timers.read_behind_ms()
    for name, words, value in (
        (
            "rocketmq_timer_enqueue_lag",
            "messages that are not in the timer wheel yet",
            entering.behind(),
        ),
        (
            "rocketmq_timer_enqueue_latency_milliseconds",
            "how long the message had waited that was entered last",
            timers.enqueue_latency_ms(),
        ),
        (
            "rocketmq_timer_dequeue_lag",
            "messages in the timer wheel",
            timers.timers.wheel.pending,
        ),
        (
            "rocketmq_timer_dequeue_latency_milliseconds",
            "seconds by which delivery is behind",
            behind_ms // 1000,
        ),
    ):
        samples.gauge(name, words, value, **DISK)
    for bound, count in timers.snapshot().items():
        samples.gauge(
            "rocketmq_timer_message_snapshot",
            "messages that are due within so many seconds, and not within the bound "
            "before",
            count,
            timer_bound_s=str(bound),
            **DISK,
        )
    for name, words, value in (
        (
            "rocketbroker_timer_lost_total",
            "timer messages that retention removed before they were due",
            delivering.lost,
        ),
        (
            "rocketbroker_timer_unreadable_total",
            "timer messages that cannot be read, or have no time or topic",
            entering.unreadable + outlet.unreadable,
        ),
        (
            "rocketbroker_timer_refused_total",
            "timer messages that are too large for the store",
            outlet.refused,
        ),
        (
            "rocketbroker_timer_retries_total",
            "steps of timers that the store refused and that were tried again",
            entering.failures + delivering.failures,
        ),
        (
            "rocketbroker_timer_checkpoint_failures_total",
            "checkpoints of timers that the disk refused",
            timers.flush_failures,
        ),
    ):
        samples.counter(name, words, value)
