"""Tests of groups as bodies."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.bodies.groups import (
    ConsumerOffsetSerializeWrapper,
    GetConsumerListByGroupResponseBody,
    SubscriptionGroupConfig,
    SubscriptionGroupWrapper,
)
from rocketbroker.wire.bodies.topics import DataVersion
from rocketbroker.wire.fastjson import dumps, loads

GROUP = (
    b'{"attributes":{},"brokerId":0,"consumeBroadcastEnable":true,"consumeEnable":true,'
    b'"consumeFromMinEnable":true,"consumeMessageOrderly":false,'
    b'"consumeTimeoutMinute":15,"groupName":"G1","groupRetryPolicy":'
    b'{"type":"CUSTOMIZED"},"groupSysFlag":0,"notifyConsumerIdsChangedEnable":true,'
    b'"retryMaxTimes":16,"retryQueueNums":1,"whichBrokerWhenConsumeSlowly":1}'
)
VERSION = b'{"counter":1,"stateVersion":0,"timestamp":5}'


class GroupTests(SynchronousTestCase):
    """One group, and their table."""

    def test_sample(self) -> None:
        """A new group is written as the sheet has it."""
        config = SubscriptionGroupConfig(group_name="G1")
        self.assertEqual(dumps(config), GROUP)
        self.assertEqual(SubscriptionGroupConfig.from_json(loads(GROUP)), config)

    def test_defaults(self) -> None:
        """What is missing is as in a new object of Java's."""
        self.assertEqual(
            SubscriptionGroupConfig.from_json({}), SubscriptionGroupConfig()
        )

    def test_kept(self) -> None:
        """What we do not use of a group is kept for those who do."""
        value = {
            "groupName": "G",
            "groupRetryPolicy": {"type": "EXPONENTIAL", "exponentialRetryPolicy": {}},
            "subscriptionDataSet": [{"topic": "T", "expression": "*"}],
            "attributes": {"k": "v"},
        }
        written = loads(dumps(SubscriptionGroupConfig.from_json(value)))
        assert isinstance(written, dict)
        self.assertEqual({name: written[name] for name in value}, value)

    def test_table(self) -> None:
        """C{subscriptionGroup.json} is read and written as the sheet has it."""
        text = (
            b'{"dataVersion":' + VERSION + b',"forbiddenTable":{"G1":{"T":4}},'
            b'"subscriptionGroupTable":{"G1":' + GROUP + b"}}"
        )
        wrapper = SubscriptionGroupWrapper.from_json(loads(text))
        self.assertEqual(wrapper.forbidden_table, {"G1": {"T": 4}})
        self.assertEqual(dumps(wrapper), text)

    def test_members(self) -> None:
        """The list of a group's members is read and written as the sheet has it."""
        text = b'{"consumerIdList":["a","b"]}'
        body = GetConsumerListByGroupResponseBody(consumer_id_list=["a", "b"])
        self.assertEqual(dumps(body), text)
        self.assertEqual(
            GetConsumerListByGroupResponseBody.from_json(loads(text)), body
        )


class OffsetTests(SynchronousTestCase):
    """Committed offsets."""

    def test_file(self) -> None:
        """C{consumerOffset.json} is read; the list of groups in it is not needed."""
        text = (
            b'{"dataVersion":' + VERSION + b',"groupTopicMap":{"G":["T"]},'
            b'"offsetTable":{"T@G":{0:12,"1":7}}}'
        )
        self.assertEqual(
            ConsumerOffsetSerializeWrapper.from_json(loads(text)),
            ConsumerOffsetSerializeWrapper(
                offset_table={"T@G": {0: 12, 1: 7}},
                data_version=DataVersion(counter=1, timestamp=5),
            ),
        )

    def test_answer(self) -> None:
        """The answer of 43 has a version only if there is one."""
        wrapper = ConsumerOffsetSerializeWrapper(offset_table={"T1@G1": {0: 11, 1: 12}})
        self.assertEqual(dumps(wrapper), b'{"offsetTable":{"T1@G1":{0:11,1:12}}}')

    def test_wrong(self) -> None:
        """Offsets that are no numbers of 64 bits are refused."""
        for queues in ({0: "x"}, {"x": 0}, {0: 1 << 63}, 5, {0: True}):
            with self.assertRaises(RemoteProtocolError):
                ConsumerOffsetSerializeWrapper.from_json(
                    {"offsetTable": {"T@G": queues}}
                )
