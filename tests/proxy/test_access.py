"""Who makes a call, and whether they may."""

from __future__ import annotations

import logging
from typing import Any

import attrs
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.auth.entries import Acl, Action, Effect, Entry, Policy, PolicyType
from rocketbroker.auth.grpc_signatures import sign
from rocketbroker.auth.resources import Resource
from rocketbroker.auth.signatures import Credentials
from rocketbroker.auth.users import User, UserStatus, UserType
from rocketbroker.proxy import messages_pb2 as pb
from rocketbroker.proxy.access import Access
from rocketbroker.proxy.messages_pb2 import Code
from rocketbroker.proxy.statuses import Refusal
from rocketbroker.testing.puppet_cluster import refuse, silent
from rocketbroker.testing.scripted import answer
from rocketbroker.wire.codes import RequestCode
from tests.proxy.made import outgoing
from tests.proxy.proxied import Proxied

PEER = "10.0.0.1:5"
BOTH = {"authentication_enabled": True, "authorization_enabled": True}


def entry(text: str, *actions: Action, sources: tuple[str, ...] = ()) -> Entry:
    """What is allowed."""
    resource = Resource.parse(text)
    assert resource is not None
    return Entry(resource, actions, Effect.ALLOW, sources)


def headers(name: str = "alice", secret: str = "alice-secret") -> dict[str, str]:
    """Of a call that is signed."""
    return sign(Credentials(name, secret), "20261129T120000Z")


SEND = pb.SendMessageRequest(messages=[outgoing("T")])
HEARTBEAT = pb.HeartbeatRequest(
    client_type=pb.ClientType.PUSH_CONSUMER, group=pb.Resource(name="G")
)


class AccessCase(SynchronousTestCase):
    """A broker that knows alice, who may send to T from her network, and root."""

    def setUp(self) -> None:
        """A proxy that controls access."""
        self.access = self.made(**BOTH)

    def made(self, **settings: Any) -> Access:
        """What controls access by these settings."""
        self.proxied = Proxied(**settings)
        proxied = self.proxied
        entries = (
            entry("Topic:T", Action.PUB, sources=("10.0.0.0/8", "::1")),
            entry("Group:G", Action.SUB),
        )
        policy = Policy(PolicyType.CUSTOM, entries)
        proxied.cluster.documents = (
            proxied.cluster.documents.with_user(User("alice", "alice-secret"))
            .with_user(User("root", "root-secret", UserType.SUPER))
            .with_user(User("bob", "bob-secret"))
            .with_acl("alice", Acl("User:alice", (policy,)))
        )
        return Access(proxied.runtime, proxied.brokers, proxied.settings)

    def check(self, given: Any, message: Any = SEND, peer: str = PEER) -> None:
        """Let a call go on, or raise."""
        self.proxied.finish(self.access.check(given, message, peer))

    def assertRefused(
        self,
        words: str,
        given: Any,
        message: Any = SEND,
        peer: str = PEER,
        code: Code = Code.UNAUTHORIZED,
    ) -> None:
        """It does not go on."""
        check = self.access.check(given, message, peer)
        problem = self.assertRaises(Refusal, self.proxied.finish, check)
        self.assertEqual((problem.code, str(problem)), (code, words))


class AuthenticationTests(AccessCase):
    """Who it is."""

    def test_signedCallsGoOn(self) -> None:
        """One question for each user and her policies, whatever they do."""
        for _ in range(5):
            self.check(headers())
            self.check(headers("root", "root-secret"))
            self.check(headers(), HEARTBEAT)
        self.assertEqual((self.access.users.asked, self.access.acls.asked), (2, 1))

    def test_othersAreRefusedInRocketMQsWords(self) -> None:
        """Nobody, strangers, and wrong secrets."""
        self.assertRefused("username cannot be null.", {})
        self.assertRefused("User:eve is not found.", headers("eve"))
        self.assertRefused("check signature failed.", headers(secret="guess"))
        unreadable = {**headers(), "x-mq-date-time": ""}
        self.assertRefused("datetime is null.", unreadable)
        self.check(headers())

    def test_strangerIsAskedForOnce(self) -> None:
        """Until the answer is to be refreshed."""
        for _ in range(3):
            self.assertRefused("User:eve is not found.", headers("eve"))
        self.assertEqual(self.access.users.asked, 1)

    def test_changedPasswordCountsAfterTheRefresh(self) -> None:
        """At the latest; so does a user that is disabled."""
        self.check(headers())
        cluster = self.proxied.cluster
        alice = User("alice", "new-secret")
        cluster.documents = cluster.documents.with_user(alice)
        self.proxied.runtime.advance(20.0)
        self.assertRefused("check signature failed.", headers())
        self.check(headers(secret="new-secret"))
        alice = attrs.evolve(alice, status=UserStatus.DISABLE)
        cluster.documents = cluster.documents.with_user(alice)
        self.proxied.runtime.advance(20.0)
        self.assertRefused("User:alice is disabled.", headers(secret="new-secret"))

    def test_whiteListNeedsNoSignature(self) -> None:
        """By the names of messages."""
        self.access = self.made(
            authentication_enabled=True,
            authentication_whitelist="apache.rocketmq.v2.HeartbeatRequest",
        )
        self.check({}, HEARTBEAT)
        self.assertRefused("username cannot be null.", {})
        self.assertEqual(self.access.users.asked, 0)


class AuthorizationTests(AccessCase):
    """What they may do."""

    def test_policiesAllow(self) -> None:
        """What they do not, is refused with what and from where."""
        words = "User:%s has no permission to access %s from %s, no matched policies."
        other = pb.SendMessageRequest(messages=[outgoing("U")])
        self.check(headers())
        self.assertRefused(words % ("alice", "Topic:U", "10.0.0.1"), headers(), other)
        self.assertRefused(
            words % ("alice", "Topic:T", "11.0.0.1"), headers(), peer="11.0.0.1:5"
        )
        self.check(headers(), peer="[::1]:5")
        bobs = headers("bob", "bob-secret")
        self.assertRefused(words % ("bob", "Topic:T", "10.0.0.1"), bobs)
        self.assertRefused("message is null.", headers(), pb.SendMessageRequest())

    def test_changedPolicyCountsAfterTheRefresh(self) -> None:
        """At the latest; no decision outlives it."""
        self.check(headers())
        cluster = self.proxied.cluster
        cluster.documents = cluster.documents.without_acl("alice")
        self.proxied.runtime.advance(20.0)
        with self.assertRaises(Refusal):
            self.check(headers())

    def test_policiesOfARemovedUserAreNone(self) -> None:
        """A broker refuses to tell them: that is no failure."""
        self.check(headers())
        cluster = self.proxied.cluster
        faults = self.proxied.broker.faults
        cluster.documents = cluster.documents.without_user("alice")
        self.proxied.runtime.advance(20.0)
        alice = b'{"username":"alice","password":"alice-secret","userType":"Normal",'
        alice += b'"userStatus":"enable"}'
        faults[RequestCode.AUTH_GET_USER] = [lambda _: answer(body=alice)]
        words = (
            "has no permission to access Topic:T from 10.0.0.1, no matched policies."
        )
        self.assertRefused(f"User:alice {words}", headers())

    def test_withoutAuthenticationNobodyIsKnown(self) -> None:
        """As in RocketMQ: whoever needs a policy is refused."""
        self.access = self.made(authorization_enabled=True)
        words = "Authorization failed. Please verify your access rights and try again."
        self.assertRefused(words, headers())
        self.check({}, pb.TelemetryCommand())

    def test_whiteListNeedsNoPolicy(self) -> None:
        """Nor a question about it."""
        name = "apache.rocketmq.v2.SendMessageRequest"
        self.access = self.made(**BOTH, authorization_whitelist=name)
        self.check(headers("bob", "bob-secret"))
        self.assertEqual(self.access.acls.asked, 0)


class FailureTests(AccessCase):
    """Brokers that cannot be asked."""

    def test_brokerThatIsAwayMakesNobodyUnknown(self) -> None:
        """The status says what is wrong, and the log, once in a while."""
        self.proxied.cluster.stop("b1")
        with self.assertLogs("rocketbroker.proxy", logging.WARNING) as logged:
            for _ in range(3):
                check = self.access.check(headers(), SEND, PEER)
                problem = self.assertRaises(Refusal, self.proxied.finish, check)
                self.assertEqual(problem.code, Code.PROXY_TIMEOUT)
                words = "The proxy cannot look up its users now: "
                self.assertTrue(str(problem).startswith(words), str(problem))
        self.assertEqual(len(logged.output), 1)
        self.proxied.cluster.start("b1")
        self.check(headers())

    def test_brokerThatIsSilentIsATimeOut(self) -> None:
        """Whoever is known already goes on."""
        self.check(headers())
        self.proxied.runtime.advance(20.0)
        self.proxied.broker.faults[RequestCode.AUTH_GET_USER] = [silent, silent]
        with self.assertLogs("rocketbroker.proxy", logging.WARNING):
            for given, goes_on in ((headers(), True), (headers("bob"), False)):
                call = self.proxied.runtime.start(self.access.check(given, SEND, PEER))
                self.proxied.runtime.advance(10.0)
                if goes_on:
                    call.value()
                else:
                    problem = self.assertRaises(Refusal, call.value)
                    self.assertEqual(problem.code, Code.PROXY_TIMEOUT)

    def test_proxyThatIsRefusedSaysSo(self) -> None:
        """As one whose own secret is wrong, and one that sees no passwords."""
        faults = self.proxied.broker.faults
        faults[RequestCode.AUTH_GET_USER] = [
            refuse(16),
            lambda _: answer(body=b'{"username":"alice","userType":"Normal"}'),
        ]
        code = Code.INTERNAL_SERVER_ERROR
        start = "The proxy cannot look up its users now: "
        with self.assertLogs("rocketbroker.proxy", logging.WARNING):
            self.assertRefused(f"{start}refused", headers(), code=code)
        words = "the user 'alice' lacks password, userType or userStatus"
        self.assertRefused(start + words, headers(), code=code)
