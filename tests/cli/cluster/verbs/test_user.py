"""C{rocketbroker user}."""

from __future__ import annotations

import os

from rocketbroker.testing.scripted import answer
from tests.cli.cluster.cluster import (
    BROKER,
    FIRST_USER,
    POLICIES,
    VerbCase,
    refusal,
)


class UserTests(VerbCase):
    """A broker in memory whose first user we are."""

    broker_settings = POLICIES

    def setUp(self) -> None:
        """A file with a password."""
        super().setUp()
        self.environ = {**FIRST_USER}
        self.password = self.file("hidden-password\n")

    def file(self, text: str) -> str:
        """A file with a text."""
        path: str = os.path.abspath(self.mktemp())
        with open(path, "w") as file:
            file.write(text)
        return path

    def create(self, *words: str, status: int = 0) -> str:
        """Create the user billing; what is said."""
        line = ("user", "create", "billing", "--password-file", self.password)
        return self.call(*line, *words, status=status).output

    def test_life(self) -> None:
        """Created, listed, shown, changed, deleted."""
        self.assertNotIn("hidden", self.create("--type", "super"))
        wanted = {
            "user": "billing",
            "type": "Super",
            "status": "enable",
            "brokers": ["broker-a"],
        }
        found = self.kind("user", "user", "ls", "bill*")
        self.assertEqual(found, [wanted])
        self.call("user", "update", "billing", "--status", "disable")
        (row,) = self.kind("user", "user", "show", "billing")
        self.assertEqual((row["status"], row["address"]), ("disable", BROKER))
        self.call("user", "delete", "billing", status=2)
        self.call("user", "delete", "billing", "--yes")
        self.call("user", "show", "billing", status=3)
        self.assertEqual(len(self.kind("user", "user", "ls")), 1)

    def test_passwords(self) -> None:
        """They are shown where that is wanted, and only to super users."""
        self.create()
        for words in (("ls",), ("show", "billing")):
            self.assertNotIn("hidden", self.call("user", *words).output)
        line = ("user", "show", "billing", "--show-secrets")
        self.assertEqual(self.kind("user", *line)[0]["password"], "hidden-password")
        self.password = self.file("hidden-new")
        given = ("billing", "--password-file", self.password)
        self.call("user", "update", *given)
        self.assertEqual(self.kind("user", *line)[0]["password"], "hidden-new")
        self.environ["ROCKETMQ_CLIENT_ACCESS_KEY"] = "billing"
        self.assertIsNone(self.kind("user", *line)[0]["password"])
        result = self.call("user", "copy", BROKER, "broker-a", status=1)
        self.assertIn("shows passwords to super users only", result.stderr)

    def test_passwordIsAskedFor(self) -> None:
        """Where nobody can be asked a file is needed; it is no argument."""
        for words in (("create", "x"), ("update", "root", "--ask-password")):
            result = self.call("user", *words, status=2)
            self.assertIn("Give --password-file FILE", result.stderr)
        self.call("user", "create", "x", "--password", "hidden", status=2)

    def test_copy(self) -> None:
        """With the password; who is there is changed."""
        self.create()
        (row,) = self.kind("change", "user", "copy", "broker-a", BROKER, "billing")
        self.assertEqual(row["outcome"], "changed")
        self.call("user", "copy", "broker-a", BROKER, "nobody", status=3)
        self.assertEqual(len(self.kind("change", "user", "copy", BROKER, BROKER)), 2)

    def test_dryRun(self) -> None:
        """Nothing is done."""
        self.assertIn("to be created", self.create("--dry-run"))
        self.call("user", "show", "billing", status=3)
        self.create()
        self.call("user", "update", "billing", "--type", "super", "--dry-run")
        self.call("user", "delete", "billing", "--dry-run")
        self.assertEqual(
            self.kind("user", "user", "show", "billing")[0]["type"], "Normal"
        )

    def test_wrong(self) -> None:
        """What is there is not made again; nothing is not changed."""
        self.create()
        self.assertIn("there already on broker-a", self.create(status=1))
        self.assertIn("Give --type", self.call("user", "update", "x", status=2).stderr)
        line = ("user", "update", "x", "--type", "super")
        self.assertIn("no user x", self.call(*line, status=3).stderr)

    def test_refused(self) -> None:
        """Somebody who may not is told how to be somebody else."""
        words = "User:x has no permission to access Cluster:c from 1.2.3.4"
        self.cluster.faults[3005] = refusal(16, words)
        result = self.call("user", "ls", status=1)
        self.assertIn("--access-key", result.stderr)


class WithoutUsersTests(VerbCase):
    """A broker without access control, and none."""

    def test_noBrokers(self) -> None:
        """Nothing is done, and that is no success."""
        empty = b'{"brokerAddrTable":{},"clusterAddrTable":{}}'
        self.cluster.faults[106] = lambda _: answer(body=empty)
        for line in (
            "user ls",
            "user update x --type super",
            "acl create x * --actions pub",
            "acl delete x --yes",
            "whoami",
            "can-i pub topic x",
        ):
            result = self.call(*line.split(), status=3)
            self.assertIn("knows no broker", result.stderr)

    def test_noUsers(self) -> None:
        """It is said that there are none, and why."""
        for words in (("user", "ls"), ("user", "show", "x"), ("acl", "ls")):
            result = self.call(*words, status=1)
            self.assertIn("broker-a has no users of ACL 2.0", result.stderr)
