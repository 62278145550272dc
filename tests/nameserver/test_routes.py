"""What clients and operators ask."""

from __future__ import annotations

from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.wire.bodies.mappings import TopicQueueMappingInfo
from rocketbroker.wire.bodies.routes import (
    ClusterInfo,
    GetBrokerMemberGroupResponseBody,
    TopicRouteData,
)
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.fastjson import loads
from tests.nameserver.case import NameServerTestCase

ROUTE = RequestCode.GET_ROUTEINFO_BY_TOPIC
PUT = RequestCode.PUT_KV_CONFIG

#: A client of the time before standard JSON.
OLD = 400


class RouteTests(NameServerTestCase):
    """Request 105."""

    def body(self, topic: str = "T1", version: int = 479, **ext: str) -> bytes:
        """The body of a route."""
        response = self.ask(ROUTE, {"topic": topic, **ext}, version=version)
        self.assertEqual((response.code, response.remark), (0, None))
        return response.body

    def test_standardForm(self) -> None:
        """A client since 4.9.4 gets standard JSON, byte for byte."""
        info = TopicQueueMappingInfo(
            topic="T1", bname="b1", total_queues=8, epoch=123, curr_id_map={0: 0, 3: 1}
        )
        self.begin(orderMessageEnable="true")
        order = {"namespace": "ORDER_TOPIC_CONFIG", "key": "T1", "value": "b1:8"}
        self.ask(PUT, order)
        self.register(mappings={"T1": info}, __ZONE_NAME="z中/")
        self.assertEqual(
            self.body(),
            b'{"brokerDatas":[{"brokerAddrs":{"0":"b1-0:1"},"brokerName":"b1",'
            b'"cluster":"c1","enableActingMaster":false,"zoneName":"z\\u4E2D\\/"}],'
            b'"filterServerTable":{},"orderTopicConf":"b1:8",'
            b'"queueDatas":[{"brokerName":"b1","perm":6,"readQueueNums":8,'
            b'"topicSysFlag":0,"writeQueueNums":8}],'
            b'"topicQueueMappingByBroker":{"b1":{"bname":"b1",'
            b'"currIdMap":{"0":0,"3":1},"dirty":false,"epoch":123,'
            b'"scope":"__global__","topic":"T1","totalQueues":8}}}',
        )

    def test_ownForm(self) -> None:
        """An older one gets the form of RocketMQ's library."""
        self.register()
        self.register(broker_id=1)
        self.assertEqual(
            self.body(version=OLD),
            b'{"brokerDatas":[{"brokerAddrs":{0:"b1-0:1",1:"b1-1:1"},'
            b'"brokerName":"b1","cluster":"c1","enableActingMaster":false}],'
            b'"filterServerTable":{},'
            b'"queueDatas":[{"brokerName":"b1","perm":6,"readQueueNums":8,'
            b'"topicSysFlag":0,"writeQueueNums":8}]}',
        )

    def test_whichForm(self) -> None:
        """Version 401 is the first to get standard JSON; others may ask for it."""
        self.register()
        own, standard = self.body(version=OLD), self.body(version=401)
        self.assertIn(b'{0:"b1-0:1"}', own)
        self.assertIn(b'{"0":"b1-0:1"}', standard)
        self.assertEqual(self.body(version=0), own)
        self.assertEqual(self.body(version=0, acceptStandardJsonOnly="true"), standard)
        self.assertEqual(self.body(version=0, acceptStandardJsonOnly="false"), own)

    def test_notFound(self) -> None:
        """A topic that is nowhere is code 17, with a hint; so is none at all."""
        for header, name in (({"topic": "T9"}, "T9"), ({}, "null"), (None, "null")):
            self.assertEqual(
                self.refusal(ROUTE, header),
                (
                    17,
                    f"No topic route info in name server for the topic: {name}\nSee "
                    f"https://rocketmq.apache.org/docs/bestPractice/06FAQ for further "
                    f"details.",
                ),
            )
        self.assertEqual(self.nameserver.lookups.not_found, 3)

    def test_order(self) -> None:
        """The order settings are shown only where that is switched on."""
        order = {"namespace": "ORDER_TOPIC_CONFIG", "key": "T1", "value": "b1:8"}
        self.ask(PUT, order)
        self.register()
        self.assertNotIn(b"orderTopicConf", self.body())
        self.ask(RequestCode.UPDATE_NAMESRV_CONFIG, body=b"orderMessageEnable=true")
        self.assertIn(b'"orderTopicConf":"b1:8"', self.body())
        self.assertNotIn(b"orderTopicConf", self.body("T2"))

    def test_zone(self) -> None:
        """A client that stays in its zone gets it, always in the library's form."""
        self.register("b1", __ZONE_NAME="East")
        self.register("b2", __ZONE_NAME="west")
        whole = self.body()
        zone = self.body(__ZONE_MODE="TRUE", __ZONE_NAME="east")
        self.assertIn(b'{0:"b1-0:1"}', zone)
        self.assertNotIn(b"b2", zone)
        for mode, name in (("false", "east"), ("true", " ")):
            self.assertEqual(self.body(__ZONE_MODE=mode, __ZONE_NAME=name), whole)

    def test_actingMaster(self) -> None:
        """A slave is shown as master where that is switched on."""
        for number in (0, 1):
            self.register(broker_id=number, enableActingMaster="true")
        self.ask(
            RequestCode.UNREGISTER_BROKER,
            {
                "brokerName": "b1",
                "brokerAddr": "b1-0:1",
                "clusterName": "c1",
                "brokerId": "0",
            },
        )
        self.clock.advance(0)
        self.assertIn(b'{"1":"b1-1:1"}', self.body())
        self.ask(RequestCode.UPDATE_NAMESRV_CONFIG, body=b"supportActingMaster=true")
        self.assertIn(b'{"0":"b1-1:1"}', self.body())

    def test_waitForService(self) -> None:
        """Just after the start there are no routes, if that is wanted."""
        self.begin(needWaitForService="true", waitSecondsForService="45")
        self.register()
        self.clock.advance(44.999)
        self.assertEqual(
            self.refusal(ROUTE, {"topic": "T1"}), (1, "name server not ready")
        )
        self.assertFalse(self.nameserver.lookups.is_ready)
        self.clock.advance(0.001)
        self.assertTrue(self.nameserver.lookups.is_ready)
        self.assertEqual(self.ask(ROUTE, {"topic": "T1"}).code, 0)
        self.assertEqual(self.nameserver.lookups.found, 1)


class ListTests(NameServerTestCase):
    """Requests 106, 206, 224, 304, 311 to 313 and 901."""

    def test_clusters(self) -> None:
        """All brokers, in the library's form whoever asks."""
        self.register()
        response = self.ask(RequestCode.GET_BROKER_CLUSTER_INFO)
        self.assertEqual(
            response.body,
            b'{"brokerAddrTable":{"b1":{"brokerAddrs":{0:"b1-0:1"},"brokerName":"b1",'
            b'"cluster":"c1","enableActingMaster":false}},'
            b'"clusterAddrTable":{"c1":["b1"]}}',
        )

    def test_members(self) -> None:
        """The brokers of a name; the cluster is only repeated."""
        self.register()
        code = RequestCode.GET_BROKER_MEMBER_GROUP
        self.assertEqual(
            self.ask(code, {"clusterName": "x", "brokerName": "b1"}).body,
            b'{"brokerMemberGroup":{"brokerAddrs":{0:"b1-0:1"},"brokerName":"b1",'
            b'"cluster":"x"}}',
        )
        self.assertEqual(
            self.ask(code, {"clusterName": "x", "brokerName": "b9"}).body,
            b'{"brokerMemberGroup":{"brokerAddrs":{},"brokerName":"b9","cluster":"x"}}',
        )

    def test_topics(self) -> None:
        """All topics, those of a cluster, none of an unknown one."""
        self.register()
        self.assertEqual(
            self.json(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER),
            {"topicList": ["T1", "T2"]},
        )
        code = RequestCode.GET_TOPICS_BY_CLUSTER
        self.assertEqual(
            self.json(code, {"cluster": "c1"}), {"topicList": ["T1", "T2"]}
        )
        self.assertEqual(self.json(code, {"cluster": "c9"}), {"topicList": []})

    def test_systemNames(self) -> None:
        """Clusters and brokers, with an address if there is one."""
        code = RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS
        self.assertEqual(self.json(code), {"topicList": []})
        self.register()
        self.assertEqual(
            self.ask(code).body, b'{"brokerAddr":"b1-0:1","topicList":["c1","b1"]}'
        )

    def test_flags(self) -> None:
        """Topics by their flags; here nobody has any."""
        self.register()
        for code in (
            RequestCode.GET_UNIT_TOPIC_LIST,
            RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST,
            RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST,
        ):
            self.assertEqual(self.json(code), {"topicList": []})

    def test_disabled(self) -> None:
        """Lists can be switched off."""
        self.begin(enableTopicList="false", enableAllTopicList="false")
        for code in (
            RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER,
            RequestCode.GET_TOPICS_BY_CLUSTER,
            RequestCode.GET_UNIT_TOPIC_LIST,
            RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST,
            RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST,
        ):
            self.assertEqual(self.refusal(code, {"cluster": "c1"}), (1, "disable"))


class AskersTests(NameServerTestCase):
    """Brokers on this machine are where each asker found the name server."""

    def setUp(self) -> None:
        """A broker here with its slave, and one elsewhere, each with a connection."""
        super().setUp()
        self.brokers = [RecordedConnection(port=port) for port in (1, 2, 3)]
        for number, (name, broker_id) in enumerate((("b1", 0), ("b1", 1), ("b2", 0))):
            connection = self.brokers[number]
            self.register(name, broker_id, connection=connection)
        self.nameserver.lookups.follow_askers(["b1-0:1", "b1-1:1"])

    def told(self, connection: RecordedConnection) -> set[str]:
        """What an asker is told by all three requests, the same each time."""
        members = {"clusterName": "c1", "brokerName": "b1"}
        route = loads(self.ask(ROUTE, {"topic": "T1"}, connection=connection).body)
        code = RequestCode.GET_BROKER_CLUSTER_INFO
        cluster = loads(self.ask(code, connection=connection).body)
        code = RequestCode.GET_BROKER_MEMBER_GROUP
        group = loads(self.ask(code, members, connection=connection).body)
        brokers = ClusterInfo.from_json(cluster).broker_addr_table
        self.assertEqual(
            TopicRouteData.from_json(route).broker_datas, list(brokers.values())
        )
        self.assertEqual(
            GetBrokerMemberGroupResponseBody.from_json(
                group
            ).broker_member_group.broker_addrs,
            brokers["b1"].broker_addrs,
        )
        return {
            address
            for data in brokers.values()
            for address in data.broker_addrs.values()
        }

    def test_eachAskerIsToldTheAddressByWhichItCame(self) -> None:
        """Of the brokers here, the slave too; others stay where they are."""
        for local, host in (
            ("127.0.0.2", "127.0.0.2"),
            ("10.0.0.7", "10.0.0.7"),
            ("::ffff:10.0.0.7", "10.0.0.7"),
        ):
            asker = RecordedConnection(local=local)
            self.assertEqual(self.told(asker), {f"{host}:1", "b2-0:1"})

    def test_ipv6AskersAreToldWhatWasRegistered(self) -> None:
        """So is an asker whose connection does not say how it came."""
        for local in ("::1", "fd00::7", ""):
            asker = RecordedConnection(local=local)
            self.assertEqual(self.told(asker), {"b1-0:1", "b1-1:1", "b2-0:1"})

    def test_brokersAreToldWhatWasRegistered(self) -> None:
        """They look for their own address in the answers."""
        registered = RecordedConnection(local="127.0.0.1")
        self.register("b1", 0, connection=registered)
        self.assertEqual(self.told(registered), {"b1-0:1", "b1-1:1", "b2-0:1"})

    def test_withoutOwnBrokersAllStaysAsRegistered(self) -> None:
        """A name server alone answers as RocketMQ's."""
        self.nameserver.lookups.follow_askers([])
        asker = RecordedConnection(local="127.0.0.1")
        self.assertEqual(self.told(asker), {"b1-0:1", "b1-1:1", "b2-0:1"})
