"""Users and policies as JSON."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.auth.entries import Action, Effect, PolicyType
from rocketbroker.auth.policy_documents import (
    AclInfo,
    UserInfo,
    acls_json,
    from_json,
    users_json,
)
from rocketbroker.auth.users import UserStatus, UserType
from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.fastjson import dumps, loads
from tests.auth.policy_samples import SAMPLE


class BodyTests(SynchronousTestCase):
    """Bodies of operators' requests."""

    def test_user(self) -> None:
        """Names of enumerations in any case; unknown and missing ones are none."""
        found = UserInfo.from_json(
            {"username": "bob", "password": "p", "userType": "SUPER", "userStatus": "x"}
        )
        self.assertEqual(found.type, UserType.SUPER)
        self.assertIsNone(found.status)
        self.assertNotIn("'p'", repr(found))
        self.assertEqual(UserInfo.from_json({}), UserInfo())
        found = UserInfo.from_json({"userStatus": "Disable"})
        self.assertEqual(found.status, UserStatus.DISABLE)

    def test_policies(self) -> None:
        """Unknown actions are dropped, an unknown type is a custom policy."""
        entry = {
            "resource": "Topic:T",
            "actions": ["pub", "fly", "Sub"],
            "sourceIps": ["10.0.0.1"],
            "decision": "DENY",
        }
        bare = {"resource": "nothing", "actions": None}
        body = {
            "subject": "User:bob",
            "policies": [
                {"policyType": "strange", "entries": [entry, bare]},
                {"policyType": "default"},
            ],
        }
        found = AclInfo.from_json(body)
        self.assertEqual(found.subject, "User:bob")
        custom, default = found.policies
        self.assertEqual(custom.type, PolicyType.CUSTOM)
        self.assertEqual(custom.entries[0].actions, (Action.PUB, Action.SUB))
        self.assertEqual(custom.entries[0].effect, Effect.DENY)
        self.assertIsNone(custom.entries[1].resource)
        self.assertIsNone(custom.entries[1].effect)
        self.assertEqual((default.type, [*default.entries]), (PolicyType.DEFAULT, []))

    def test_noBodies(self) -> None:
        """Another kind of JSON is refused."""
        wrong: tuple[object, ...] = (None, [], {"policies": 5})
        for value in (*wrong, {"policies": [{"entries": [5]}]}):
            self.assertRaises(RemoteProtocolError, AclInfo.from_json, value)


class KeptTests(SynchronousTestCase):
    """Documents that are kept."""

    def test_writtenAndReadAgain(self) -> None:
        """All users and policies are there again, in their order."""
        users = loads(dumps(users_json(SAMPLE)))
        acls = loads(dumps(acls_json(SAMPLE)))
        found = from_json(users, acls)
        self.assertEqual(found, SAMPLE)
        self.assertEqual([*found.users], [*SAMPLE.users])

    def test_form(self) -> None:
        """It is that of the bodies; an entry without sources has none."""
        self.assertEqual(
            users_json(SAMPLE)[2],
            {
                "username": "gone",
                "password": "12345678",
                "userType": "Super",
                "userStatus": "disable",
            },
        )
        (bob,) = acls_json(SAMPLE)
        policies = bob["policies"]
        assert isinstance(policies, list)
        self.assertEqual(bob["subject"], "User:bob")
        self.assertEqual(
            policies[0]["entries"][0],
            {
                "resource": "Topic:orders*",
                "actions": ["Pub", "Sub"],
                "decision": "Allow",
            },
        )
        self.assertEqual(policies[0]["entries"][2]["sourceIps"], ["10.0.0.0/8"])

    def test_brokenDocuments(self) -> None:
        """What lacks something is refused, and not filled in."""
        for users, acls in (
            (None, []),
            ([{"username": "bob", "password": "x"}], []),
            ([], [{"subject": "bob"}]),
            ([], [{"subject": "User:b", "policies": [{"entries": [{}]}]}]),
        ):
            self.assertRaises(RemoteProtocolError, from_json, users, acls)
