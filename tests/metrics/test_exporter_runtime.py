"""The exporter's metrics of a broker's state."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.metrics.broker_families import BrokerFamilies
from rocketbroker.testing.threads import at_once
from tests.broker.rig import WALL_MS, Rig, send_ext
from tests.metrics.scraped import parsed

PREFIX = "rocketmq_brokeruntime_"


class ExporterRuntimeTests(SynchronousTestCase):
    """C{rocketmq_brokeruntime_*}."""

    def setUp(self) -> None:
        """A broker that shows them, and has a message."""
        self.make("true")

    def make(self, names: str) -> None:
        """A broker that has a message."""
        self.rig = Rig({"metricsExporterNames": names})
        self.addCleanup(self.rig.close)
        self.rig.topic("T")
        self.rig.ask(310, send_ext(), b"body")
        self.families = BrokerFamilies(self.rig.broker, {}, self.rig.wall_ms, at_once)

    def live(self, seconds: int) -> None:
        """Let time pass, as the broker does."""
        for _ in range(seconds):
            self.rig.clock.advance(1)
            self.rig.statistics.look()

    def scrape(self) -> dict[str, float]:
        """The values by the end of their names."""
        samples = self.families.collect(frozenset())
        while not samples.called:
            self.rig.clock.advance(0)
        found = {}
        for family in parsed(self.successResultOf(samples)):
            for sample in family.samples:
                if sample.name.startswith(PREFIX):
                    self.labels = sample.labels
                    found[sample.name.removeprefix(PREFIX)] = sample.value
        return found

    def test_off(self) -> None:
        """Without the setting there are none."""
        self.make("false")
        self.assertEqual(self.scrape(), {})

    def test_figures(self) -> None:
        """Each is a figure of request 28, with the labels of the exporter."""
        self.live(61)
        found = self.scrape()
        size = self.rig.store.published_position
        for name, value in (
            ("msg_put_total_today_now", 1),
            ("putmessage_times_total", 1),
            ("put_message_size_total", size),
            ("put_message_average_size", size),
            ("commitlog_maxoffset", size),
            ("commitlog_disk_ratio", self.rig.store.space.log.percent / 100),
            ("dispatch_behind_bytes", 0),
            ("remain_howmanydata_toflush", size),
            ("earliest_message_timestamp", WALL_MS),
            ("send_threadpoolqueue_capacity", 10_000),
            ("pmdt_0ms", 1),
            ("pmdt_10stomore", 0),
            ("commitlogdir_capacity_total", self.rig.store.space.queues.total),
        ):
            self.assertEqual(found[name], value, name)
        own = {
            "brokerIP": "10.0.0.1:10911",
            "brokerHost": "",
            "des": "V5_3_3",
            "boottime": str(WALL_MS),
            "broker_version": "479",
        }
        self.assertLessEqual(own.items(), self.labels.items())

    def test_rates(self) -> None:
        """A rate is there when its window was lived through."""
        self.live(9)
        self.assertNotIn("put_tps10", self.scrape())
        self.live(1)
        found = self.scrape()
        self.assertEqual(found["put_tps10"], 0.1)
        self.assertNotIn("put_tps60", found)
        self.live(50)
        self.assertEqual(self.scrape()["put_tps60"], 0.02)
        self.live(540)
        self.assertEqual(len(self.scrape()), 63)
