"""Rules of ACL 1.0."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.auth.decision import Decision
from rocketbroker.auth.permissions import PUB, Edition
from rocketbroker.auth.plain import EXCEPTION, MAX_KEPT, Rules
from rocketbroker.auth.request import Asked
from rocketbroker.auth.signatures import UNIQUE_KEY_QUERY
from rocketbroker.errors import ConfigurationError
from tests.auth.plain_samples import SAMPLE, sample, signed


class DecideTests(SynchronousTestCase):
    """One rule after the other, in RocketMQ's order."""

    def setUp(self) -> None:
        self.rules = Rules([sample()], Edition.V5)

    def allowed(self, asked: Asked, rule: str) -> None:
        """A request is allowed by that rule."""
        self.assertEqual(self.rules.decide(asked), Decision(True, rule))

    def refused(self, asked: Asked, rule: str, words: str) -> None:
        """A request is refused by that rule, with code 1 and these words."""
        found = self.rules.decide(asked)
        self.assertEqual(found, Decision(False, rule, 1, EXCEPTION + words))

    def test_addressesThatNeedNoAccount(self) -> None:
        """A global address passes without a name, and with a wrong signature."""
        rule = "globalWhiteRemoteAddresses 10.10.103.*"
        for fields in (None, {"AccessKey": "stranger", "Signature": "x"}):
            self.allowed(Asked(17, fields, source="10.10.103.9"), rule)
        self.refused(
            Asked(17, None, source="10.10.104.9"),
            "no account",
            "No accessKey is configured",
        )

    def test_strangers(self) -> None:
        """A name that no document has is refused, an empty one too."""
        for key in ("stranger", ""):
            asked = signed(10, {"topic": "T"}, key)
            self.refused(asked, "no account", f"No acl config for {key}")

    def test_addressesOfAnAccount(self) -> None:
        """An account's own address needs no signature, and no permission."""
        asked = Asked(17, {"AccessKey": "RocketMQ"}, source="192.168.7.7")
        self.allowed(asked, "account RocketMQ: whiteRemoteAddress")

    def test_wrongSignatures(self) -> None:
        """A wrong secret, and no signature at all."""
        rule = "account RocketMQ: signature"
        words = "Check signature failed for accessKey=RocketMQ"
        fields = {"topic": "topicB"}
        self.refused(signed(10, fields, secret="87654321"), rule, words)
        self.refused(Asked(10, {**fields, "AccessKey": "RocketMQ"}), rule, words)

    def test_whatAnAccountMayDo(self) -> None:
        """As operators ask, without a request; the rule that decides is told."""
        for topic, allowed in (("topicB", True), ("topicC", False)):
            found = self.rules.may("RocketMQ", ((topic, PUB),))
            self.assertEqual(found.allowed, allowed)
            self.assertIn(f"account RocketMQ: topicPerms {topic}", found.rule)
        for nobody in (None, "nobody"):
            self.assertFalse(self.rules.may(nobody, ()).allowed)
        self.assertFalse(self.rules.is_admin(None))

    def test_traceTopic(self) -> None:
        """Each account may send to the topic of traces."""
        asked = signed(310, {"b": "RMQ_SYS_TRACE_TOPIC"})
        self.allowed(asked, "RMQ_SYS_TRACE_TOPIC is open to all accounts")
        self.refused(
            signed(11, {"topic": "RMQ_SYS_TRACE_TOPIC"}),
            "account RocketMQ: defaultTopicPerm=DENY",
            "No default permission for topic:RMQ_SYS_TRACE_TOPIC",
        )

    def test_administrators(self) -> None:
        """Their requests are refused to others, and need no permission."""
        self.refused(
            signed(17, {"topic": "topicB"}),
            "account RocketMQ: admin",
            "Need admin permission for request code=17, but accessKey=RocketMQ is not",
        )
        asked = signed(17, {"topic": "topicB"}, "rocketmq2")
        self.allowed(asked, "account rocketmq2: the request needs no permission")
        asked = signed(10, {"topic": "T"}, "rocketmq2")
        self.allowed(asked, "account rocketmq2: admin")

    def test_administratorsWithPermissions(self) -> None:
        """In 5 they may do everything; in 4.9 an account with permissions is checked
        like all others."""
        text = SAMPLE.replace("admin: true", "admin: true\n  topicPerms: ['T=SUB']")
        asked = signed(310, {"b": "T"}, "rocketmq2")
        for edition, allowed in ((Edition.V5, True), (Edition.V4_9, False)):
            found = Rules([sample(text)], edition).decide(asked)
            self.assertEqual(found.allowed, allowed)

    def test_permissions(self) -> None:
        """A named resource has its own permission, all others the default."""
        self.allowed(
            signed(310, {"b": "topicB"}), "account RocketMQ: topicPerms topicB=PUB|SUB"
        )
        self.refused(
            signed(310, {"b": "topicC"}),
            "account RocketMQ: topicPerms topicC=SUB",
            "No permission for topic:topicC",
        )
        self.refused(
            signed(310, {"b": "other"}),
            "account RocketMQ: defaultTopicPerm=DENY",
            "No default permission for topic:other",
        )

    def test_oneWordForBoth(self) -> None:
        """In 4.9 a named resource is refused in the words of the default."""
        old = Rules([sample()], Edition.V4_9)
        words = "No default permission for topic:topicC"
        found = old.decide(signed(310, {"b": "topicC"}))
        self.assertEqual(found.remark, EXCEPTION + words)

    def test_severalPermissions(self) -> None:
        """All of them are needed; the decision names each, or the one that lacks."""
        topic = "account RocketMQ: topicPerms topicC=SUB"
        self.allowed(
            signed(11, {"topic": "topicC", "consumerGroup": "g"}),
            f"{topic}; account RocketMQ: defaultGroupPerm=SUB",
        )
        self.refused(
            signed(11, {"topic": "topicC", "consumerGroup": "groupA"}),
            "account RocketMQ: groupPerms groupA=DENY",
            "No permission for group:groupA",
        )

    def test_otherRequests(self) -> None:
        """A signature is enough for them."""
        rule = "account RocketMQ: the request needs no permission"
        self.allowed(signed(105, {"topic": "topicA"}), rule)

    def test_decisionsAreKept(self) -> None:
        """The same need has the same decision, at hand; there is a limit of them."""
        first = self.rules.decide(signed(310, {"b": "topicB"}))
        self.assertIs(self.rules.decide(signed(310, {"b": "topicB"})), first)
        for number in range(MAX_KEPT):
            self.rules.decide(signed(310, {"b": f"t{number}"}))
            self.rules.decide(Asked(10, None, source=f"10.1.{number}"))
        again = self.rules.decide(signed(310, {"b": "topicB"}))
        self.assertEqual(again, first)
        self.assertIsNot(again, first)

    def test_longNamesAreDecidedAnew(self) -> None:
        """No client fills the memory with names of its own."""
        for length, kept in ((512, True), (513, False)):
            asked = signed(310, {"b": "x" * length})
            found = self.rules.decide(asked)
            self.assertEqual(self.rules.decide(asked) is found, kept)

    def test_brokenHeartbeats(self) -> None:
        """A body that names nothing readable is refused."""
        found = self.rules.decide(signed(34, {}, body=b"x"))
        self.assertEqual(
            (found.allowed, found.code, found.rule), (False, 1, "the body")
        )

    def test_queriesByUniqueKey(self) -> None:
        """4.9 never covers the mark by the signature; 5 does from 4.9.4 on."""
        asked = signed(12, {"topic": "topicB", UNIQUE_KEY_QUERY: "true"})
        self.assertTrue(self.rules.decide(asked).allowed)
        self.assertFalse(Rules([sample()], Edition.V4_9).decide(asked).allowed)
        late = signed(12, {"topic": "topicB"})
        fields = {**late.fields, UNIQUE_KEY_QUERY: "true"}
        for version, allowed in ((399, True), (400, False)):
            found = self.rules.decide(Asked(12, fields, version=version))
            self.assertEqual(found.allowed, allowed)


class SeveralDocumentsTests(SynchronousTestCase):
    """Rules of all files together."""

    MORE = "accounts: [{accessKey: RocketMQ, secretKey: 87654321, admin: true}]"

    def test_firstAccountCounts(self) -> None:
        """A name that an earlier document has is ignored, and said so."""
        documents = [sample(self.MORE, "conf/acl/a.yml"), sample()]
        rules = Rules(documents, Edition.V5)
        self.assertTrue(rules.decide(signed(17, {}, secret="87654321")).allowed)
        self.assertFalse(rules.decide(signed(17, {})).allowed)
        self.assertEqual(
            rules.ignored, ["conf/plain_acl.yml: RocketMQ is there already"]
        )

    def test_wrongRulesAreRefused(self) -> None:
        """One wrong rule refuses the document, with its path and the reason."""
        for old, new, words in (
            ("10.10.103.*", "10.10.*", "a range needs four parts"),
            ("192.168.7.7", "host", "'host' is no address"),
            ("topicA=DENY", "topicA", "'topicA' is not of the form"),
            ("secretKey: 12345678", "secretKey: 123456", "longer than 6 characters"),
        ):
            document = sample(SAMPLE.replace(old, new))
            with self.assertRaises(ConfigurationError) as caught:
                Rules([document], Edition.V5)
            text = str(caught.exception)
            self.assertTrue(text.startswith("conf/plain_acl.yml: "), text)
            self.assertIn(words, text)
