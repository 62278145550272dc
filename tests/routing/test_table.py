"""The name server's tables."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import SystemFailure
from rocketbroker.routing import lookup
from rocketbroker.routing.registration import MinBrokerChange, Registered
from rocketbroker.routing.table import (
    MAX_GROUPS,
    MAX_MEMBERS,
    STEP_TOPICS,
    RouteTable,
)
from rocketbroker.wire.bodies.mappings import TopicQueueMappingInfo
from rocketbroker.wire.bodies.routes import QueueData
from rocketbroker.wire.bodies.topics import DataVersion
from rocketbroker.wire.steps import finished
from tests.routing.samples import leaving, registered, registration, topics


def permissions(table: RouteTable, topic: str) -> dict[str, int]:
    """The permission of a topic at each broker."""
    return {name: one.perm for name, one in table.topics.get(topic, {}).items()}


class RegistrationTests(SynchronousTestCase):
    """L{RouteTable.register}: who and where."""

    def setUp(self) -> None:
        """An empty table."""
        self.table = RouteTable()

    def test_master(self) -> None:
        """A master appears with its topics, alive."""
        result = registered(self.table, registration(zone="z", channel="x"), 1000)
        self.assertEqual(result, Registered())
        self.assertEqual(list(self.table.clusters["c1"]), ["b1"])
        group = self.table.groups["b1"]
        self.assertEqual(
            (group.cluster, group.addresses, group.zone), ("c1", {0: "b1-0:1"}, "z")
        )
        self.assertEqual(
            self.table.topics["T1"]["b1"],
            QueueData(
                broker_name="b1",
                read_queue_nums=8,
                write_queue_nums=8,
                perm=6,
                topic_sys_flag=0,
            ),
        )
        live = self.table.live["c1", "b1-0:1"]
        self.assertEqual((live.updated_ms, live.timeout_ms), (1000, 120_000))
        self.assertEqual((live.channel, live.ha_address), ("x", "b1-0:2"))

    def test_oneTopic(self) -> None:
        """An unknown broker with exactly one topic is refused, and leaves traces."""
        one = registration(has=topics("T1"))
        self.assertIsNone(finished(self.table.registering(one, 0)))
        self.assertEqual(list(self.table.clusters["c1"]), ["b1"])
        self.assertEqual(self.table.groups["b1"].addresses, {})
        self.assertEqual((self.table.topics, self.table.live), ({}, {}))

    def test_oneTopicOfAKnownBroker(self) -> None:
        """A known broker may register a single topic."""
        registered(self.table, registration())
        registered(self.table, registration(has=topics("T3"), counter=2))
        self.assertEqual(set(self.table.topics), {"T1", "T2", "T3"})

    def test_noTopics(self) -> None:
        """An unknown broker without any topic is accepted."""
        registered(self.table, registration(has={}))
        self.assertEqual(self.table.groups["b1"].addresses, {0: "b1-0:1"})

    def test_promoted(self) -> None:
        """An address has one id in its group: the last it registered."""
        registered(self.table, registration(broker_id=1, address="a:1"))
        registered(self.table, registration(broker_id=0, address="a:1"))
        self.assertEqual(self.table.groups["b1"].addresses, {0: "a:1"})

    def test_newcomerWins(self) -> None:
        """Another address takes an id over, if its state version is not older."""
        registered(self.table, registration(address="a:1", state=3, counter=9))
        registered(self.table, registration(address="b:1", state=3, counter=1))
        self.assertEqual(self.table.groups["b1"].addresses, {0: "b:1"})
        self.assertIn(("c1", "a:1"), self.table.live)

    def test_olderNewcomer(self) -> None:
        """An older state version loses, and is told success."""
        registered(self.table, registration(address="a:1", state=3))
        result = registered(self.table, registration(address="b:1", state=2))
        self.assertEqual(result, Registered(rival="a:1"))
        self.assertEqual(self.table.groups["b1"].addresses, {0: "a:1"})
        self.assertNotIn(("c1", "b:1"), self.table.live)

    def test_olderNewcomerOfADeadBroker(self) -> None:
        """An older state version wins against somebody who is not alive."""
        registered(self.table, registration(address="a:1", state=3))
        del self.table.live["c1", "a:1"]
        registered(self.table, registration(address="b:1", state=2))
        self.assertEqual(self.table.groups["b1"].addresses, {0: "b:1"})

    def test_sameNameInTwoClusters(self) -> None:
        """The first cluster keeps the group; both list the name."""
        registered(self.table, registration())
        registered(self.table, registration(cluster="c2", address="x:1"))
        self.assertEqual(self.table.groups["b1"].cluster, "c1")
        self.assertEqual(list(self.table.clusters), ["c1", "c2"])

    def test_slaveIsToldItsMaster(self) -> None:
        """A slave is told where its living master is."""
        registered(self.table, registration())
        slave = registration(broker_id=1)
        self.assertEqual(
            registered(self.table, slave),
            Registered(master_address="b1-0:1", ha_address="b1-0:2"),
        )
        del self.table.live["c1", "b1-0:1"]
        self.assertEqual(registered(self.table, slave), Registered())

    def test_filterServers(self) -> None:
        """Filter servers are stored, left alone for null, and forgotten for none."""
        for filters, known in (
            (("f:1",), ("f:1",)),
            (None, ("f:1",)),
            ((), None),
        ):
            registered(self.table, registration(filters=filters))
            self.assertEqual(self.table.filter_servers.get(("c1", "b1-0:1")), known)


class TopicTests(SynchronousTestCase):
    """L{RouteTable.register}: which topics."""

    def setUp(self) -> None:
        """A table with a master."""
        self.table = RouteTable()
        registered(self.table, registration())

    def test_slavesHaveNone(self) -> None:
        """A slave's topics do not count while there is a master."""
        registered(self.table, registration(broker_id=1, has=topics("T8", "T9")))
        self.assertNotIn("T9", self.table.topics)

    def test_primeSlave(self) -> None:
        """Without master the least slave's topics count, read-only if it may act."""
        for acting, perm in ((True, 4), (False, 6)):
            table = RouteTable()
            registered(table, registration(broker_id=1, acting=acting))
            registered(
                table, registration(broker_id=2, acting=acting, has=topics("T8", "T9"))
            )
            self.assertEqual(permissions(table, "T1"), {"b1": perm})
            self.assertNotIn("T9", table.topics)

    def test_oldSlave(self) -> None:
        """A slave that is too old to say whether it may act has no topics."""
        table = RouteTable()
        registered(table, registration(broker_id=1, acting=None))
        self.assertEqual(table.topics, {})

    def test_unchangedVersion(self) -> None:
        """With an unchanged data version only missing topics are entered."""
        changed = {**topics("T1", perm=4), **topics("T3")}
        registered(self.table, registration(has=changed))
        self.assertEqual(permissions(self.table, "T1"), {"b1": 6})
        self.assertEqual(permissions(self.table, "T3"), {"b1": 6})
        registered(self.table, registration(has=changed, counter=2))
        self.assertEqual(permissions(self.table, "T1"), {"b1": 4})

    def test_topicsStay(self) -> None:
        """A topic that a broker no longer names stays in its route."""
        registered(self.table, registration(has=topics("T1", "T3"), counter=2))
        self.assertEqual(set(self.table.topics), {"T1", "T2", "T3"})

    def test_dropMissing(self) -> None:
        """They go where the setting says so, from this broker only."""
        registered(self.table, registration("b2", has=topics("T1", "T2")))
        new = registration(has=topics("T1", "T3"), counter=2)
        registered(self.table, new, drop_missing=True)
        self.assertEqual(set(self.table.topics["T2"]), {"b2"})
        registered(
            self.table,
            registration("b2", has=topics("T1", "T3"), counter=2),
            drop_missing=True,
        )
        self.assertNotIn("T2", self.table.topics)

    def test_dropMissingWithMappings(self) -> None:
        """A broker with any static topic loses no topics."""
        info = TopicQueueMappingInfo(topic="S", bname="b1")
        new = registration(has=topics("T1", "T3"), mappings={"S": info}, counter=2)
        registered(self.table, new, drop_missing=True)
        self.assertIn("T2", self.table.topics)

    def test_mappings(self) -> None:
        """Mappings are taken with a new data version, by broker name."""
        one = TopicQueueMappingInfo(topic="S", bname="b1", epoch=1)
        two = TopicQueueMappingInfo(topic="S", bname="b1", epoch=2)
        nobody = TopicQueueMappingInfo(topic="S")
        registered(self.table, registration(mappings={"S": one}))
        self.assertEqual(self.table.mappings, {})
        registered(self.table, registration(mappings={"S": one}, counter=2))
        registered(self.table, registration(mappings={"S": two}, counter=2))
        self.assertEqual(self.table.mappings, {"S": {"b1": one}})
        registered(self.table, registration(mappings={"S": nobody}, counter=3))
        self.assertEqual(self.table.mappings, {"S": {"b1": one}})


class StepTests(SynchronousTestCase):
    """What looks at each topic does it a few at a time."""

    def setUp(self) -> None:
        """A broker with many topics."""
        self.table = RouteTable()
        self.count = 3 * STEP_TOPICS
        self.many = topics(*(f"T{number}" for number in range(self.count)))

    def register_other(self) -> None:
        """One of them is another broker's, too."""
        registered(self.table, registration("b2", has=topics("T1", "U")))

    def test_registration(self) -> None:
        """Each step enters some; what went meanwhile is no harm, and the broker is
        alive when all are there."""
        steps = self.table.registering(registration(has=self.many), 0)
        for _ in range(2):
            next(steps)
        self.assertEqual(len(self.table.topics), 2 * STEP_TOPICS)
        self.assertEqual(self.table.live, {})
        self.table.delete_topic("T0")
        self.assertEqual(finished(steps), Registered())
        self.assertEqual(len(self.table.topics), self.count - 1)
        self.assertEqual(list(self.table.live), [("c1", "b1-0:1")])

    def test_removals(self) -> None:
        """The same holds where a broker goes, or has fewer topics, or other
        permissions."""
        registered(self.table, registration(has=self.many))
        self.register_other()
        fewer = registration(has=topics("T0", "T5"), counter=2)
        steps = self.table.registering(fewer, 0, drop_missing=True)
        next(steps)
        self.table.delete_topic("T100")
        self.assertEqual(finished(steps), Registered())
        self.assertEqual(set(self.table.topics), {"T0", "T1", "T5", "U"})
        self.assertEqual(permissions(self.table, "T1"), {"b2": 6})
        registered(self.table, registration(has=self.many, counter=3))
        wiping = self.table.wiping_write("b1")
        next(wiping)
        self.table.delete_topic("T100")
        self.assertEqual(finished(wiping), self.count - 1)
        going = self.table.unregistering([leaving()])
        next(going)
        self.table.delete_topic("T101")
        self.assertEqual(finished(going), [])
        self.assertEqual(set(self.table.topics), {"T1", "U"})

    def test_routesAreWholeBetweenSteps(self) -> None:
        """Before each step a route has each topic as before the work, or as after."""
        infos = {name: TopicQueueMappingInfo(bname="b1") for name in self.many}
        registered(self.table, registration(broker_id=1, has=self.many, acting=True))
        self.register_other()
        master = registration(
            has=topics(*self.many, flag=2), mappings=infos, acting=True, counter=2
        )
        slave, whole, reduced = (4, 0, False), (6, 2, True), (4, 2, True)
        for steps, before, after in (
            (self.table.registering(master, 0), slave, whole),
            (self.table.unregistering([leaving()]), whole, reduced),
        ):
            seen = set()
            for _ in steps:
                for name in self.many:
                    seen.add(self.shown(name))
            self.assertLessEqual(seen, {before, after})
            self.assertIn(after, seen)
        for _ in self.table.unregistering([leaving(broker_id=1)]):
            for name in self.many:
                self.assertIsNone(self.shown(name))

    def shown(self, topic: str) -> tuple[int, int, bool] | None:
        """What a route says of a topic at b1: permission, flag, and whether there is a
        mapping; None if it has none there."""
        route = lookup.route(self.table, topic)
        if route is None:
            return None
        names = [queues.broker_name for queues in route.queue_datas]
        self.assertEqual(names, [one.broker_name for one in route.broker_datas])
        for queues in route.queue_datas:
            if queues.broker_name == "b1":
                mappings = route.topic_queue_mapping_by_broker
                return queues.perm, queues.topic_sys_flag, mappings is not None
        return None

    def test_tooManyBrokers(self) -> None:
        """A name has so many brokers, and a table so many names; those that are there
        may register again."""
        for number in range(MAX_MEMBERS):
            registered(self.table, registration("b", number))
        for number in range(MAX_GROUPS - 1):
            registered(self.table, registration(f"b{number}", has={}))
        registered(self.table, registration("b", 5))
        for other in (registration("b", MAX_MEMBERS), registration("c")):
            steps = self.table.registering(other, 0)
            error = self.assertRaises(SystemFailure, finished, steps)
            self.assertIn("the most", str(error))
        self.assertEqual(len(self.table.groups), MAX_GROUPS)


class UnregistrationTests(SynchronousTestCase):
    """L{RouteTable.unregister}."""

    def setUp(self) -> None:
        """A table with a master, its slaves, and another broker."""
        self.table = RouteTable()
        for number in (0, 1, 2):
            registered(self.table, registration(broker_id=number, acting=True))
        registered(self.table, registration("b2", has=topics("T2", "T3")))

    def test_last(self) -> None:
        """With the last of a name go the name, its topics and its cluster."""
        table = RouteTable()
        registered(table, registration(filters=("f",)))
        self.assertEqual(finished(table.unregistering([leaving()])), [])
        for left in (
            table.live,
            table.groups,
            table.clusters,
            table.topics,
            table.filter_servers,
        ):
            self.assertEqual(left, {})

    def test_othersStay(self) -> None:
        """Topics stay with the brokers that still have them."""
        finished(
            self.table.unregistering([leaving("b1", number) for number in (0, 1, 2)])
        )
        self.assertEqual(set(self.table.topics), {"T2", "T3"})
        self.assertEqual(set(self.table.topics["T2"]), {"b2"})

    def test_masterLeaves(self) -> None:
        """A group that may act without master becomes read-only, and is told."""
        changes = finished(self.table.unregistering([leaving()]))
        self.assertEqual(permissions(self.table, "T2"), {"b1": 4, "b2": 6})
        self.assertEqual(
            changes,
            [
                MinBrokerChange(
                    name="b1",
                    broker_id=1,
                    address="b1-1:1",
                    offline_address="b1-0:1",
                    ha_address=None,
                    recipients=("b1-1:1", "b1-2:1"),
                )
            ],
        )

    def test_masterOfAPlainGroupLeaves(self) -> None:
        """A group that may not act stays writable, and nobody is told."""
        table = RouteTable()
        registered(table, registration())
        registered(table, registration(broker_id=1))
        self.assertEqual(finished(table.unregistering([leaving()])), [])
        self.assertEqual(permissions(table, "T1"), {"b1": 6})

    def test_slaveLeaves(self) -> None:
        """A slave leaves without consequences."""
        self.assertEqual(finished(self.table.unregistering([leaving(broker_id=2)])), [])
        self.assertEqual(self.table.groups["b1"].addresses.keys(), {0, 1})
        self.assertEqual(permissions(self.table, "T1"), {"b1": 6})

    def test_byAddress(self) -> None:
        """What counts is the address, not the id."""
        finished(self.table.unregistering([leaving(broker_id=7, address="b1-2:1")]))
        self.assertEqual(self.table.groups["b1"].addresses.keys(), {0, 1})

    def test_withoutId(self) -> None:
        """Without an id the address goes too, and those after it as well."""
        both = [leaving(broker_id=None, address="b1-0:1"), leaving("b2")]
        finished(self.table.unregistering(both))
        self.assertEqual(self.table.groups["b1"].addresses.keys(), {1, 2})
        self.assertNotIn("b2", self.table.groups)

    def test_unknown(self) -> None:
        """Unknown names change nothing."""
        self.assertEqual(finished(self.table.unregistering([leaving("b9")])), [])
        self.assertEqual(set(self.table.groups), {"b1", "b2"})

    def test_otherCluster(self) -> None:
        """A name leaves the set of the cluster that the request names."""
        finished(self.table.unregistering([leaving("b2", cluster="c9")]))
        self.assertNotIn("b2", self.table.groups)
        self.assertIn("b2", self.table.clusters["c1"])

    def test_allAtOnce(self) -> None:
        """A group whose last member leaves in the same batch is told nothing."""
        changes = finished(
            self.table.unregistering([leaving("b1", number) for number in (0, 1, 2)])
        )
        self.assertEqual(changes, [])


class LeastIdTests(SynchronousTestCase):
    """Whom to tell that the least id of a group has changed, when somebody comes."""

    def test_first(self) -> None:
        """The first of a group changes nothing."""
        table = RouteTable()
        self.assertIsNone(registered(table, registration(broker_id=1)).change)

    def test_lower(self) -> None:
        """A lower id is told to the others."""
        table = RouteTable()
        registered(table, registration(broker_id=2))
        registered(table, registration(broker_id=3))
        self.assertEqual(
            registered(table, registration(broker_id=1)).change,
            MinBrokerChange(
                name="b1",
                broker_id=1,
                address="b1-1:1",
                offline_address=None,
                ha_address="b1-1:2",
                recipients=("b1-2:1", "b1-3:1"),
            ),
        )

    def test_alone(self) -> None:
        """One that takes a lower id and is alone is told itself."""
        table = RouteTable()
        registered(table, registration(broker_id=2, address="a:1"))
        change = registered(table, registration(broker_id=1, address="a:1")).change
        assert change is not None
        self.assertEqual(change.recipients, ("a:1",))


class LivenessTests(SynchronousTestCase):
    """Who is alive."""

    def setUp(self) -> None:
        """Two brokers, of which one said how long it may be silent."""
        self.table = RouteTable()
        registered(self.table, registration(channel="x"), 1000)
        registered(self.table, registration("b2", timeout_ms=10, channel="x"), 1000)

    def test_expired(self) -> None:
        """A broker is gone when it was silent for longer than its time."""
        self.assertEqual(self.table.expired(1010), [])
        self.assertEqual(self.table.expired(1011), [(("c1", "b2-0:1"), "x")])
        self.assertEqual(len(self.table.expired(121_000)), 1)
        self.assertEqual(len(self.table.expired(121_001)), 2)

    def test_heard(self) -> None:
        """Any sign of life counts; from a stranger it does not."""
        self.table.heard("c1", "b2-0:1", 1010)
        self.table.heard("c1", "stranger", 1010)
        self.assertEqual(self.table.expired(1020), [])
        self.assertEqual(len(self.table.live), 2)

    def test_ofChannel(self) -> None:
        """Of a channel the first broker is found, and none of another channel."""
        self.assertEqual(self.table.of_channel("x"), ("c1", "b1-0:1"))
        self.assertIsNone(self.table.of_channel("y"))

    def test_newChannel(self) -> None:
        """A broker belongs to the channel of its latest registration."""
        registered(self.table, registration(channel="y"), 1000)
        self.assertEqual(self.table.of_channel("x"), ("c1", "b2-0:1"))

    def test_unregistration(self) -> None:
        """An address leads to what unregisters it."""
        self.assertEqual(
            self.table.unregistrations([("c1", "b2-0:1")]), [leaving("b2")]
        )

    def test_unregistrationOfNobody(self) -> None:
        """A live entry that is in no group is forgotten."""
        registered(self.table, registration(address="new:1"))
        self.assertEqual(self.table.unregistrations([("c1", "b1-0:1")]), [])
        self.assertNotIn(("c1", "b1-0:1"), self.table.live)

    def test_dataVersion(self) -> None:
        """The version is that of the latest registration."""
        self.assertIsNone(self.table.data_version("c1", "stranger"))
        registered(self.table, registration(counter=5))
        self.assertEqual(
            self.table.data_version("c1", "b1-0:1"),
            DataVersion(state_version=0, timestamp=7, counter=5),
        )


class OperatorTests(SynchronousTestCase):
    """What operators change."""

    def setUp(self) -> None:
        """Two clusters with a topic in common."""
        self.table = RouteTable()
        registered(self.table, registration(has=topics("T1", "T2", perm=7)))
        registered(self.table, registration("b2", cluster="c2", has=topics("T2", "T3")))

    def test_wipe(self) -> None:
        """Wiping takes the write bit from each topic of the broker, and counts."""
        self.assertEqual(finished(self.table.wiping_write("b1")), 2)
        self.assertEqual(permissions(self.table, "T2"), {"b1": 5, "b2": 6})
        self.assertEqual(finished(self.table.wiping_write("b9")), 0)

    def test_wipedStaysWiped(self) -> None:
        """Wiped stays wiped until the data version changes."""
        finished(self.table.wiping_write("b1"))
        registered(self.table, registration(has=topics("T1", "T2", perm=7)))
        self.assertEqual(permissions(self.table, "T1"), {"b1": 5})
        registered(self.table, registration(has=topics("T1", "T2"), counter=2))
        self.assertEqual(permissions(self.table, "T1"), {"b1": 6})

    def test_add(self) -> None:
        """Adding sets exactly read and write."""
        finished(self.table.wiping_write("b1"))
        self.assertEqual(finished(self.table.adding_write("b1")), 2)
        self.assertEqual(permissions(self.table, "T1"), {"b1": 6})

    def test_delete(self) -> None:
        """A topic is deleted everywhere, or in one cluster."""
        self.table.delete_topic("T2", "c2")
        self.assertEqual(set(self.table.topics["T2"]), {"b1"})
        self.table.delete_topic("T2", "c9")
        self.table.delete_topic("T9", "c1")
        self.assertIn("T2", self.table.topics)
        self.table.delete_topic("T2", "c1")
        self.table.delete_topic("T3")
        self.table.delete_topic("T9")
        self.assertEqual(set(self.table.topics), {"T1"})

    def test_addTopic(self) -> None:
        """A topic is entered for known brokers."""
        queues = [QueueData(broker_name="b1"), QueueData(broker_name="b2")]
        self.assertTrue(self.table.add_topic("T4", queues))
        self.assertEqual(list(self.table.topics["T4"].values()), queues)

    def test_addTopicOfAStranger(self) -> None:
        """An unknown broker ends it; a topic that was there keeps those before."""
        queues = [QueueData(broker_name="b2"), QueueData(broker_name="b9")]
        self.assertFalse(self.table.add_topic("T4", queues))
        self.assertNotIn("T4", self.table.topics)
        self.assertFalse(self.table.add_topic("T1", queues))
        self.assertEqual(set(self.table.topics["T1"]), {"b1", "b2"})

    def test_addNothing(self) -> None:
        """No queues make no topic."""
        self.assertTrue(self.table.add_topic("T4", []))
        self.assertNotIn("T4", self.table.topics)
