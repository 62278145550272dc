"""Tests of routes and clusters as bodies."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.bodies.mappings import TopicQueueMappingInfo
from rocketbroker.wire.bodies.routes import (
    BrokerData,
    BrokerMemberGroup,
    ClusterInfo,
    GetBrokerMemberGroupResponseBody,
    QueueData,
    TopicRouteData,
)
from rocketbroker.wire.fastjson import dumps, dumps_standard, loads

ROUTE = (
    '{"brokerDatas":[{"brokerAddrs":{0:"10.0.0.1:10911",1:"10.0.0.2:10911"},'
    '"brokerName":"b1","cluster":"c1","enableActingMaster":false}],'
    '"filterServerTable":{},"queueDatas":[{"brokerName":"b1","perm":6,'
    '"readQueueNums":8,"topicSysFlag":0,"writeQueueNums":8}]}'
)
STANDARD = (
    '{"brokerDatas":[{"brokerAddrs":{"0":"10.0.0.1:10911","1":"10.0.0.2:10911"},'
    '"brokerName":"b1","cluster":"c1","enableActingMaster":false,'
    '"zoneName":"z\\u4E2D"}],"filterServerTable":{"10.0.0.1:10911":[]},'
    '"orderTopicConf":"b1:8","queueDatas":[{"brokerName":"b1","perm":6,'
    '"readQueueNums":8,"topicSysFlag":0,"writeQueueNums":8}],'
    '"topicQueueMappingByBroker":{"b1":{"bname":"b1","currIdMap":{"0":0,"3":1},'
    '"dirty":false,"epoch":123,"scope":"__global__","topic":"T1","totalQueues":8}}}'
)
QUEUES = QueueData(broker_name="b1", perm=6, read_queue_nums=8, write_queue_nums=8)
ADDRESSES = {0: "10.0.0.1:10911", 1: "10.0.0.2:10911"}
BROKER = BrokerData(cluster="c1", broker_name="b1", broker_addrs=ADDRESSES)


class RouteTests(SynchronousTestCase):
    """Both forms of a route."""

    def test_own(self) -> None:
        """RocketMQ's own form is read and written as C{docs/facts} has it."""
        route = TopicRouteData(queue_datas=[QUEUES], broker_datas=[BROKER])
        self.assertEqual(TopicRouteData.from_json(loads(ROUTE)), route)
        self.assertEqual(dumps(route), ROUTE.encode())

    def test_standard(self) -> None:
        """The standard form is read and written as C{docs/facts} has it."""
        route = TopicRouteData.from_json(loads(STANDARD))
        self.assertEqual(dumps_standard(route), STANDARD.encode())
        self.assertEqual(route.broker_datas[0].zone_name, "z\u4e2d")
        self.assertEqual(route.broker_datas[0].broker_addrs, ADDRESSES)
        mapping = TopicQueueMappingInfo(
            topic="T1", total_queues=8, bname="b1", epoch=123, curr_id_map={0: 0, 3: 1}
        )
        self.assertEqual(route.topic_queue_mapping_by_broker, {"b1": mapping})

    def test_noWhiteSpace(self) -> None:
        """The Go client splits the text at commas and colons: no space may be there."""
        self.assertNotIn(b" ", dumps(TopicRouteData.from_json(loads(ROUTE))))

    def test_wrong(self) -> None:
        """A broker whose id is no number, or whose address is none, is refused."""
        wrong: list[object] = [{"x": "a:1"}, {0: 5}, []]
        for addresses in wrong:
            with self.assertRaises(RemoteProtocolError):
                BrokerData.from_json({"brokerAddrs": addresses})


class ClusterTests(SynchronousTestCase):
    """Clusters and member groups."""

    def test_cluster(self) -> None:
        """Cluster info is read and written as C{docs/facts} has it."""
        text = (
            b'{"brokerAddrTable":{"b1":{"brokerAddrs":{0:"10.0.0.1:10911"},'
            b'"brokerName":"b1","cluster":"c1","enableActingMaster":false}},'
            b'"clusterAddrTable":{"c1":["b2","b1"]}}'
        )
        info = ClusterInfo.from_json(loads(text))
        self.assertEqual(info.cluster_addr_table, {"c1": ["b2", "b1"]})
        self.assertEqual(info.broker_addr_table["b1"].broker_addrs[0], ADDRESSES[0])
        self.assertEqual(dumps(info), text)

    def test_memberGroup(self) -> None:
        """A member group is read and written as C{docs/facts} has it."""
        text = (
            b'{"brokerMemberGroup":{"brokerAddrs":{0:"x:1"},"brokerName":"b1",'
            b'"cluster":"c1"}}'
        )
        body = GetBrokerMemberGroupResponseBody(
            broker_member_group=BrokerMemberGroup(
                cluster="c1", broker_name="b1", broker_addrs={0: "x:1"}
            )
        )
        self.assertEqual(dumps(body), text)
        self.assertEqual(GetBrokerMemberGroupResponseBody.from_json(loads(text)), body)
