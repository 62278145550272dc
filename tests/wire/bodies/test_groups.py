"""Tests of groups as bodies."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.bodies.groups import (
    SubscriptionGroupConfig,
)
from rocketbroker.wire.fastjson import dumps, loads
from rocketbroker.wire.fields import MAX_KEPT_DEPTH

GROUP = (
    b'{"attributes":{},"brokerId":0,"consumeBroadcastEnable":true,"consumeEnable":true,'
    b'"consumeFromMinEnable":true,"consumeMessageOrderly":false,'
    b'"consumeTimeoutMinute":15,"groupName":"G1","groupRetryPolicy":'
    b'{"type":"CUSTOMIZED"},"groupSysFlag":0,"notifyConsumerIdsChangedEnable":true,'
    b'"retryMaxTimes":16,"retryQueueNums":1,"whichBrokerWhenConsumeSlowly":1}'
)


class GroupTests(SynchronousTestCase):
    """The settings of one group."""

    def test_sample(self) -> None:
        """A new group is written as C{docs/facts} has it."""
        config = SubscriptionGroupConfig(group_name="G1")
        self.assertEqual(dumps(config), GROUP)
        self.assertEqual(SubscriptionGroupConfig.from_json(loads(GROUP)), config)

    def test_defaults(self) -> None:
        """What is missing is as in a new object of Java's."""
        self.assertEqual(
            SubscriptionGroupConfig.from_json({}), SubscriptionGroupConfig()
        )

    def test_looseForm(self) -> None:
        """A member in another form is read as leniently as RocketMQ reads it, and what
        is wrong is refused."""
        form = loads(GROUP)
        assert isinstance(form, dict)
        config = SubscriptionGroupConfig(group_name="G1")
        for name, value in (
            ("retryMaxTimes", "16"),
            ("consumeEnable", 1),
            ("subscriptionDataSet", None),
            ("groupRetryPolicy", None),
            ("unknown", [1]),
        ):
            read = SubscriptionGroupConfig.from_json({**form, name: value})
            self.assertEqual(read, config)
        deep: object = []
        for _ in range(MAX_KEPT_DEPTH):
            deep = [deep]
        for wrong in ({"brokerId": 1 << 63}, {"groupRetryPolicy": {"type": deep}}):
            self.assertRaises(
                RemoteProtocolError,
                SubscriptionGroupConfig.from_json,
                {**form, **wrong},
            )

    def test_member(self) -> None:
        """As a member of a table a group is the same text, whatever is kept of it."""
        for value in (
            {"groupName": "G"},
            {"groupName": "\u00e9\n", "attributes": {"b": "\x7f", "a": "1"}},
            {"groupName": "G", "groupRetryPolicy": {"next": [1e9, 2]}},
            {"groupName": "G", "subscriptionDataSet": [{1: 2, "a": 1.5}]},
        ):
            config = SubscriptionGroupConfig.from_json(value)
            expected = dumps({config.group_name: config.to_json()})
            self.assertEqual(f"{{{config.member}}}".encode(), expected)

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
