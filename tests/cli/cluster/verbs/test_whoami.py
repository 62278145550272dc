"""C{rocketbroker whoami} and C{can-i}."""

from __future__ import annotations

import json
from typing import ClassVar

from rocketbroker.testing.scripted import answer
from tests.cli.cluster.cluster import BROKER, FIRST_USER, POLICIES, VerbCase


class PolicyTests(VerbCase):
    """A broker with ACL 2.0."""

    broker_settings = POLICIES

    def setUp(self) -> None:
        """The user billing may send to Orders."""
        super().setUp()
        self.environ = {**FIRST_USER}
        words = ("user", "create", "billing", "--password-file", "-")
        self.call(*words, stdin="hidden-password\n")
        self.call("acl", "create", "billing", "Topic:Orders", "--actions", "pub")

    def test_whoami(self) -> None:
        """The user, and the kind; nobody without a signature."""
        row = {"broker": "broker-a", "address": BROKER, "acl": "2.0"}
        wanted = {**row, "user": "root", "rule": "user root: Super"}
        self.assertEqual(self.kind("identity", "whoami"), [wanted])
        self.environ = {}
        (found,) = self.kind("identity", "whoami")
        self.assertIsNone(found["user"])

    def test_canI(self) -> None:
        """The status says it, and the row which rule decides."""
        self.environ["ROCKETMQ_CLIENT_ACCESS_KEY"] = "billing"
        for words in (("topic", "Orders"), ("Topic:Orders",)):
            (row,) = self.kind("decision", "can-i", "pub", *words)
            self.assertEqual((row["user"], row["allowed"]), ("billing", True))
            self.assertIn("Allow Pub on Topic:Orders", row["rule"])
        result = self.call("can-i", "sub", "topic", "Orders", status=1)
        self.assertIn("no matched policies", result.stdout)
        self.assertIn("No: Sub of Topic:Orders on broker-a.", result.stderr)

    def test_others(self) -> None:
        """Only super users ask about them."""
        words = ("can-i", "pub", "topic", "Orders", "--user")
        self.call(*words, "billing")
        self.call("can-i", "get", "group", "x", "--user", "billing", status=1)
        self.environ["ROCKETMQ_CLIENT_ACCESS_KEY"] = "billing"
        result = self.call(*words, "root", status=1)
        self.assertIn("Only super users ask about others", result.stderr)

    def test_wrong(self) -> None:
        """It is told what is right."""
        for words in (("pub", "Orders"), ("pub", "queue", "x"), ("pub", "topic")):
            self.assertIn("A resource is", self.call("can-i", *words, status=2).stderr)
        self.call("can-i", "any", "topic", "x", status=2)


class PlainTests(VerbCase):
    """A broker with ACL 1.0, and without accounts."""

    broker_settings: ClassVar = {"aclEnable": "true"}

    def test_plain(self) -> None:
        """Its generation is told, and its refusal."""
        self.assertEqual(self.kind("identity", "whoami")[0]["acl"], "1.0")
        result = self.call("can-i", "pub", "topic", "x", status=1)
        self.assertIn("no account", result.stdout)


class NoneTests(VerbCase):
    """Brokers that do not know the request."""

    def test_noAccessControl(self) -> None:
        """Everybody may do everything."""
        (row,) = self.kind("identity", "whoami")
        self.assertEqual((row["user"], row["acl"]), (None, "none"))
        (row,) = self.kind("decision", "can-i", "delete", "topic", "x")
        self.assertEqual(row["rule"], "no access control: everybody may")

    def test_ofRocketMQ(self) -> None:
        """Theirs do not tell."""
        settings = b"authenticationEnabled=true\n"
        self.cluster.faults[26] = lambda _: answer(body=settings)
        result = self.call("whoami", status=1)
        self.assertIn("does not tell which rule decides", result.stderr)

    def test_answer(self) -> None:
        """It is read as it is told."""
        told = {
            "user": None,
            "allowed": False,
            "rule": "r",
            "remark": "m",
            "generation": "1.0",
        }
        self.cluster.faults[31012] = lambda _: answer(body=json.dumps(told).encode())
        words = ("can-i", "sub", "group", "g", "-o", "jsonl")
        row = json.loads(self.call(*words, status=1).stdout)
        found = (row["user"], row["allowed"], row["rule"], row["remark"])
        self.assertEqual(found, (None, False, "r", "m"))
        command = self.cluster.machine.requests[-1][1]
        self.assertEqual(command.ext, {"resource": "Group:g", "action": "Sub"})
