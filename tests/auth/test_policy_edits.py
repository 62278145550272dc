"""Edits of users and policies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.auth.policy_documents import AclInfo, UserInfo, acl_json
from rocketbroker.auth.policy_edits import (
    acl_of,
    initial_user,
    is_super,
    listed_acls,
    listed_users,
    user_of,
    with_acl,
    with_changed_user,
    with_first_users,
    with_new_user,
    without_acl,
    without_user,
)
from rocketbroker.auth.signatures import Credentials
from rocketbroker.auth.users import Documents, User, UserStatus, UserType
from rocketbroker.errors import BrokerError, ConfigurationError
from tests.auth.policy_samples import SAMPLE


class EditCase(SynchronousTestCase):
    """Assertions about edits."""

    def refused(
        self, code: int, words: str, edit: Callable[..., object], *given: object
    ) -> None:
        """An edit of the sample is refused with that answer."""
        with self.assertRaises(BrokerError) as caught:
            edit(SAMPLE, *given)
        error = caught.exception
        self.assertEqual((error.code, error.remark), (code, words))


class UserTests(EditCase):
    """Requests 3001 to 3005."""

    def info(self, **members: str) -> UserInfo:
        """A body."""
        return UserInfo.from_json({"password": "secret", **members})

    def test_newUser(self) -> None:
        """Normal and enabled, unless said otherwise."""
        found = with_new_user(SAMPLE, "alice", self.info(), None)
        self.assertEqual(found.users["alice"], User("alice", "secret"))
        info = self.info(userType="Super", userStatus="disable")
        found = with_new_user(SAMPLE, "alice", info, "root")
        self.assertEqual(
            found.users["alice"],
            User("alice", "secret", UserType.SUPER, UserStatus.DISABLE),
        )

    def test_refusedNewUsers(self) -> None:
        """Each in RocketMQ's words."""
        new, info, bad = with_new_user, self.info(), self.info(password=" ")
        self.refused(29, "The username is blank", new, "", info, None)
        self.refused(16, "username can not be blank", new, " ", info, None)
        self.refused(16, "password can not be blank", new, "alice", bad, None)
        self.refused(16, "password can not be blank", new, "a", UserInfo(), None)
        self.refused(16, "The user is existed", new, "bob", info, None)
        words = "The super user can only be create by super user"
        super_info = self.info(userType="super")
        self.refused(1, words, new, "alice", super_info, "bob")

    def test_changedUser(self) -> None:
        """Only what is given changes; a blank password is none."""
        info = self.info(userStatus="disable", password=" ")
        found = with_changed_user(SAMPLE, "bob", info, "bob").users["bob"]
        self.assertEqual(found, User("bob", "12345678", status=UserStatus.DISABLE))
        found = with_changed_user(SAMPLE, "bob", self.info(), None).users["bob"]
        self.assertEqual(found, User("bob", "secret"))

    def test_refusedChanges(self) -> None:
        """Each in RocketMQ's words; super users are changed by their like."""
        change, info = with_changed_user, self.info()
        self.refused(29, "The username is blank", change, "", info, None)
        self.refused(16, "The user is not exist", change, "alice", info, None)
        words = "The super user can only be update by super user"
        self.refused(16, words, change, "root", info, "bob")
        self.refused(1, words, change, "bob", self.info(userType="Super"), "bob")
        changed = with_changed_user(SAMPLE, "root", info, "root")
        self.assertEqual(changed.users["root"].password, "secret")

    def test_removedUser(self) -> None:
        """The policies go, too; an unknown user is no error."""
        found = without_user(SAMPLE, "bob", "bob")
        self.assertNotIn("bob", found.users)
        self.assertEqual(found.acls, {})
        self.assertIs(without_user(SAMPLE, "alice", "bob"), SAMPLE)
        self.refused(16, "username can not be blank", without_user, "", None)
        words = "The super user can only be update by super user"
        self.refused(16, words, without_user, "root", "bob")

    def test_shown(self) -> None:
        """One by its name, several by a part of it."""
        self.assertEqual(user_of(SAMPLE, "bob"), User("bob", "12345678"))
        self.assertIsNone(user_of(SAMPLE, "alice"))
        self.refused(29, "The username is blank", user_of, " ")
        for part, names in (
            (None, "bob gone root"),
            (" ", "bob gone root"),
            ("o", "bob gone root"),
            ("on", "gone"),
        ):
            found = listed_users(SAMPLE, part)
            self.assertEqual(" ".join(user.name for user in found), names)

    def test_login(self) -> None:
        """Without a login everybody is a super user; a strange one is refused."""
        self.assertTrue(is_super(SAMPLE, None))
        self.assertTrue(is_super(SAMPLE, "root"))
        self.assertFalse(is_super(SAMPLE, "bob"))
        self.refused(16, "User:alice is not found", is_super, "alice")

    def test_initialUser(self) -> None:
        """The setting has a name and a password, or nothing at all."""
        text = '{"username":"root","password":"hidden"}'
        self.assertEqual(initial_user(text), Credentials("root", "hidden"))
        self.assertIsNone(initial_user(" "))
        for wrong in ("root", '["hidden"]', '{"username":" ","password":"hidden"}'):
            with self.assertRaises(ConfigurationError) as caught:
                initial_user(wrong)
            self.assertNotIn("hidden", str(caught.exception))

    def test_firstUsers(self) -> None:
        """The users of two settings are super users; known ones stay as they are."""
        initial, inner = Credentials("bob", "new"), Credentials("inner", "secret")
        found = with_first_users(SAMPLE, initial, inner)
        self.assertEqual(found.users["bob"], SAMPLE.users["bob"])
        self.assertEqual(found.users["inner"], User("inner", "secret", UserType.SUPER))
        self.assertIs(with_first_users(SAMPLE, None, None), SAMPLE)


class AclTests(EditCase):
    """Requests 3006 to 3010."""

    def info(self, subject: str | None = None, **members: Any) -> AclInfo:
        """A body with one entry."""
        entry = {"resource": "Topic:T", "actions": ["Pub"], "decision": "Allow"}
        policy = {"entries": [{**entry, **members}]}
        return AclInfo.from_json({"subject": subject, "policies": [policy]})

    def shown(self, documents: Documents, name: str) -> list[str]:
        """The entries of a user, as text."""
        acl = documents.acls.get(name)
        policies = () if acl is None else acl.policies
        return [f"{p.type.value} {e}" for p in policies for e in p.entries]

    def test_firstPolicies(self) -> None:
        """A user without policies gets them as they are given."""
        found = with_acl(SAMPLE, "User:root", self.info())
        self.assertEqual(self.shown(found, "root"), ["Custom Allow Pub on Topic:T"])

    def test_subjectOfTheBody(self) -> None:
        """It wins over that of the header."""
        found = with_acl(SAMPLE, "User:bob", self.info("User:root"))
        self.assertEqual([*found.acls], ["bob", "root"])
        self.assertEqual(self.shown(found, "bob"), self.shown(SAMPLE, "bob"))

    def test_moreEntries(self) -> None:
        """A known resource changes, a new one comes behind."""
        found = with_acl(SAMPLE, "User:bob", self.info(resource="Topic:ordersSecret"))
        found = with_acl(found, "User:bob", self.info(sourceIps=["10.0.0.1"]))
        self.assertEqual(
            self.shown(found, "bob"),
            [
                "Custom Allow Pub,Sub on Topic:orders*",
                "Custom Allow Pub on Topic:ordersSecret",
                "Custom Allow Sub on Group:g from 10.0.0.0/8",
                "Custom Allow Pub on Topic:T from 10.0.0.1",
                "Default Allow Sub on Topic:*",
            ],
        )

    def test_refusedPolicies(self) -> None:
        """Each in RocketMQ's words."""
        for members, words in (
            ({"resource": "T"}, "The resource is null."),
            ({"actions": []}, "The actions is empty."),
            ({"actions": ["fly"]}, "The actions is empty."),
            ({"actions": ["Pub", "any"]}, "The actions can not be Any."),
            ({"sourceIps": [" "]}, "The source ip is empty."),
            ({"sourceIps": ["10.0.0.0/33"]}, "The source ip is invalid."),
            ({"decision": "maybe"}, "The decision is null or illegal."),
        ):
            self.refused(16, words, with_acl, "User:bob", self.info(**members))
        words = "The subject of User:alice is not exist."
        self.refused(16, words, with_acl, "User:alice", self.info())
        self.refused(
            1, "The body of acl is null", with_acl, "User:bob", AclInfo.from_json({})
        )
        empty = AclInfo.from_json({"policies": [{"entries": []}]})
        self.refused(16, "The policies is empty.", with_acl, "User:bob", empty)
        words = "An system error occurred, please try again later."
        self.refused(1, words, with_acl, "bob", self.info())

    def test_removedEntry(self) -> None:
        """One of the custom policy, unless another is named."""
        found = without_acl(SAMPLE, "User:bob", None, "Topic:orders*")
        self.assertEqual(len(self.shown(found, "bob")), 3)
        found = without_acl(SAMPLE, "User:bob", "default", "Topic:*")
        self.assertNotIn("Default", str(acl_json(found.acls["bob"])))
        same = without_acl(SAMPLE, "User:bob", None, "Topic:*")
        self.assertEqual(same, SAMPLE)

    def test_lastEntry(self) -> None:
        """With it the user's policies are gone, as all are without a resource, or with
        one that is none."""
        one = with_acl(SAMPLE, "User:root", self.info())
        self.assertEqual(without_acl(one, "User:root", None, "Topic:T"), SAMPLE)
        for resource in (None, "", "Topics:T"):
            found = without_acl(SAMPLE, "User:bob", None, resource)
            self.assertEqual(found.acls, {})

    def test_refusedRemovals(self) -> None:
        """Each in RocketMQ's words."""
        self.refused(16, "The subject is null.", without_acl, "bob")
        self.refused(16, "The subject is not exist.", without_acl, "User:alice")
        self.refused(16, "The acl is not exist.", without_acl, "User:root")

    def test_shownPolicies(self) -> None:
        """One by its subject."""
        self.assertEqual(acl_of(SAMPLE, "User:bob"), SAMPLE.acls["bob"])
        self.assertIsNone(acl_of(SAMPLE, "User:root"))
        self.refused(16, "The subject is not exist.", acl_of, "User:alice")
        self.refused(16, "The subject is null.", acl_of, None)

    def test_listedPolicies(self) -> None:
        """Several by parts of subjects and resources; policies without an entry left
        are left out."""
        both = with_acl(SAMPLE, "User:root", self.info())
        for subject, resource, expected in (
            (None, None, [("User:bob", 4), ("User:root", 1)]),
            ("ro", " ", [("User:root", 1)]),
            ("", "Secret", [("User:bob", 1)]),
            (None, "Topic", [("User:bob", 3), ("User:root", 1)]),
            ("bob", "none", []),
        ):
            found = [
                (acl.subject, sum(len(policy.entries) for policy in acl.policies))
                for acl in listed_acls(both, subject, resource)
            ]
            self.assertEqual(found, expected)
