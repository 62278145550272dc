"""Users of ACL 2.0."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.auth.users import Documents, User, UserStatus, UserType, name_of
from tests.auth.policy_samples import SAMPLE, acl, entry


class UserTests(SynchronousTestCase):
    """Users and their names."""

    def test_defaults(self) -> None:
        """A user is a normal and enabled one; the password is not shown."""
        user = User("bob", "hidden")
        self.assertEqual((user.type, user.status), (UserType.NORMAL, UserStatus.ENABLE))
        self.assertEqual(user.subject, "User:bob")
        self.assertNotIn("hidden", repr(user))

    def test_nameOfASubject(self) -> None:
        """Only users are subjects."""
        self.assertEqual(name_of("User:bob"), "bob")
        self.assertEqual(name_of("USER:a:b"), "a:b")
        for text in (None, "", "bob", "Group:bob"):
            self.assertIsNone(name_of(text) or None)


class DocumentsTests(SynchronousTestCase):
    """All users and policies."""

    def test_editsGiveNewDocuments(self) -> None:
        """What was there is as it was."""
        more = SAMPLE.with_user(User("alice", "12345678"))
        more = more.with_acl("alice", acl("alice", entry("*", "All")))
        self.assertEqual([*more.users], ["root", "bob", "gone", "alice"])
        self.assertEqual([*more.acls], ["bob", "alice"])
        self.assertEqual([*SAMPLE.users], ["root", "bob", "gone"])

    def test_withoutUser(self) -> None:
        """The policies go with the user."""
        less = SAMPLE.without_user("bob")
        self.assertEqual([*less.users], ["root", "gone"])
        self.assertEqual(less.acls, {})
        self.assertEqual(Documents().without_user("bob"), Documents())
