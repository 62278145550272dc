# -*- test-case-name: tests.metrics.test_broker_families -*-
"""The store of a broker: C{docs/facts/security-metrics.md 5.4}."""

from __future__ import annotations

from typing import Final

from rocketbroker.broker.broker import Broker
from rocketbroker.metrics.samples import Samples
from rocketbroker.records.record import decode
from rocketbroker.store.interfaces import IStore

#: The labels that all samples of the store have.
DISK: Final = {"storage_type": "local", "storage_medium": "disk"}


def add_disk(samples: Samples, store: IStore) -> None:
    """Add the state of the disks, open files, and what retention removed."""
    for name, words, value in (
        (
            "rocketbroker_storage_disk_ratio",
            "used part of the commit log's disk, 0 to 1",
            store.disk_usage(),
        ),
        (
            "rocketbroker_storage_writable",
            "1 if messages can be stored, 0 if not",
            float(store.refusal() is None),
        ),
        (
            "rocketbroker_storage_running_flags",
            "the store's running flags, as the sum of RocketMQ's bits",
            store.flags.bits,
        ),
        (
            "rocketmq_storage_size_bytes",
            "bytes that are used on the store's disk, by all programs",
            store.space.queues.total - store.space.queues.usable,
        ),
        (
            "rocketbroker_storage_disk_free_bytes",
            "bytes that are free on the commit log's disk",
            store.space.log.usable,
        ),
        (
            "rocketbroker_storage_open_files",
            "files of queues, index and full segments that are open",
            len(store.open_files),
        ),
        (
            "rocketbroker_storage_open_files_limit",
            "how many of them the limit of open files allows at once",
            store.open_files.bound,
        ),
    ):
        samples.gauge(name, words, value, **DISK)
    cleaner = store.cleaner
    for name, words, value in (
        (
            "rocketbroker_commit_log_files_removed_total",
            "commit log files removed by retention",
            cleaner.removed_segments,
        ),
        (
            "rocketbroker_queue_files_removed_total",
            "consume queue and index files removed by retention",
            cleaner.removed_files,
        ),
        (
            "rocketbroker_file_removal_failures_total",
            "files that could not be removed",
            cleaner.failures,
        ),
    ):
        samples.counter(name, words, value)


def add_positions(samples: Samples, store: IStore) -> None:
    """Add how far the parts of the store are behind the log."""
    published = store.published_position
    for name, words, value in (
        (
            "rocketmq_storage_flush_behind_bytes",
            "bytes of the commit log that are not on the disk yet",
            published - store.flushed_position,
        ),
        (
            "rocketmq_storage_dispatch_behind_bytes",
            "bytes of the commit log that are not dispatched yet",
            published - store.dispatched_position,
        ),
        (
            "rocketbroker_storage_index_behind_bytes",
            "bytes of the commit log that are not in the index yet",
            store.index_behind,
        ),
        (
            "rocketbroker_storage_commit_log_bytes",
            "bytes of the commit log from its oldest segment on",
            published - store.min_position,
        ),
    ):
        samples.gauge(name, words, value, **DISK)


def add_store(samples: Samples, broker: Broker) -> None:
    """Add what the store did, and its failures."""
    store, group_commit = broker.store, broker.appends.group_commit
    for reason, count in broker.appends.batcher.refused.items():
        samples.counter(
            "rocketbroker_sends_refused_total",
            "sends refused: too many wait, the disk is slow, the message is too long, "
            "the store takes none, or there would be too few copies",
            count,
            reason=reason,
        )
    for name, words, value in (
        (
            "rocketbroker_sends_failed_total",
            "sends that could not be written",
            broker.appends.batcher.failed,
        ),
        (
            "rocketbroker_flushes_total",
            "flushes of the commit log",
            group_commit.flushes,
        ),
        (
            "rocketbroker_flush_failures_total",
            "flushes that failed",
            group_commit.failures,
        ),
        (
            "rocketbroker_store_scheduler_failures_total",
            "steps of the store's regular work that failed",
            broker.storage.scheduler.failures,
        ),
        (
            "rocketbroker_index_failures_total",
            "writes of the index that failed",
            store.index_failures,
        ),
        (
            "rocketbroker_corrupt_records_total",
            "corrupt records found, which consumers do not get",
            store.corrupt_records,
        ),
        (
            "rocketbroker_discarded_bytes_total",
            "bytes of the commit log that recovery discarded",
            store.discarded_bytes,
        ),
        (
            "rocketbroker_long_polling_woken_total",
            "held pulls that a message woke",
            broker.pull.long_polling.woken,
        ),
        (
            "rocketbroker_cold_pulls_total",
            "pulls that waited for a read of the disk",
            broker.pull.pulling.cold_pulls,
        ),
    ):
        samples.counter(name, words, value)


def first_store_time(store: IStore) -> int:
    """I{Blocking.} When the oldest record was stored; -1 if there is none."""
    record = store.record_at(store.min_position)
    return -1 if record is None else decode(record).store_ms


def add_oldest(samples: Samples, oldest: int, now: int) -> None:
    """Add the age of the oldest message, where one was read."""
    if oldest > 0:
        samples.gauge(
            "rocketmq_storage_message_reserve_time_milliseconds",
            "age of the oldest message in the commit log",
            max(0, now - oldest),
            **DISK,
        )


def add_followers(samples: Samples, broker: Broker) -> None:
    """Add the plug-ins that follow the log."""
    for follower in broker.storage.log_subscribers.all:
        samples.gauge(
            "rocketbroker_follower_behind_bytes",
            "bytes of the commit log that a follower has not seen yet",
            follower.behind_bytes(),
            follower=follower.name,
        )
        samples.counter(
            "rocketbroker_follower_failures_total",
            "times that a follower failed",
            follower.failures,
            follower=follower.name,
        )
        samples.counter(
            "rocketbroker_follower_lost_bytes_total",
            "bytes removed, or corrupt, before a follower saw them",
            follower.lost_bytes,
            follower=follower.name,
        )
