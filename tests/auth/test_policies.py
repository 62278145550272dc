"""Rules of ACL 2.0."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.auth import grpc_signatures
from rocketbroker.auth.decision import Decision
from rocketbroker.auth.entries import Action
from rocketbroker.auth.policies import MAX_KEPT, PolicySettings, Rules, request_list
from rocketbroker.auth.request import Asked
from rocketbroker.auth.resources import group, topic
from rocketbroker.auth.signatures import UNIQUE_KEY_QUERY, Credentials
from rocketbroker.auth.users import Documents
from rocketbroker.auth.wanted import Release, Want
from tests.auth.plain_samples import signed
from tests.auth.policy_samples import SAMPLE

FAILED = "Authorization failed. Please verify your access rights and try again."


def rules(
    release: Release = Release.V5_4,
    documents: Documents = SAMPLE,
    authentication: bool = True,
    authorization: bool = True,
) -> Rules:
    """The rules of the sample."""
    settings = PolicySettings(
        release=release,
        cluster="own",
        authentication=authentication,
        authorization=authorization,
        unauthenticated=request_list("26, 28"),
        unauthorized=request_list("26,,apache.rocketmq.v2.HeartbeatRequest"),
    )
    return Rules(documents, settings)


class AuthenticationTests(SynchronousTestCase):
    """Is it the user?"""

    def refused(self, asked: Asked, rule: str, words: str) -> None:
        """A request is refused by that rule, with code 16 and these words."""
        found = rules().decide(asked)
        self.assertEqual(found, Decision(False, rule, 16, words))

    def test_rightSignature(self) -> None:
        """The user's password is the key."""
        found = rules().authenticate(signed(25, {}, "bob"))
        self.assertEqual(found, Decision(True, "user bob: signature"))

    def test_nobody(self) -> None:
        """A request needs a name."""
        for fields in (None, {"topic": "T"}, {"AccessKey": ""}):
            self.refused(Asked(25, fields), "no user", "username cannot be null.")

    def test_stranger(self) -> None:
        """The name must be a user's."""
        asked = signed(25, {}, "stranger")
        self.refused(asked, "no user", "User:stranger is not found.")

    def test_disabled(self) -> None:
        """A disabled user is refused, a super user too."""
        asked = signed(25, {}, "gone")
        self.refused(asked, "user gone: disable", "User:gone is disabled.")

    def test_wrongSignature(self) -> None:
        """A wrong password, and no signature at all."""
        words = "check signature failed."
        for asked in (
            signed(25, {}, "bob", secret="87654321"),
            Asked(25, {"AccessKey": "bob"}),
        ):
            self.refused(asked, "user bob: signature", words)

    def test_oldClientsQueries(self) -> None:
        """Up to 4.9.3 the mark of a query by unique key is not signed."""
        fields = {**signed(26, {}, "bob").fields, UNIQUE_KEY_QUERY: "true"}
        for version, allowed in ((399, True), (400, False)):
            found = rules().authenticate(Asked(12, fields, version=version))
            self.assertEqual(found.allowed, allowed)

    def test_switchedOff(self) -> None:
        """Requests of the white list, and all where it is off, need no name."""
        asked = Asked(28, None)
        self.assertTrue(rules().authenticate(asked).allowed)
        self.assertFalse(rules().authenticate(Asked(29, None)).allowed)
        off = rules(authentication=False)
        self.assertTrue(off.authenticate(Asked(29, None)).allowed)


class AuthorizationTests(SynchronousTestCase):
    """May the user do that?"""

    def decided(
        self,
        code: int,
        fields: dict[str, str],
        name: str = "bob",
        source: str = "10.0.0.1",
        release: Release = Release.V5_4,
    ) -> Decision:
        """The decision about a signed request."""
        return rules(release).authorize(signed(code, fields, name, source=source))

    def test_superUser(self) -> None:
        """A super user may do everything."""
        found = self.decided(215, {"topic": "any"}, "root")
        self.assertEqual(found, Decision(True, "user root: Super"))

    def test_allowed(self) -> None:
        """The decision names the entry."""
        found = self.decided(10, {"topic": "orders1"})
        rule = "user bob: Custom policy: Allow Pub,Sub on Topic:orders*"
        self.assertEqual(found, Decision(True, rule))

    def test_denied(self) -> None:
        """In 5.4 the closer entry decides, in 5.3 the one that was stored later, which
        is the same here."""
        words = (
            "User:bob has no permission to access Topic:ordersSecret from 10.0.0.1, "
            "the decision is deny."
        )
        rule = "user bob: Custom policy: Deny All on Topic:ordersSecret"
        for release in Release:
            found = self.decided(10, {"topic": "ordersSecret"}, release=release)
            self.assertEqual(found, Decision(False, rule, 16, words))

    def test_defaultPolicies(self) -> None:
        """They are asked where no custom entry matches."""
        found = self.decided(12, {"topic": "other"})
        rule = "user bob: Default policy: Allow Sub on Topic:*"
        self.assertEqual(found, Decision(True, rule))
        self.assertFalse(self.decided(12, {"topic": "ordersSecret"}).allowed)

    def test_noPolicy(self) -> None:
        """What no entry allows is refused; all that is asked for must be allowed."""
        found = self.decided(11, {"topic": "orders1", "consumerGroup": "other"})
        words = (
            "User:bob has no permission to access Group:other from 10.0.0.1, "
            "no matched policies."
        )
        rule = "user bob: no policy matches"
        self.assertEqual(found, Decision(False, rule, 16, words))

    def test_several(self) -> None:
        """A decision about several resources names each entry."""
        found = self.decided(11, {"topic": "orders1", "consumerGroup": "g"})
        self.assertEqual(
            found.rule,
            "user bob: Custom policy: Allow Pub,Sub on Topic:orders*; "
            "user bob: Custom policy: Allow Sub on Group:g from 10.0.0.0/8",
        )

    def test_sources(self) -> None:
        """Another address has another decision; without one nobody can say."""
        fields = {"topic": "orders1", "consumerGroup": "g"}
        self.assertTrue(self.decided(11, fields).allowed)
        self.assertFalse(self.decided(11, fields, source="11.0.0.1").allowed)
        found = self.decided(11, fields, source="")
        rule = "the client's address is not known"
        self.assertEqual(found, Decision(False, rule, 16, FAILED))

    def test_nobody(self) -> None:
        """Without a name nothing is allowed that needs a permission."""
        off = rules(authentication=False)
        found = off.decide(Asked(10, {"topic": "T"}))
        self.assertEqual(found, Decision(False, "no user", 16, FAILED))
        found = off.decide(Asked(10, {"topic": "T", "AccessKey": "stranger"}))
        self.assertEqual(found.remark, "User:stranger not found.")
        self.assertTrue(off.decide(Asked(25, {"x": "y"})).allowed)

    def test_disabledUsersAgain(self) -> None:
        """5.4 looks at the status once more, 5.3 does not."""
        fields = {"topic": "T"}
        self.assertTrue(self.decided(10, fields, "gone", release=Release.V5_3).allowed)
        found = self.decided(10, fields, "gone")
        self.assertEqual(found.remark, "User:gone is disabled.")

    def test_switchedOff(self) -> None:
        """Requests of the white list, and all where it is off, need no policy."""
        off = rules(authorization=False)
        self.assertTrue(off.decide(signed(10, {"topic": "other"}, "bob")).allowed)
        self.assertFalse(rules().decide(signed(10, {"topic": "other"}, "bob")).allowed)
        self.assertTrue(rules().authorize(Asked(26, None)).allowed)

    def test_brokenBodies(self) -> None:
        """A body that names nothing readable is refused in RocketMQ's words."""
        found = rules().decide(signed(34, {}, "bob", body=b"x"))
        self.assertEqual(found.remark, "parse authorization context error.")
        self.assertEqual((found.allowed, found.rule), (False, "the body"))

    def test_decisionsAreKept(self) -> None:
        """The same sender, resource and address have the same decision, at hand."""
        one = rules()
        asked = signed(10, {"topic": "orders1"}, "bob")
        found = one.authorize(asked)
        self.assertIs(one.authorize(asked), found)
        for number in range(MAX_KEPT):
            one.authorize(signed(10, {"topic": f"t{number}"}, "bob"))
        again = one.authorize(asked)
        self.assertEqual(again, found)
        self.assertIsNot(again, found)

    def test_longNamesAreDecidedAnew(self) -> None:
        """No client fills the memory with names of its own."""
        one = rules()
        for length, kept in ((512, True), (513, False)):
            asked = signed(10, {"topic": "orders".ljust(length, "x")}, "bob")
            found = one.authorize(asked)
            self.assertTrue(found.allowed)
            self.assertEqual(one.authorize(asked) is found, kept)


class CallTests(SynchronousTestCase):
    """Calls of gRPC."""

    NAME = "apache.rocketmq.v2.SendMessageRequest"

    def test_signedCalls(self) -> None:
        """A call's signature is checked as a request's is."""
        for secret, remark in (("12345678", ""), ("other", "check signature failed.")):
            headers = grpc_signatures.sign(
                Credentials("bob", secret), "20210309T195445Z"
            )
            call = grpc_signatures.parse(
                headers["authorization"], headers["x-mq-date-time"]
            )
            found = rules().authenticate_call(self.NAME, call)
            self.assertEqual(found.remark, remark)
        found = rules().authenticate_call(self.NAME, grpc_signatures.SignedCall())
        self.assertEqual(found.remark, "username cannot be null.")

    def test_policies(self) -> None:
        """The same policies decide, with the same words; decisions are kept."""
        wants = (
            Want(group("g"), (Action.SUB,)),
            Want(topic("orders1"), (Action.SUB,)),
        )
        one = rules()
        found = one.authorize_call(self.NAME, "bob", wants, "10.0.0.1")
        self.assertTrue(found.allowed)
        self.assertIs(one.authorize_call(self.NAME, "bob", wants, "10.0.0.1"), found)
        more = (*wants, Want(topic("orders2"), (Action.SUB,)))
        found = one.authorize_call(self.NAME, "bob", more, "10.0.0.1")
        self.assertTrue(found.allowed)
        self.assertIsNot(one.authorize_call(self.NAME, "bob", more, "10.0.0.1"), found)
        found = one.authorize_call(self.NAME, "bob", wants, "11.0.0.1")
        self.assertEqual(
            found.remark,
            "User:bob has no permission to access Group:g from 11.0.0.1, "
            "no matched policies.",
        )

    def test_whiteList(self) -> None:
        """It has the full names of messages."""
        wants = (Want(group("other"), (Action.SUB,)),)
        name = "apache.rocketmq.v2.HeartbeatRequest"
        self.assertTrue(rules().authorize_call(name, "bob", wants, "").allowed)
        self.assertFalse(rules().authorize_call(self.NAME, "bob", wants, "").allowed)
