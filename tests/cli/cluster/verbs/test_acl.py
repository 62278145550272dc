"""C{rocketbroker acl}."""

from __future__ import annotations

from tests.cli.cluster.cluster import BROKER, FIRST_USER, POLICIES, VerbCase


class AclTests(VerbCase):
    """A user of a broker in memory."""

    broker_settings = POLICIES

    def setUp(self) -> None:
        """The user billing."""
        super().setUp()
        self.environ = {**FIRST_USER}
        words = ("user", "create", "billing", "--password-file", "-")
        self.call(*words, stdin="hidden-password\n")

    def acl(self, line: str, status: int = 0) -> str:
        """Call a verb; what it says."""
        return self.call("acl", *line.split(), status=status).output

    def entries(self) -> list[tuple[object, ...]]:
        """What the user may do."""
        names = ("policy", "resource", "actions", "from", "decision")
        rows = self.kind("entry", "acl", "show", "billing")
        return [tuple(row[name] for name in names) for row in rows]

    def test_life(self) -> None:
        """Created, shown, listed, changed, deleted."""
        words = "--actions pub,SUB --from 10.0.0.0/8 --from 1.2.3.4"
        self.acl(f"create billing Topic:Orders {words}")
        self.acl("create billing Group:bill* --actions all --deny --default")
        wanted = [
            ("Custom", "Topic:Orders", ["Pub", "Sub"], ["10.0.0.0/8", "1.2.3.4"]),
            ("Default", "Group:bill*", ["All"], []),
        ]
        decisions = ["Allow", "Deny"]
        expected = [
            (*row, decision) for row, decision in zip(wanted, decisions, strict=True)
        ]
        self.assertEqual(self.entries(), expected)
        self.acl("update billing Topic:Orders --deny")
        self.assertEqual(self.entries()[0], (*wanted[0], "Deny"))
        self.acl("update billing Topic:Orders --from-anywhere --actions sub")
        self.assertEqual(self.entries()[0][2:], (["Sub"], [], "Deny"))
        self.acl("delete billing Topic:Orders", status=2)
        self.acl("delete billing Topic:Orders --yes")
        self.assertEqual(self.entries(), [expected[1]])
        self.acl("delete billing --yes")
        self.assertIn("has no policies", self.acl("show billing", status=3))

    def test_ls(self) -> None:
        """By users, and by parts of resources."""
        self.acl("create billing Topic:Orders --actions pub")
        self.acl("create billing Group:x --actions sub")
        rows = self.kind("entry", "acl", "ls", "bill*", "--resource", "Order")
        self.assertEqual([row["resource"] for row in rows], ["Topic:Orders"])
        self.assertEqual(rows[0]["brokers"], ["broker-a"])
        self.assertEqual(len(self.kind("entry", "acl", "ls")), 2)
        self.assertEqual(self.kind("entry", "acl", "ls", "root"), [])

    def test_noResourceTakesNothingAway(self) -> None:
        """RocketMQ deletes all policies where the resource is none."""
        self.acl("create billing Topic:Orders --actions pub")
        self.assertIn("is no resource", self.acl("delete billing Orders --yes", 2))
        self.assertIn("none of it", self.acl("delete billing Topic:x --yes", 3))
        words = "delete billing Topic:Orders --default --yes"
        self.assertIn("none of it", self.acl(words, 3))
        self.assertEqual(len(self.entries()), 1)

    def test_wrong(self) -> None:
        """It is told what is right."""
        for line, status, words in (
            ("create billing Topic:x", 2, "--actions is needed"),
            ("create billing Topic:x --actions any", 2, "'any' is no action"),
            ("create billing x --actions pub", 2, "'x' is no resource"),
            ("create billing * --actions pub --from x", 2, "'x' is no address"),
            ("create nobody * --actions pub", 1, "is not exist"),
            ("update billing * --actions pub", 3, "has no entry about *"),
            ("update billing * --create", 2, "--actions is needed"),
            ("show nobody", 3, "There is no user nobody"),
            ("copy broker-a broker-a billing", 3, "has no policies on broker-a"),
        ):
            self.assertIn(words, self.acl(line, status), line)
        self.acl("create billing * --actions pub")
        again = self.acl("create billing * --actions pub", 1)
        self.assertIn("already on broker-a", again)

    def test_dryRun(self) -> None:
        """Nothing is done."""
        self.acl("create billing * --actions pub --dry-run")
        self.acl("show billing", status=3)
        self.acl("create billing * --actions pub")
        self.acl("update billing * --deny --dry-run")
        self.acl("delete billing --dry-run")
        self.acl(f"copy {BROKER} {BROKER} --dry-run")
        self.assertEqual(self.entries(), [("Custom", "*", ["Pub"], [], "Allow")])
