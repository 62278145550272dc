"""Metrics of workers."""

from __future__ import annotations

from typing import Any, cast

from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.metrics.samples import Samples
from rocketbroker.metrics.worker_families import add_workers
from rocketbroker.remoting.connection_group import ConnectionLimits
from rocketbroker.remoting.hub import Hub
from rocketbroker.workers.hello import WorkerLoad, WorkerSettings
from rocketbroker.workers.workers import Workers
from tests.metrics.scraped import parsed


class WorkerFamiliesTests(SynchronousTestCase):
    """What is shown of each worker."""

    def values(self, workers: Workers | None) -> dict[tuple[str, str], float]:
        """Values by name and worker."""
        samples = Samples({})
        add_workers(samples, workers)
        found = [s for family in parsed(samples) for s in family.samples]
        return {(s.name, s.labels["worker"]): s.value for s in found}

    def test_none(self) -> None:
        """Without workers there is nothing."""
        self.assertEqual(self.values(None), {})

    def test_counters(self) -> None:
        """The counters of a number are those of all its processes."""
        clock = cast(Any, MemoryReactorClock())
        hub = Hub(clock)
        self.addCleanup(hub.shut)
        settings = WorkerSettings(ConnectionLimits(), 1)
        workers = Workers(clock, hub, settings, 2, cast(Any, None))
        workers.slots[1].restarts = 3
        workers.slots[1].before = WorkerLoad(
            frames_in=1,
            sends=6,
            pulls=7,
            bytes_in=2,
            bytes_out=3,
            cpu_seconds=0.5,
            pauses=4,
        )
        values = self.values(workers)
        prefix = "rocketbroker_worker_"
        self.assertEqual(
            {name: value for (name, worker), value in values.items() if worker == "2"},
            {
                f"{prefix}up": 0,
                f"{prefix}connections": 0,
                f"{prefix}resident_memory_bytes": 0,
                f"{prefix}restarts_total": 3,
                f"{prefix}frames_relayed_total": 1,
                f"{prefix}held_pulls": 0,
                f"{prefix}sends_total": 6,
                f"{prefix}pulls_total": 7,
                f"{prefix}bytes_in_total": 2,
                f"{prefix}bytes_out_total": 3,
                f"{prefix}cpu_seconds_total": 0.5,
                f"{prefix}memory_pauses_total": 4,
            },
        )
        self.assertEqual(values[f"{prefix}restarts_total", "1"], 0)
