"""What remoting requests ask for."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.auth.request import Asked
from rocketbroker.auth.wanted import DEPENDS_ON, Release, wanted
from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.bodies.heartbeats import (
    ConsumerData,
    HeartbeatData,
    SubscriptionData,
)
from rocketbroker.wire.bodies.queues import LockBatchBody, MessageQueue
from rocketbroker.wire.fastjson import dumps

#: A request with all fields that name something.
FIELDS = {
    **dict.fromkeys(("topic", "b"), "T"),
    **dict.fromkeys(("group", "a", "consumerGroup", "groupName", "destGroup"), "G"),
    "compareGroup": "G",
    "filterGroups": "H,I",
    "topicList": "U;V",
    "clusterName": "c",
    "brokerClusterName": "d",
}

#: What such a request asks for, by its code.
TABLE = {
    "Pub Topic:T": (10, 310, 320, 370, 37),
    "Create Topic:T": (17,),
    "Delete Topic:T": (215,),
    "Update Topic:T": (323,),
    "Get Topic:T": (29, 30, 31, 32, 33, 202, 300, 351, 354),
    "Sub,Get Topic:T": (12,),
    "Pub,Sub,Get Topic:T": (105,),
    "Sub Topic:T, Sub Group:G": (11, 200052),
    "Sub Group:G, Sub Topic:T": (309, 200050, 200051, 200053, 200054),
    "Sub,Get Topic:T, Sub,Get Group:G": (14,),
    "Sub,Update Topic:T, Sub,Update Group:G": (15,),
    "Sub Group:G": (35, 36),
    "Sub,Get Group:G": (38,),
    "Get Group:G": (203, 307, 343, 352),
    "Delete Group:G": (207,),
    "Get Group:G, Get Topic:T": (345, 200055),
    "Get Topic:T, Get Group:G": (223, 303, 321),
    "Get Group:G, Get Topic:T, Get Topic:U, Get Topic:V": (208,),
    "Get Group:H, Get Group:I, Get Group:G, Get Topic:T": (308,),
    "Update Group:G, Update Topic:T": (222, 314, 353),
    "Get Cluster:own": (101, 204, 219, 315, 317, 328, 355, 1004)
    + (3004, 3005, 3009, 3010),
    "Get Cluster:c": (322, 901, 1012),
    "Update Cluster:own": (100, 102, 205, 217, 327, 902, 905, 906, 908, 1001, 1008)
    + (3001, 3002, 3003, 3006, 3007, 3008),
    "Update Cluster:c": (103, 104, 216, 904, 1002, 1003, 1011, 1013),
    "Update Cluster:d": (903,),
    "": (18, 21, 25, 26, 28, 43, 45, 46, 60, 61, 106, 200, 201, 206, 224, 225, 304)
    + (305, 306, 316, 318, 319, 324, 325, 329, 361, 400, 401, 402, 513, 907, 1005)
    + (1006, 1007, 1009, 1010, 2001, 2002, 2003, 2004, 200056, 200151, 99999),
}


def texts(asked: Asked, release: Release = Release.V5_3) -> str:
    """What a request asks for, as text."""
    return ", ".join(
        f"{','.join(action.value for action in want.actions)} {want.resource}"
        for want in wanted(asked, release, "own")
    )


class WantedTests(SynchronousTestCase):
    """Resources and actions by code."""

    def test_table(self) -> None:
        """All codes of the facts sheet."""
        for expected, codes in TABLE.items():
            for code in codes:
                self.assertEqual(texts(Asked(code, FIELDS)), expected, code)

    def test_whatLoadsDependsOn(self) -> None:
        """Requests of which decisions are kept ask for nothing but these two fields."""
        for code, (topic, group) in DEPENDS_ON.items():
            asked = Asked(code, {topic: "T", group: "G"})
            self.assertEqual(texts(asked), texts(Asked(code, FIELDS)))

    def test_retryTopics(self) -> None:
        """A retry topic is its group, or is passed over beside a group."""
        fields = {**FIELDS, "topic": "%RETRY%R"}
        for code, expected in (
            (11, "Sub Group:G"),
            (14, "Sub,Get Group:G"),
            (15, "Sub,Update Group:G"),
            (105, "Sub,Get Group:R"),
            (30, "Get Group:R"),
            (200050, "Sub Group:G, Sub Group:R"),
        ):
            self.assertEqual(texts(Asked(code, fields)), expected, code)

    def test_sendsToRetryTopics(self) -> None:
        """5.3 asks the group of a field, if there is one; 5.4 that of the topic."""
        for code, topic, group in ((10, "topic", "group"), (310, "b", "a")):
            named = Asked(code, {topic: "%RETRY%R", group: "G"})
            self.assertEqual(texts(named), "Sub Group:G")
            self.assertEqual(texts(named, Release.V5_4), "Sub Group:R")
            for fields in ({topic: "%RETRY%R"}, {topic: "%RETRY%R", group: " "}):
                self.assertEqual(texts(Asked(code, fields)), "Sub Group:R")

    def test_missingFields(self) -> None:
        """A part of the table passes over what is missing, the other asks for a
        resource without a name, which only entries about all names match."""
        fields = {"x": "y"}
        for code, expected in (
            (10, "Pub Topic:null"),
            (11, "Sub Topic:null, Sub Group:null"),
            (105, "Pub,Sub,Get Topic:null"),
            (30, ""),
            (35, ""),
            (37, ""),
            (200050, ""),
            (103, "Update Cluster:own"),
            (901, ""),
        ):
            self.assertEqual(texts(Asked(code, fields)), expected, code)

    def test_withoutFields(self) -> None:
        """A request without any field asks for nothing."""
        for code in (10, 34, 101):
            self.assertEqual(texts(Asked(code, None)), "")

    def test_bodies(self) -> None:
        """Heartbeats and locks name groups, and topics that are no retry topics."""
        topics = [SubscriptionData(topic=name) for name in ("T", "%RETRY%G")]
        consumer = ConsumerData(group_name="G", subscription_data_set=topics)
        beat = HeartbeatData(client_id="c", consumer_data_set=[consumer])
        expected = "Sub Group:G, Sub Topic:T"
        self.assertEqual(texts(Asked(34, FIELDS, dumps(beat))), expected)
        queues = [MessageQueue(name, "b", 0) for name in ("T", "%RETRY%G")]
        locks = LockBatchBody(client_id="c", consumer_group="G", mq_set=queues)
        for code in (41, 42):
            self.assertEqual(texts(Asked(code, FIELDS, dumps(locks))), expected)
            with self.assertRaises(RemoteProtocolError):
                texts(Asked(code, FIELDS, b"x"))
