# -*- test-case-name: tests.metrics.test_worker_families -*-
"""The workers of a broker: what each says of itself once a second.

The counters of a worker's number go on when its process is another one.
"""

from __future__ import annotations

from typing import Final

from rocketbroker.metrics.samples import Samples
from rocketbroker.workers.workers import Workers

#: Counters of a worker: attribute, name, meaning.
_COUNTS: Final = (
    (
        "frames_in",
        "rocketbroker_worker_frames_relayed_total",
        "requests and responses of clients that the worker passed to the owner",
    ),
    (
        "sends",
        "rocketbroker_worker_sends_total",
        "sends that the worker has appended to the store itself",
    ),
    (
        "pulls",
        "rocketbroker_worker_pulls_total",
        "pulls that the worker has answered itself, and those that wait in it",
    ),
    (
        "bytes_in",
        "rocketbroker_worker_bytes_in_total",
        "bytes that the worker received from clients",
    ),
    (
        "bytes_out",
        "rocketbroker_worker_bytes_out_total",
        "bytes that the worker sent to clients",
    ),
    (
        "cpu_seconds",
        "rocketbroker_worker_cpu_seconds_total",
        "time that the processes of the worker took on cores",
    ),
    (
        "pauses",
        "rocketbroker_worker_memory_pauses_total",
        "times that a connection of the worker waited because its buffers took all "
        "memory they may",
    ),
)


def add_workers(samples: Samples, workers: Workers | None) -> None:
    """Add all workers; nothing where there are none."""
    if workers is None:
        return
    for slot in workers.slots:
        number, load = str(slot.number), slot.load
        samples.gauge(
            "rocketbroker_worker_up",
            "whether the worker runs",
            int(slot.link is not None),
            worker=number,
        )
        samples.gauge(
            "rocketbroker_worker_connections",
            "connections that the worker has",
            slot.connections,
            worker=number,
        )
        samples.gauge(
            "rocketbroker_worker_resident_memory_bytes",
            "memory of the worker",
            load.resident_bytes,
            worker=number,
        )
        samples.gauge(
            "rocketbroker_worker_held_pulls",
            "pulls that wait in the worker for messages",
            load.held,
            worker=number,
        )
        samples.counter(
            "rocketbroker_worker_restarts_total",
            "times that the worker was started in place of one that ended",
            slot.restarts,
            worker=number,
        )
        whole = slot.before.and_then(load)
        for attribute, name, words in _COUNTS:
            samples.counter(name, words, getattr(whole, attribute), worker=number)
