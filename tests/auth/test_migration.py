"""Migration from ACL 1.0."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.auth.migration import migrated
from rocketbroker.auth.users import Documents, User, UserType
from tests.auth.plain_samples import sample
from tests.auth.policy_samples import SAMPLE


def entries(documents: Documents, name: str) -> list[str]:
    """The entries of a user, as text."""
    acl = documents.acls.get(name)
    policies = () if acl is None else acl.policies
    return [f"{p.type.value} {e}" for p in policies for e in p.entries]


class MigrationTests(SynchronousTestCase):
    """Accounts become users."""

    def test_sample(self) -> None:
        """Permissions become custom entries, the default ones default entries."""
        found = migrated(Documents(), [sample()])
        self.assertEqual(found.users["RocketMQ"], User("RocketMQ", "12345678"))
        self.assertEqual(found.users["rocketmq2"].type, UserType.SUPER)
        self.assertEqual(
            entries(found, "RocketMQ"),
            [
                "Custom Deny All on Topic:topicA",
                "Custom Allow Pub,Sub on Topic:topicB",
                "Custom Allow Sub on Topic:topicC",
                "Custom Deny All on Group:groupA",
                "Custom Allow Pub,Sub on Group:groupB",
                "Default Deny All on Topic:*",
                "Default Allow Sub on Group:*",
            ],
        )
        self.assertEqual([*found.acls], ["RocketMQ"])

    def test_knownUsers(self) -> None:
        """A user that is there stays, with the policies; of two accounts with one name
        the first counts."""
        more = (
            "accounts: [{accessKey: bob, secretKey: a}, {accessKey: x, secretKey: a}]"
        )
        again = "accounts: [{accessKey: x, secretKey: b}]"
        found = migrated(SAMPLE, [sample(more), sample(again, "b.yml")])
        self.assertEqual([*found.users], [*SAMPLE.users, "x"])
        self.assertEqual(found.users["bob"], SAMPLE.users["bob"])
        self.assertEqual(found.acls, SAMPLE.acls)
        self.assertEqual(found.users["x"].password, "a")

    def test_oddPermissions(self) -> None:
        """An unknown text denies, as it did; other forms are left out, and names are
        never patterns."""
        found = migrated(
            Documents(),
            [
                sample(
                    "accounts:\n- accessKey: x\n  secretKey: a\n"
                    "  topicPerms: ['T=pub', 'U', 'V* = PUB ', 'W= ']\n"
                    "  groupPerms: ['%RETRY%G=SUB']\n"
                    "  defaultTopicPerm: ' '\n  defaultGroupPerm: ' SUB '\n"
                )
            ],
        )
        self.assertEqual(
            entries(found, "x"),
            [
                "Custom Deny All on Topic:T",
                "Custom Allow Pub on Topic:V*",
                "Custom Deny All on Topic:W",
                "Custom Allow Sub on Group:G",
                "Default Allow Sub on Group:*",
            ],
        )
        pattern = found.acls["x"].policies[0].entries[1].resource.pattern
        self.assertEqual(pattern.name, "LITERAL")

    def test_namelessAccounts(self) -> None:
        """Accounts without name or secret are left out."""
        text = "accounts: [{accessKey: ' ', secretKey: a}, {accessKey: x}]"
        self.assertEqual(migrated(Documents(), [sample(text)]), Documents())
