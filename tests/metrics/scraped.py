"""A scrape as Prometheus reads it."""

from __future__ import annotations

from prometheus_client.core import Metric
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from rocketbroker.metrics.existing import ExistingNames
from rocketbroker.metrics.samples import Samples
from tests.broker.rig import Rig


def parsed(samples: Samples) -> list[Metric]:
    """The families that Prometheus's parsers find; in both formats they are equal."""
    text = b"".join(samples.pieces(False)).decode()
    found = list(text_string_to_metric_families(text))
    text = b"".join(samples.pieces(True)).decode()
    others = list(openmetrics.text_string_to_metric_families(text))
    assert found == others, (found, others)
    return found


def existing(rig: Rig) -> ExistingNames:
    """The topics and groups of a broker that have samples."""
    return ExistingNames(rig.topics, rig.groups)
