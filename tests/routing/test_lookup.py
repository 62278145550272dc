"""Questions to the route table."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.routing import lookup
from rocketbroker.routing.table import RouteTable
from rocketbroker.wire.bodies.mappings import TopicQueueMappingInfo
from rocketbroker.wire.bodies.routes import BrokerData
from rocketbroker.wire.steps import finished
from tests.routing.samples import leaving, registered, registration, topics


class RouteTests(SynchronousTestCase):
    """L{lookup.route}."""

    def setUp(self) -> None:
        """Two brokers."""
        self.table = RouteTable()
        registered(self.table, registration(zone="z"))
        registered(self.table, registration("b2", has=topics("T2", "T3")))

    def test_route(self) -> None:
        """A route has the queues and the brokers of a topic."""
        route = lookup.route(self.table, "T2")
        assert route is not None
        self.assertEqual([one.broker_name for one in route.queue_datas], ["b1", "b2"])
        self.assertEqual(
            route.broker_datas[0],
            BrokerData(
                cluster="c1",
                broker_name="b1",
                broker_addrs={0: "b1-0:1"},
                zone_name="z",
            ),
        )
        self.assertEqual(route.filter_server_table, {})
        self.assertIsNone(route.topic_queue_mapping_by_broker)

    def test_unknown(self) -> None:
        """An unknown topic has none, nor one whose brokers are gone."""
        self.assertIsNone(lookup.route(self.table, "T9"))
        del self.table.groups["b1"]
        self.assertIsNone(lookup.route(self.table, "T1"))

    def test_copies(self) -> None:
        """Changing an answer does not change the table."""
        route = lookup.route(self.table, "T1")
        assert route is not None
        route.broker_datas[0].broker_addrs.clear()
        route.queue_datas.clear()
        self.assertEqual(self.table.groups["b1"].addresses, {0: "b1-0:1"})
        self.assertEqual(len(self.table.topics["T1"]), 1)

    def test_filterServers(self) -> None:
        """Filter servers stand by address, where a broker has any."""
        registered(self.table, registration("b2", filters=("f:1",)))
        route = lookup.route(self.table, "T2")
        assert route is not None
        self.assertEqual(route.filter_server_table, {"b2-0:1": ["f:1"]})

    def test_mappings(self) -> None:
        """Static topics have their mappings by broker."""
        info = TopicQueueMappingInfo(topic="T1", bname="b1")
        registered(self.table, registration(mappings={"T1": info}, counter=2))
        route = lookup.route(self.table, "T1")
        assert route is not None
        self.assertEqual(route.topic_queue_mapping_by_broker, {"b1": info})


class ActingMasterTests(SynchronousTestCase):
    """A slave shown as master."""

    def setUp(self) -> None:
        """A group that has lost its master."""
        self.table = RouteTable()
        for number in (0, 1, 2):
            registered(
                self.table,
                registration(
                    broker_id=number,
                    acting=True,
                    has=topics("T1", lookup.MEMBER_TOPIC_PREFIX + "b1"),
                ),
            )
        finished(self.table.unregistering([leaving()]))

    def addresses(self, topic: str = "T1", acting_master: bool = True) -> list[int]:
        """The ids that a route shows."""
        route = lookup.route(self.table, topic, acting_master)
        assert route is not None
        return sorted(route.broker_datas[0].broker_addrs)

    def test_acts(self) -> None:
        """The least slave is shown as master, in routes only."""
        self.assertEqual(self.addresses(), [0, 2])
        self.assertEqual(lookup.members(self.table, "b1").keys(), {1, 2})
        info = lookup.cluster_info(self.table)
        self.assertEqual(info.broker_addr_table["b1"].broker_addrs.keys(), {1, 2})

    def test_notSupported(self) -> None:
        """Not if the name server does not support it."""
        self.assertEqual(self.addresses(acting_master=False), [1, 2])

    def test_memberTopic(self) -> None:
        """Not for the topic by which brokers ask for their members."""
        self.assertEqual(self.addresses(lookup.MEMBER_TOPIC_PREFIX + "b1"), [1, 2])

    def test_writable(self) -> None:
        """Not while the queues can be written."""
        finished(self.table.adding_write("b1"))
        self.assertEqual(self.addresses(), [1, 2])

    def test_withMaster(self) -> None:
        """Not if there is a master."""
        registered(self.table, registration(acting=True))
        self.assertEqual(self.addresses(), [0, 1, 2])


class ListTests(SynchronousTestCase):
    """Lists of topics and names."""

    def setUp(self) -> None:
        """Two clusters, and topics of all flags."""
        self.table = RouteTable()
        has = {
            **topics("PLAIN"),
            **topics("UNIT", flag=1),
            **topics("SUB", flag=2),
            **topics("BOTH", flag=3),
        }
        registered(self.table, registration(has=has))
        registered(self.table, registration("b2", cluster="c2"))

    def test_clusters(self) -> None:
        """All brokers, and the names in each cluster."""
        info = lookup.cluster_info(self.table)
        self.assertEqual(set(info.broker_addr_table), {"b1", "b2"})
        self.assertEqual(info.cluster_addr_table, {"c1": ["b1"], "c2": ["b2"]})

    def test_members(self) -> None:
        """The addresses of a name, none for an unknown one."""
        self.assertEqual(lookup.members(self.table, "b1"), {0: "b1-0:1"})
        self.assertEqual(lookup.members(self.table, "b9"), {})

    def test_topicsOfCluster(self) -> None:
        """The topics of a cluster, none of an unknown one."""
        self.assertEqual(
            finished(lookup.topics_of_cluster(self.table, "c2")), ["T1", "T2"]
        )
        self.assertEqual(finished(lookup.topics_of_cluster(self.table, "c9")), [])

    def test_systemNames(self) -> None:
        """Cluster and broker names, each once, and an address."""
        registered(self.table, registration("c1", cluster="c2"))
        names, address = lookup.system_names(self.table)
        self.assertEqual(sorted(names), ["b1", "b2", "c1", "c2"])
        self.assertEqual(address, "b1-0:1")
        self.assertEqual(lookup.system_names(RouteTable()), ([], None))

    def test_units(self) -> None:
        """Topics by the two bits of their flag."""
        self.assertEqual(finished(lookup.unit_topics(self.table)), ["UNIT", "BOTH"])
        self.assertEqual(
            finished(lookup.unit_subscription_topics(self.table)), ["SUB", "BOTH"]
        )
        self.assertEqual(
            finished(lookup.only_unit_subscription_topics(self.table)), ["SUB"]
        )
