"""Tests of all bodies together: captured ones, and any values."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Final, Protocol

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.bodies.groups import (
    SubscriptionGroupConfig,
)
from rocketbroker.wire.bodies.heartbeats import CheckClientRequestBody, HeartbeatData
from rocketbroker.wire.bodies.mappings import TopicQueueMappingInfo
from rocketbroker.wire.bodies.queues import MessageQueue
from rocketbroker.wire.bodies.registration import RegisterBrokerBody
from rocketbroker.wire.bodies.routes import (
    ClusterInfo,
    GetBrokerMemberGroupResponseBody,
    TopicRouteData,
)
from rocketbroker.wire.bodies.topics import (
    DataVersion,
    KVTable,
    TopicConfig,
    TopicConfigAndMappingSerializeWrapper,
    TopicConfigSerializeWrapper,
    TopicList,
)
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.fastjson import ObjectKey, dumps, loads
from rocketbroker.wire.frames import decode
from rocketbroker.wire.headers.namesrv import RegisterBrokerRequestHeader
from tests.examples import examples
from tests.wire.vectors import Vector, vectors


class Body(Protocol):
    """What every body can do."""

    def to_json(self) -> dict[str, object]:
        """The JSON form."""


Reader = Callable[[object], Body]

REQUESTS: Final[dict[int, Reader]] = {
    RequestCode.HEART_BEAT: HeartbeatData.from_json,
    RequestCode.CHECK_CLIENT_CONFIG: CheckClientRequestBody.from_json,
    RequestCode.QUERY_DATA_VERSION: DataVersion.from_json,
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: SubscriptionGroupConfig.from_json,
    RequestCode.REGISTER_TOPIC_IN_NAMESRV: TopicRouteData.from_json,
}
ANSWERS: Final[dict[int, Reader]] = {
    RequestCode.GET_ALL_TOPIC_CONFIG: TopicConfigAndMappingSerializeWrapper.from_json,
    RequestCode.GET_ROUTEINFO_BY_TOPIC: TopicRouteData.from_json,
    RequestCode.GET_BROKER_CLUSTER_INFO: ClusterInfo.from_json,
    RequestCode.REGISTER_BROKER: KVTable.from_json,
    RequestCode.QUERY_DATA_VERSION: DataVersion.from_json,
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: TopicList.from_json,
    RequestCode.GET_TOPICS_BY_CLUSTER: TopicList.from_json,
}
READERS: Final[tuple[Reader, ...]] = (
    *REQUESTS.values(),
    *ANSWERS.values(),
    RegisterBrokerBody.from_json,
    TopicConfig.from_json,
    TopicConfigSerializeWrapper.from_json,
    TopicQueueMappingInfo.from_json,
    GetBrokerMemberGroupResponseBody.from_json,
    MessageQueue.from_json,
)

#: Members that RocketMQ adds for people, or that no body of ours keeps.
UNUSED: Final = {"groupTopicMap", "pullOffsetTable", "resetOffsetTable"}


def left_out(original: object, written: object) -> object:
    """What of one value is not in another; None if nothing is.

    The Go client sends the numbers of its C{codeSet} as text.
    """
    if isinstance(original, str) and isinstance(written, int):
        original = int(original)
    if isinstance(original, dict) and isinstance(written, dict):
        loose = {str(key): value for key, value in written.items()}
        missing = {
            key: rest
            for key, value in original.items()
            if value is not None
            and key not in UNUSED
            and (rest := left_out(value, loose.get(str(key)))) is not None
        }
        return missing or None
    if isinstance(original, list) and isinstance(written, list):
        if len(original) == len(written):
            for one, other in zip(original, written, strict=True):
                rest = left_out(one, other)
                if rest is not None:
                    return rest
            return None
        return original
    return None if original == written else original


class CapturedTests(SynchronousTestCase):
    """Bodies of captured frames."""

    def bodies(self, readers: dict[int, Reader], answers: bool) -> set[int]:
        """Check all captured bodies of these codes; the codes that were there."""
        seen = set()
        for vector in vectors():
            reader = readers.get(vector.request_code)
            if reader is None or vector.is_answer is not answers:
                continue
            body = decode(vector.frame[4:]).body
            if body and body[:1] == b"{":
                original = loads(body)
                written = loads(dumps(reader(original)))
                self.assertIsNone(left_out(original, written), vector.label)
                self.assertEqual(reader(written), reader(original))
                seen.add(vector.request_code)
        return seen

    def test_requests(self) -> None:
        """Nothing is lost of what clients, brokers and administrators send."""
        self.assertIn(RequestCode.HEART_BEAT, self.bodies(REQUESTS, False))

    def test_answers(self) -> None:
        """Nothing is lost of what servers answer."""
        seen = self.bodies(ANSWERS, True)
        self.assertIn(RequestCode.GET_ROUTEINFO_BY_TOPIC, seen)
        self.assertIn(RequestCode.GET_BROKER_CLUSTER_INFO, seen)

    def registrations(self) -> list[tuple[Vector, RegisterBrokerRequestHeader, bytes]]:
        """All captured registrations."""
        found = []
        for vector in vectors():
            if vector.request_code == RequestCode.REGISTER_BROKER:
                command = decode(vector.frame[4:])
                if not vector.is_answer:
                    header = RegisterBrokerRequestHeader.from_ext(command.ext)
                    found.append((vector, header, command.body))
        return found

    def test_registrations(self) -> None:
        """Registrations are read, and read as the same when they are written again."""
        seen = set()
        for vector, header, data in self.registrations():
            version = decode(vector.frame[4:]).version
            body = RegisterBrokerBody.decode(data, header.compressed, version)
            again = RegisterBrokerBody.decode(body.encode(), False, version)
            self.assertEqual(again, body, vector.label)
            if not header.compressed:
                self.assertIsNone(left_out(loads(data), loads(body.encode())))
            self.assertNotEqual(
                body.topic_config_serialize_wrapper.topic_config_table, {}
            )
            seen.add(header.compressed)
        self.assertEqual(seen, {False, True})

    def test_ownForm(self) -> None:
        """Bodies with integer keys are written with RocketMQ's very bytes."""
        checked = 0
        for vector in vectors():
            body = decode(vector.frame[4:]).body
            if vector.label.split()[1:2] != ["5.3.3"] or not body:
                continue
            if vector.request_code == RequestCode.GET_BROKER_CLUSTER_INFO:
                info = ClusterInfo.from_json(loads(body))
                self.assertEqual(dumps(info), body, vector.label)
                checked += 1
        self.assertGreater(checked, 0)


#: Names of members, to be put together in any order.
MEMBERS = st.sampled_from(
    [
        "brokerAddr brokerAddrTable brokerAddrs brokerDatas brokerId brokerMemberGroup",
        "brokerName classFilterMode clientID clientId cluster clusterAddrTable codeSet",
        "consumeEnable consumeFromWhere consumeType consumerDataSet consumerIdList",
        "counter currIdMap dataVersion enableActingMaster epoch expressionType",
        "filterServerList filterServerTable forbiddenTable group groupName",
        "groupRetryPolicy heartbeatFingerprint mappingDataVersion messageModel",
        "offsetTable order orderTopicConf perm producerDataSet queueDatas queueId",
        "readQueueNums stateVersion subString subVersion subscriptionData",
        "subscriptionDataSet subscriptionGroupTable table tagsSet timestamp topic",
        "topicConfigSerializeWrapper topicConfigTable topicFilterType topicList",
        "topicName topicQueueMappingByBroker topicQueueMappingDetailMap attributes",
        "topicQueueMappingInfoMap topicSysFlag totalQueues unitMode zoneName T1 0",
    ]
).flatmap(lambda names: st.sampled_from(names.split()))
PLAIN = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 70), 1 << 70)
    # What is no number is written as null, as by Java, and a null is no member.
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "x", "5", "-1", "CLUSTERING", "1e5", "9" * 40, "\u0663"])
)
KEYS = MEMBERS | st.integers(-2, 5) | st.builds(ObjectKey)
VALUES = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4)
    ),
    max_leaves=20,
)


class AnythingTests(SynchronousTestCase):
    """Values that nobody meant to be bodies."""

    @examples(0.3)
    @given(st.dictionaries(MEMBERS, VALUES, max_size=5))
    def test_values(self, value: dict[object, object]) -> None:
        """They are refused, or are bodies that can be written and read again."""
        for reader in READERS:
            try:
                body = reader(value)
            except RemoteProtocolError:
                continue
            again = reader(loads(dumps(body)))
            self.assertEqual(dumps(again), dumps(body))

    @examples()
    @given(st.binary(max_size=50), st.booleans(), st.integers(0, 500))
    def test_registrations(self, data: bytes, compressed: bool, version: int) -> None:
        """Any bytes as a registration."""
        with contextlib.suppress(RemoteProtocolError):
            RegisterBrokerBody.decode(data, compressed, version)
