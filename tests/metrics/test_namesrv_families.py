"""Tests of what a name server shows."""

from __future__ import annotations

from rocketbroker.metrics.namesrv_families import NameServerFamilies
from rocketbroker.testing.threads import at_once
from rocketbroker.wire.codes import RequestCode
from tests.metrics.scraped import parsed
from tests.nameserver.case import NameServerTestCase


class NameServerFamiliesTests(NameServerTestCase):
    """A name server with a broker, scraped."""

    def values(self) -> dict[str, float]:
        """Name to value of all samples."""
        families = NameServerFamilies(self.nameserver, {}, at_once)
        samples = self.successResultOf(families.collect(frozenset()))
        return {s.name: s.value for f in parsed(samples) for s in f.samples}

    def test_counts(self) -> None:
        """Tables by size, events by number."""
        self.register("b1", topics=("T1", "T2"))
        self.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "T1"})
        values = self.values()
        self.assertEqual(values["rocketbroker_namesrv_brokers"], 1)
        self.assertEqual(values["rocketbroker_namesrv_topics"], 2)
        self.assertEqual(values["rocketbroker_namesrv_registrations_total"], 1)
        self.assertEqual(values["rocketbroker_namesrv_routes_found_total"], 1)
        self.assertEqual(values["rocketbroker_namesrv_routes_not_found_total"], 0)
        self.assertEqual(values["rocketbroker_namesrv_scans_failed_total"], 0)
