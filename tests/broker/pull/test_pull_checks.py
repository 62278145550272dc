"""Tests of L{rocketbroker.broker.pull.pull_checks}, through the responder of pulls."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.pull import pull_checks
from rocketbroker.broker.pull.denied_pulls import ANY_TOPIC
from rocketbroker.broker.pull.pull_checks import PullChecks
from rocketbroker.errors import (
    BrokerError,
    FilterDataNotExist,
    FilterDataNotLatest,
    InvalidParameter,
    SubscriptionGroupNotExist,
    SubscriptionNotExist,
    SubscriptionNotLatest,
    SubscriptionParseFailed,
    SystemFailure,
    TopicNotExist,
)
from rocketbroker.records.record import decode_all
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig
from rocketbroker.wire.bodies.heartbeats import ConsumerData, SubscriptionData
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.headers.pull import SUBSCRIPTION
from rocketbroker.wire.hot import PullFields
from tests.broker.rig import Rig, answered, context_of, pull_ext, send_ext

PULL = RequestCode.PULL_MESSAGE
SEND = RequestCode.SEND_MESSAGE_V2

PUSH = "CONSUME_PASSIVELY"


class CheckCase(SynchronousTestCase):
    """A topic T with a message of tag A."""

    def setUp(self) -> None:
        """Nobody is registered."""
        self.rig = self.make()

    def make(self, **settings: str) -> Rig:
        """A data path with those settings."""
        rig = Rig(settings)
        self.addCleanup(rig.close)
        rig.topic("T", 4)
        ext = send_ext(properties="UNIQ_KEY\x01U\x02TAGS\x01A\x02")
        rig.ask(SEND, ext, b"a")
        return rig

    def refused(self, error: type[BrokerError], **more: str) -> str:
        """The remark with which a pull is refused."""
        self.assertFalse(self.rig.hot(PULL, pull_ext(**more)))
        caught = self.assertRaises(error, self.rig.begin, PULL, pull_ext(**more))
        return str(caught.remark)

    def forbidden(self, kind: int, **more: str) -> None:
        """A pull is answered with NO_PERMISSION and that reason."""
        self.assertFalse(self.rig.hot(PULL, pull_ext(**more)))
        answer = answered(self.rig.begin(PULL, pull_ext(**more)))
        self.assertEqual(
            (answer.code, answer.ext),
            (ResponseCode.NO_PERMISSION, {"forbiddenType": str(kind)}),
        )

    def found(self, **more: str) -> list[bytes]:
        """The bodies that a pull gives, by both ways."""
        answer = answered(self.rig.begin(PULL, pull_ext(**more)))
        self.assertTrue(self.rig.hot(PULL, pull_ext(**more)))
        (hot,) = self.rig.answers()
        self.assertEqual((hot.code, hot.body), (answer.code, answer.body))
        return [stored.body for stored in decode_all(answer.body)]

    def group(self, **more: Any) -> None:
        """Change the group's settings."""
        config = SubscriptionGroupConfig(group_name="G", **more)
        self.rig.groups.put([config])

    def register(
        self,
        expression: str = "*",
        version: int = 5,
        kind: str = "TAG",
        model: str = "CLUSTERING",
        consume_type: str = PUSH,
        topic: str = "T",
    ) -> None:
        """A heartbeat of a consumer on the rig's connection."""
        subscription = SubscriptionData(
            topic=topic,
            sub_string=expression,
            sub_version=version,
            expression_type=kind,
        )
        data = ConsumerData(
            group_name="G",
            consume_type=consume_type,
            message_model=model,
            subscription_data_set=[subscription],
        )
        self.rig.consumers.register(self.rig.connection, "c", "JAVA", 479, data, False)
        self.rig.filters.register("G", [subscription])


class AccessTests(CheckCase):
    """Broker, group, topic and queue."""

    def test_broker(self) -> None:
        """A broker that may not be read says so."""
        self.rig = self.make(brokerPermission="2")
        self.forbidden(1)

    def test_groupUnknown(self) -> None:
        """A group that is not there is made, if that is allowed."""
        self.assertEqual(self.found(), [b"a"])
        self.rig = self.make(autoCreateSubscriptionGroup="false")
        self.assertIn("subscription group [G]", self.refused(SubscriptionGroupNotExist))

    def test_groupDisabled(self) -> None:
        """A group that may not consume does not, from the next pull on."""
        self.assertEqual(self.found(), [b"a"])
        self.group(consume_enable=False)
        self.forbidden(2)
        noted = {("G", ANY_TOPIC): [self.rig.connection.peer]}
        self.assertEqual(self.rig.broker.diagnostics.diagnosis.refusals.take(), noted)
        self.group(consume_enable=True)
        self.assertEqual(self.found(), [b"a"])

    def test_topicUnknown(self) -> None:
        """A topic that is not there is not made."""
        remark = self.refused(TopicNotExist, topic="U")
        self.assertIn("topic[U] not exist, apply first please!", remark)

    def test_topicDeleted(self) -> None:
        """One that was deleted is not there any more."""
        self.assertEqual(self.found(), [b"a"])
        self.rig.topics.delete("T")
        self.refused(TopicNotExist)

    def test_topicNotReadable(self) -> None:
        """One that may not be read is not."""
        self.rig.topic("T", 4, perm=2)
        self.forbidden(3)
        noted = {("G", "T"): [self.rig.connection.peer]}
        self.assertEqual(self.rig.broker.diagnostics.diagnosis.refusals.take(), noted)

    def test_queue(self) -> None:
        """A queue that the topic does not have is refused."""
        self.assertIn("queueId[4]", self.refused(InvalidParameter, queueId="4"))
        self.refused(InvalidParameter, queueId="-1")
        self.rig.topic("T", 4, read_queue_nums=2)
        self.assertEqual(self.found(queueId="1"), [])
        self.refused(InvalidParameter, queueId="2")

    def test_header(self) -> None:
        """A request without fields, or with numbers that are none, is SYSTEM_ERROR."""
        self.assertRaises(SystemFailure, self.rig.begin, PULL, None)
        self.refused(SystemFailure, maxMsgNums="x")


class OwnSubscriptionTests(CheckCase):
    """Pulls that bring their subscription."""

    def test_filter(self) -> None:
        """It counts for this pull."""
        self.assertEqual(self.found(subscription="A"), [b"a"])
        self.assertEqual(self.found(subscription="B"), [])
        self.assertEqual(self.found(subscription=""), [b"a"])
        self.assertEqual(self.found(subscription="*"), [b"a"])

    def test_senseless(self) -> None:
        """Separators without a tag are no subscription, nor is SQL without text."""
        words = "parse the consumer's subscription failed"
        self.assertEqual(
            self.refused(SubscriptionParseFailed, subscription="||"), words
        )
        remark = self.refused(
            SubscriptionParseFailed, subscription="", expressionType="SQL92"
        )
        self.assertEqual(remark, words)

    def test_sql(self) -> None:
        """SQL92 that is switched off is refused."""
        remark = self.refused(
            SystemFailure, subscription="a > 5", expressionType="SQL92"
        )
        self.assertEqual(
            remark, "The broker does not support consumer to filter message by SQL92"
        )

    def test_ownSql(self) -> None:
        """With enablePropertyFilter a pull may bring an expression, which filters."""
        self.rig = self.make(enablePropertyFilter="true")
        for expression, bodies in (("TAGS = 'A'", [b"a"]), ("TAGS = 'B'", [])):
            self.assertEqual(
                self.found(subscription=expression, expressionType="SQL92"), bodies
            )

    def test_ownSqlThatMakesNoSense(self) -> None:
        """One that does not compile is refused with what is wrong, as is a type of
        filter that nobody knows."""
        self.rig = self.make(enablePropertyFilter="true")
        remark = self.refused(
            SubscriptionParseFailed, subscription="a >", expressionType="SQL92"
        )
        self.assertIn("the end at 3 is not expected", remark)
        remark = self.refused(
            SubscriptionParseFailed, subscription="a", expressionType="XPATH"
        )
        self.assertIn("no type of filter 'XPATH'", remark)

    def test_longType(self) -> None:
        """A remark repeats only so much of what it was sent."""
        remark = self.refused(
            SystemFailure, subscription="x", expressionType="y" * 9999
        )
        self.assertLess(len(remark), 200)

    def test_mostRoutes(self) -> None:
        """However many subscriptions clients make up, few are kept."""
        for number in range(pull_checks.MAX_ROUTES + 10):
            self.rig.hot(PULL, pull_ext(subscription=f"t{number}"))
        self.assertLess(len(self.rig.pull_checks._routes), pull_checks.MAX_ROUTES)
        self.rig.answers()
        self.assertEqual(self.found(subscription="A"), [b"a"])


class RegisteredTests(CheckCase):
    """Pulls that rest on heartbeats."""

    def test_filter(self) -> None:
        """The subscription of the heartbeat counts, from the next pull on."""
        self.register("B")
        self.assertEqual(self.found(sysFlag="0"), [])
        self.register("A", version=6)
        self.assertEqual(self.found(sysFlag="0"), [b"a"])

    def test_nobody(self) -> None:
        """A group without members cannot pull so."""
        remark = self.refused(SubscriptionNotExist, sysFlag="0")
        self.assertIn("the consumer's group info not exist", remark)

    def test_left(self) -> None:
        """Nor can one whose last member has gone."""
        self.register()
        self.assertEqual(self.found(sysFlag="0"), [b"a"])
        self.rig.connection.close()
        self.refused(SubscriptionNotExist, sysFlag="0")

    def test_otherTopic(self) -> None:
        """Nor can one that has not subscribed to the topic."""
        self.register(topic="U")
        remark = self.refused(SubscriptionNotExist, sysFlag="0")
        self.assertIn("the consumer's subscription not exist", remark)

    def test_notLatest(self) -> None:
        """A pull that knows a newer subscription by tags than the broker gets
        everything, since its client filters, too, until the broker knows it."""
        self.register("none", version=5)
        self.assertEqual(self.found(sysFlag="0", subVersion="5"), [])
        self.assertEqual(self.found(sysFlag="0", subVersion="6"), [b"a"])
        # Those who know no newer one are served as before.
        self.assertEqual(self.found(sysFlag="0", subVersion="5"), [])
        self.register("none", version=6)
        self.assertEqual(self.found(sysFlag="0", subVersion="6"), [])

    def test_notLatestOtherFilter(self) -> None:
        """By any other filter it is refused."""
        self.register(version=5, kind="SQL92")
        remark = self.refused(SubscriptionNotLatest, sysFlag="0", subVersion="6")
        self.assertEqual(remark, "the consumer's subscription not latest")

    def test_broadcasting(self) -> None:
        """A group that may not broadcast may not pull when it does."""
        self.group(consume_broadcast_enable=False)
        self.register(model="BROADCASTING")
        self.forbidden(4, sysFlag="0")
        self.register(model="CLUSTERING")
        self.assertEqual(self.found(sysFlag="0"), [b"a"])
        self.register(model="BROADCASTING")
        self.forbidden(4, sysFlag="0")

    def test_sqlSwitchedOff(self) -> None:
        """A registered SQL92 subscription is refused if that is switched off."""
        self.register("a > 5", kind="SQL92")
        remark = self.refused(SystemFailure, sysFlag="0")
        self.assertEqual(
            remark, "The broker does not support consumer to filter message by SQL92"
        )

    def test_sql(self) -> None:
        """With enablePropertyFilter the expression of the heartbeat filters."""
        self.rig = self.make(enablePropertyFilter="true")
        self.register("TAGS = 'B'", kind="SQL92")
        self.assertEqual(self.found(sysFlag="0", subVersion="5"), [])
        self.register("TAGS = 'A'", version=6, kind="SQL92")
        self.assertEqual(self.found(sysFlag="0", subVersion="6"), [b"a"])

    def test_sqlThatMakesNoSense(self) -> None:
        """An expression that does not compile is not known."""
        self.rig = self.make(enablePropertyFilter="true")
        self.register("TAGS =", kind="SQL92")
        remark = self.refused(FilterDataNotExist, sysFlag="0")
        self.assertEqual(remark, "The broker's consumer filter data is not exist!")

    def test_sqlNotLatest(self) -> None:
        """A filter that is older than the pull's subscription is refused."""
        self.rig = self.make(enablePropertyFilter="true")
        self.register("TAGS = 'A'", version=5, kind="SQL92")
        newer = SubscriptionData(topic="T", sub_version=6, expression_type="SQL92")
        data = ConsumerData(group_name="G", subscription_data_set=[newer])
        self.rig.consumers.register(self.rig.connection, "c", "JAVA", 479, data, False)
        remark = self.refused(FilterDataNotLatest, sysFlag="0", subVersion="6")
        self.assertEqual(remark, "the consumer's consumer filter data not latest")

    def test_separators(self) -> None:
        """One that makes no sense is refused like one that a pull brings."""
        self.register("||")
        self.refused(SubscriptionParseFailed, sysFlag="0")


class RejectTests(CheckCase):
    """With rejectPullConsumerEnable only registered consumers may pull."""

    def setUp(self) -> None:
        """It is on."""
        self.rig = self.make(rejectPullConsumerEnable="true")

    def test_nobody(self) -> None:
        """Nobody is registered: refused."""
        self.refused(SubscriptionNotExist)

    def test_pushing(self) -> None:
        """A group that consumes passively may."""
        self.register()
        self.assertEqual(self.found(), [b"a"])

    def test_system(self) -> None:
        """The system's own groups may."""
        self.assertEqual(self.found(consumerGroup="TOOLS_CONSUMER"), [b"a"])

    def test_member(self) -> None:
        """Of an active group only members may."""
        self.register(consume_type="CONSUME_ACTIVELY")
        self.assertEqual(self.found(), [b"a"])


class CountTests(CheckCase):
    """Not more groups and topics are counted for than the limit says."""

    def setUp(self) -> None:
        """Checks that count for two."""
        rig = self.rig = self.make()
        self.checks = PullChecks(
            context_of(rig.clock, store=rig.store),
            rig.topics,
            rig.groups,
            rig.consumers,
            rig.filters,
            rig.broker.diagnostics.diagnosis.refusals,
            max_counted=2,
        )

    def pull(self, group: str, topic: str = "T") -> None:
        """A group takes one message."""
        fields = PullFields(group, topic, 0, 0, 1, SUBSCRIPTION, subscription="*")
        route, _ = self.checks.check(self.rig.connection, fields)
        route.counts.messages += 1

    def counted(self) -> list[tuple[str, int]]:
        """How many messages each group has."""
        return [(each.group, each.messages) for each in self.checks.counters()]

    def test_gone(self) -> None:
        """A group that was deleted makes room for another one."""
        for group in ("G1", "G2"):
            self.pull(group)
        self.rig.groups.delete("G1")
        self.pull("G3")
        self.assertEqual(self.counted(), [("G2", 1), ("G3", 1)])
        self.assertEqual(self.checks.forgotten_messages, 1)

    def test_goneSystem(self) -> None:
        """Messages of topics of the system are no part of the sum."""
        self.pull("G1", "SELF_TEST_TOPIC")
        self.pull("G2")
        self.rig.groups.delete("G1")
        self.pull("G3")
        self.assertEqual(self.counted(), [("G2", 1), ("G3", 1)])
        self.assertEqual(self.checks.forgotten_messages, 0)

    def test_tooMany(self) -> None:
        """Without one, all begin at 0 again."""
        for group in ("G1", "G2", "G3", "G1"):
            self.pull(group)
        self.assertEqual(self.counted(), [("G3", 1), ("G1", 1)])
        self.assertEqual(self.checks.forgotten_messages, 2)
