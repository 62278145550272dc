"""Routes for clients that stay in their zone."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.routing import lookup
from rocketbroker.routing.table import RouteTable
from rocketbroker.routing.zones import in_zone
from rocketbroker.wire.steps import finished
from tests.routing.samples import leaving, registered, registration


class ZoneTests(SynchronousTestCase):
    """L{in_zone}."""

    def test_zone(self) -> None:
        """Brokers of the zone stay, and those without master; queues go with them."""
        table = RouteTable()
        registered(table, registration("b1", zone="East", filters=("f",)))
        registered(table, registration("b2", zone="west", filters=("f",)))
        registered(table, registration("b3", filters=("f",)))
        registered(table, registration("b4", zone="west"))
        registered(table, registration("b4", 1, zone="west"))
        finished(table.unregistering([leaving("b4")]))
        route = lookup.route(table, "T1")
        assert route is not None
        kept = in_zone(route, "EAST")
        self.assertEqual([one.broker_name for one in kept.broker_datas], ["b1", "b4"])
        self.assertEqual([one.broker_name for one in kept.queue_datas], ["b1", "b4"])
        self.assertEqual(kept.filter_server_table, {"b1-0:1": ["f"]})
