# -*- test-case-name: tests.metrics.test_process_families -*-
"""The process and the build: names that dashboards know from other programs."""

from __future__ import annotations

import platform

from prometheus_client import Metric
from prometheus_client.process_collector import ProcessCollector

from rocketbroker.codec.build import FORM
from rocketbroker.files.own_version import own_version
from rocketbroker.metrics.samples import Samples


def read_process() -> list[Metric]:
    """I{Blocking.} CPU, memory, descriptors and start time of this process.

    With ten thousand connections the system takes some milliseconds to list them.
    """
    return list(ProcessCollector(registry=None).collect())


def add_process(samples: Samples, found: list[Metric]) -> None:
    """Add what was read, and which build this is."""
    for metric in found:
        add = samples.counter if metric.type == "counter" else samples.gauge
        for sample in metric.samples:
            add(sample.name, metric.documentation, sample.value)
    samples.gauge(
        "rocketbroker_build_info",
        "the version of rocketbroker and of Python, and whether the codec is compiled "
        "or pure; always 1",
        1,
        version=own_version(),
        python=platform.python_version(),
        codec=FORM,
    )
