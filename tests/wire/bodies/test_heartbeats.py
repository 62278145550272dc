"""Tests of heartbeats as bodies."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.bodies.heartbeats import (
    MAX_CHARACTERS,
    MAX_ENTRIES,
    MAX_TAGS,
    STEP_ENTRIES,
    CheckClientRequestBody,
    ConsumerData,
    HeartbeatData,
    ProducerData,
    SubscriptionData,
)
from rocketbroker.wire.fastjson import dumps, loads
from rocketbroker.wire.steps import finished

HEARTBEAT = (
    b'{"clientID":"10.0.0.9@1","consumerDataSet":[{"consumeFromWhere":'
    b'"CONSUME_FROM_LAST_OFFSET","consumeType":"CONSUME_PASSIVELY","groupName":"G1",'
    b'"messageModel":"CLUSTERING","subscriptionDataSet":[{"classFilterMode":false,'
    b'"codeSet":[2598919,2598920],"expressionType":"TAG","subString":"TagA || TagB",'
    b'"subVersion":1700000000000,"tagsSet":["TagA","TagB"],"topic":"T1"}],'
    b'"unitMode":false}],"heartbeatFingerprint":0,"producerDataSet":'
    b'[{"groupName":"PG"}],"withoutSub":false}'
)
SUBSCRIPTION = SubscriptionData(
    topic="T1",
    sub_string="TagA || TagB",
    tags_set=["TagA", "TagB"],
    code_set=[2598919, 2598920],
    sub_version=1700000000000,
)
BODY = HeartbeatData(
    client_id="10.0.0.9@1",
    producer_data_set=[ProducerData(group_name="PG")],
    consumer_data_set=[
        ConsumerData(group_name="G1", subscription_data_set=[SUBSCRIPTION])
    ],
)


class HeartbeatTests(SynchronousTestCase):
    """Heartbeats of several clients."""

    def test_java(self) -> None:
        """Java's heartbeat is read and written as C{docs/facts} has it."""
        self.assertEqual(HeartbeatData.from_json(loads(HEARTBEAT)), BODY)
        self.assertEqual(dumps(BODY), HEARTBEAT)

    def test_quickly(self) -> None:
        """The usual form is read quickly, to the same as any other."""
        for old, new in (
            (b"", b""),
            (b"CONSUME_PASSIVELY", b"CONSUME_SOMEHOW"),
            (b"CLUSTERING", b"NOTHING"),
            (b"LAST_OFFSET", b"THERE"),
            (b'"TAG"', b'""'),
            (b'"subString":"TagA || TagB",', b""),
            (b'"unitMode":false', b'"unitMode":true'),
            (b'"withoutSub":false', b'"withoutSub":true'),
            (b'"heartbeatFingerprint":0', b'"heartbeatFingerprint":-7'),
            (b'"heartbeatFingerprint":0,', b""),
        ):
            usual = HEARTBEAT.replace(old, new)
            other = usual.replace(b"{", b'{"unknown":1,')
            self.assertEqual(
                HeartbeatData.from_json(loads(usual)),
                HeartbeatData.from_json(loads(other)),
            )

    def test_fingerprint(self) -> None:
        """What a client hashes for its fingerprint is written as Java writes it."""
        subscription = SubscriptionData(topic="T1")
        body = HeartbeatData(
            client_id="",
            producer_data_set=[ProducerData(group_name="PG")],
            consumer_data_set=[
                ConsumerData(group_name="G1", subscription_data_set=[subscription])
            ],
        )
        code = 0
        for byte in dumps(body):
            code = code * 31 + byte & 0xFFFFFFFF
        self.assertEqual(code - (1 << 32), -889169914)

    def test_go(self) -> None:
        """Go's hash codes are strings, and its versions are nanoseconds."""
        subscription = SubscriptionData.from_json(
            {"topic": "T", "codeSet": ["2598919"], "subVersion": 1700000000000000000}
        )
        self.assertEqual(subscription.code_set, [2598919])
        self.assertEqual(subscription.sub_version, 1700000000000000000)

    def test_ordinals(self) -> None:
        """An enum may be its ordinal; an unknown name is null."""
        consumer = ConsumerData.from_json(
            {
                "groupName": "G",
                "consumeType": 0,
                "messageModel": 0,
                "consumeFromWhere": 4,
            }
        )
        self.assertEqual(
            (
                consumer.consume_type,
                consumer.message_model,
                consumer.consume_from_where,
            ),
            ("CONSUME_ACTIVELY", "BROADCASTING", "CONSUME_FROM_FIRST_OFFSET"),
        )
        self.assertEqual(
            ConsumerData.from_json({"consumeType": "X"}).consume_type, None
        )

    def test_check(self) -> None:
        """A subscription to be checked comes with who asks."""
        body = CheckClientRequestBody(
            client_id="c", group="G1", subscription_data=SUBSCRIPTION
        )
        self.assertEqual(CheckClientRequestBody.from_json(loads(dumps(body))), body)

    def test_wrong(self) -> None:
        """Sets that are no arrays, and members that are no objects, are refused."""
        wrong: list[object] = [
            {"consumerDataSet": {}},
            {"consumerDataSet": [5]},
            {"producerDataSet": ["PG"]},
            {"consumerDataSet": [{"subscriptionDataSet": [{"codeSet": [1 << 40]}]}]},
            [],
        ]
        for value in wrong:
            with self.assertRaises(RemoteProtocolError):
                HeartbeatData.from_json(value)


class StepTests(SynchronousTestCase):
    """Long heartbeats, read in steps."""

    def value(self, **changes: object) -> dict[str, object]:
        """A heartbeat of one group, with that in its first subscription."""
        subscriptions = [{"topic": f"T{number}"} for number in range(200)]
        subscriptions[0].update(changes)  # type: ignore[arg-type]
        consumer = {"groupName": "G", "subscriptionDataSet": [*subscriptions, None]}
        producers = [{"groupName": f"P{number}"} for number in range(200)]
        return {
            "clientID": "c",
            "consumerDataSet": [consumer, None],
            "producerDataSet": producers,
        }

    def test_sameValue(self) -> None:
        """In steps of some entries, it is what it is at once."""
        value = self.value()
        steps = HeartbeatData.in_steps(value)
        count = 0
        while True:
            try:
                next(steps)
            except StopIteration as end:
                self.assertEqual(end.value, HeartbeatData.from_json(value))
                break
            count += 1
        self.assertEqual(count, 400 // STEP_ENTRIES + 1)

    def refused(self, value: dict[str, object], why: str) -> None:
        """It is refused in words."""
        with self.assertRaises(RemoteProtocolError) as caught:
            finished(HeartbeatData.in_steps(value))
        self.assertIn(why, str(caught.exception))

    def test_limits(self) -> None:
        """What takes a step too long is refused, and the limit itself is taken."""
        finished(HeartbeatData.in_steps(self.value(tagsSet=["t"] * MAX_TAGS)))
        for name, item in (("tagsSet", "t"), ("codeSet", 1)):
            many = {name: [item] * (MAX_TAGS + 1)}
            self.refused(self.value(**many), f"{MAX_TAGS + 1} tags")
        finished(HeartbeatData.in_steps(self.value(subString="x" * MAX_CHARACTERS)))
        more = self.value(subString="x" * (MAX_CHARACTERS + 1))
        self.refused(more, f"have {MAX_CHARACTERS + 1} characters")
        for name in ("consumerDataSet", "producerDataSet"):
            groups = [{"groupName": "G"}] * (MAX_ENTRIES + 1)
            self.refused({name: groups}, f"{MAX_ENTRIES + 1} entries of {name}")
