"""Masters and slaves in Prometheus's terms."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.metrics.replica_families import add_replicas
from rocketbroker.metrics.samples import Samples
from rocketbroker.wire.codes import RequestCode
from tests.broker.rig import Rig, send_ext
from tests.metrics.scraped import parsed


class ReplicaFamiliesTests(SynchronousTestCase):
    """Counters in, samples out."""

    def rig(self, **settings: str) -> Rig:
        """A broker with a message."""
        rig = Rig(settings)
        self.addCleanup(rig.close)
        if "brokerRole" not in settings:
            rig.topic("T")
            rig.ask(RequestCode.SEND_MESSAGE_V2, send_ext(), b"body")
        return rig

    def values(self, rig: Rig) -> dict[tuple[str, ...], float]:
        """All samples, by name without its beginning, and labels."""
        samples = Samples({})
        add_replicas(samples, rig.broker, rig.wall_ms())
        return {
            (s.name.removeprefix("rocketbroker_"), *s.labels.values()): s.value
            for family in parsed(samples)
            for s in family.samples
        }

    def test_master(self) -> None:
        """A master alone has its own copy, and wants no more."""
        values = self.values(self.rig())
        self.assertEqual(values["role", "master"], 1)
        self.assertEqual(values["role", "slave"], 0)
        self.assertEqual(values["copies_wanted",], 1)
        self.assertEqual(values["copies_in_sync",], 1)
        self.assertEqual(values["slaves_connected",], 0)
        self.assertEqual(values["sends_timed_out_total", "copies"], 0)
        self.assertNotIn(("master_link_up",), values)

    def test_slaves(self) -> None:
        """Of each host the slave that is behind most, in bytes, and in time since it
        last had all."""
        rig = self.rig()
        end = rig.store.published_position
        rig.replicas.report(end, end - 5, -1)
        first, second, third = rig.replicas.replicas
        second.address = first.address.replace("5678", "9")
        second.caught_up_ms = rig.wall_ms() - 1500
        second.bytes_per_second = 7
        values = self.values(rig)
        host, new = first.address.partition(":")[0], third.address.partition(":")[0]
        self.assertEqual(values["slaves_connected",], 3)
        self.assertEqual(values["slave_lag_bytes", host], 5)
        self.assertEqual(values["slave_lag_milliseconds", host], 1500)
        self.assertEqual(values["slave_bytes_per_second", host], 7)
        self.assertEqual(values["slave_lag_bytes", new], end + 1)
        self.assertNotIn(("slave_lag_milliseconds", new), values)
        second.acked = end
        self.assertEqual(self.values(rig)["slave_lag_milliseconds", host], 0)

    def test_slave(self) -> None:
        """A slave's link, and how far behind it is as soon as it knows."""
        rig = self.rig(brokerRole="SLAVE", brokerId="1")
        rig.link.received, rig.link.last_read_ms = 77, 5000
        values = self.values(rig)
        self.assertEqual(values["role", "slave"], 1)
        self.assertEqual(values["master_link_up",], 0)
        self.assertEqual(values["master_received_bytes_total",], 77)
        self.assertEqual(values["master_heard_timestamp_seconds",], 5)
        self.assertEqual(values["metadata_copied_timestamp_seconds", "topics"], 0)
        self.assertEqual(values["metadata_copy_failures_total", "groups"], 0)
        self.assertNotIn(("master_behind_bytes",), values)
        self.assertNotIn(("copies_wanted",), values)
        rig.link.state = "TRANSFER"
        rig.broker.replicas.progress.master_end = 9
        rig.broker.replicas.progress.caught_up_ms = rig.wall_ms()
        values = self.values(rig)
        self.assertEqual(values["master_link_up",], 1)
        self.assertEqual(values["master_behind_bytes",], 9)
        self.assertEqual(values["master_behind_milliseconds",], 0)
        rig.link.problem = "The logs differ."
        self.assertEqual(self.values(rig)["master_link_up",], 0)
