"""ACL 2.0 before requests of a broker, its table, and the requests that change it."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.auth.policies import PolicySettings
from rocketbroker.auth.request import Asked
from rocketbroker.auth.signatures import Credentials, sign
from rocketbroker.auth.wanted import Release
from rocketbroker.broker.access.policy_access import PolicyAccess
from rocketbroker.broker.json_table import JsonTable
from rocketbroker.errors import BrokerError, ConfigurationError, NoPermission
from rocketbroker.remoting.refusal_log import RefusalLog
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.threads import at_once
from rocketbroker.wire.command import Command
from tests.broker.rig import logged

PATH = "/store/config/access.json"
ROOT = Credentials("root", "root-secret")
BILLING = Credentials("billing", "b-secret")


def policy(resource: str, action: str) -> dict[str, object]:
    """Policies with one entry, which allows it."""
    entry = {"resource": resource, "actions": [action], "decision": "Allow"}
    return {"policies": [{"policyType": "Custom", "entries": [entry]}]}


class PolicyAccessTests(SynchronousTestCase):
    """L{PolicyAccess}."""

    def setUp(self) -> None:
        """A broker whose settings make the first user."""
        self.disk = MemoryDisk()
        self.access, self.table = self.made()
        self.access.load()
        self.connection = RecordedConnection()

    def made(
        self, first: Credentials | None = ROOT
    ) -> tuple[PolicyAccess, ResponderTable]:
        """As at a start."""
        access = PolicyAccess(
            JsonTable(self.disk, PATH, at_once, Clock(), is_secret=True),
            PolicySettings(release=Release.V5_3, cluster="c"),
            (first, None),
            lambda documents: documents,
            RefusalLog(lambda: 0.0),
        )
        table = ResponderTable()
        access.register(table)
        return access, table

    def ask(
        self, code: int, body: object = None, by: Credentials = ROOT, **fields: str
    ) -> Any:
        """The JSON of an answer.

        @raise BrokerError: it is refused, by the hook or the responder.
        """
        content = b"" if body is None else json.dumps(body).encode()
        signed = sign(fields, content, by)
        self.access.before(self.connection, Asked(code, signed, content))
        answer = self.table.responders[code](
            self.connection, Command(code, signed, content)
        )
        if not isinstance(answer, Command):
            assert isinstance(answer, Deferred)
            caught: list[Failure] = []
            answer.addErrback(caught.append)
            if caught:
                caught[0].raiseException()
            answer = self.successResultOf(answer)
            assert answer is not None
        self.assertEqual(answer.code, 0)
        return json.loads(answer.body) if answer.body else None

    def make_billing(self) -> None:
        self.ask(3001, {"password": BILLING.secret_key}, username="billing")
        self.ask(3006, policy("Topic:Orders", "Pub"), subject="User:billing")

    def send(self, topic: str, by: Credentials = BILLING) -> None:
        self.access.before(self.connection, Asked(10, sign({"topic": topic}, b"", by)))

    def test_usersAndPolicies(self) -> None:
        """What is made by requests counts at once, and after a start."""
        self.make_billing()
        for _ in range(2):
            self.send("Orders")
            self.assertEqual(self.connection.user, "billing")
            with self.assertRaisesRegex(NoPermission, "no matched policies"):
                self.send("Secrets")
            self.access, self.table = self.made(None)
            self.access.load()
        wanted = {"subject": "User:billing", **policy("Topic:Orders", "Pub")}
        self.assertEqual(self.ask(3009, subject="User:billing"), wanted)
        self.assertEqual([each["subject"] for each in self.ask(3010)], ["User:billing"])
        self.ask(3002, {"userStatus": "disable"}, username="billing")
        with self.assertRaisesRegex(NoPermission, "is disabled"):
            self.send("Orders")
        self.ask(3008, subject="User:billing")
        self.ask(3003, username="billing")
        self.assertIsNone(self.ask(3004, username="billing"))

    def test_whoMayChange(self) -> None:
        """Others need a policy for the cluster, and make no super users with it."""
        self.make_billing()
        with self.assertRaisesRegex(NoPermission, "Cluster:c"):
            self.ask(3001, {"password": "x"}, BILLING, username="other")
        self.ask(3007, policy("Cluster:*", "All"), subject="User:billing")
        self.ask(3001, {"password": "x"}, BILLING, username="other")
        body = {"password": "x", "userType": "Super"}
        with self.assertRaisesRegex(BrokerError, "only be create by super user"):
            self.ask(3001, body, BILLING, username="another")

    def test_secrets(self) -> None:
        """Nobody but a super user sees passwords; the file is for its owner only, and
        the log has none."""
        lines = logged(self.make_billing)
        self.assertIn("created the user billing", lines[0])
        self.assertIn("root at ", lines[0])
        self.assertNotIn(BILLING.secret_key, "".join(lines))
        self.assertIn(f"{PATH}.tmp", self.disk.secret)
        self.ask(3007, policy("Cluster:*", "Get"), subject="User:billing")
        self.assertEqual(self.ask(3004, username="billing")["password"], "b-secret")
        self.assertNotIn("password", self.ask(3004, by=BILLING, username="root"))
        listed = self.ask(3005, by=BILLING)
        self.assertEqual([each["username"] for each in listed], ["billing", "root"])
        self.assertNotIn("secret", json.dumps(listed))

    def test_explained(self) -> None:
        """Which rule decides; about others only for super users."""
        self.make_billing()
        found = self.ask(31012, by=BILLING, resource="Topic:Orders", action="Pub")
        self.assertEqual((found["user"], found["allowed"]), ("billing", True))
        self.assertIn("Topic:Orders", found["rule"])
        found = self.ask(31012, user="billing", resource="Topic:Other", action="Pub")
        self.assertEqual((found["allowed"], found["generation"]), (False, "2.0"))
        self.assertIn("no matched policies", found["remark"])
        self.assertEqual(self.ask(31012, by=BILLING)["rule"], "user billing: Normal")
        with self.assertRaises(NoPermission):
            self.ask(31012, by=BILLING, user="root")
        with self.assertRaises(BrokerError):
            self.ask(31012, resource="Orders", action="Pub")

    def test_diskThatIsFull(self) -> None:
        """A change counts, and the answer says that it is not kept."""
        self.disk.capacity = self.disk.used()
        with self.assertRaisesRegex(BrokerError, "cannot be written"):
            self.ask(3001, {"password": "x"}, username="other")

    def test_damagedTable(self) -> None:
        """It refuses the start: without it everybody or nobody would be let in."""
        self.make_billing()
        for path in (PATH, f"{PATH}.bak"):
            self.disk.open(path, create=True).truncate(0)
            self.disk.open(path).pwrite(b'{"users": 7}', 0)
        with self.assertRaisesRegex(ConfigurationError, PATH):
            self.made()[0].load()

    def test_nobodyProves(self) -> None:
        """The log says so where policies count and signatures do not."""
        settings = PolicySettings(
            release=Release.V5_3, cluster="c", authentication=False
        )
        table = JsonTable(MemoryDisk(), PATH, at_once, Clock())
        access = PolicyAccess(
            table, settings, (ROOT, None), lambda kept: kept, RefusalLog(lambda: 0.0)
        )
        (line,) = logged(access.load)
        self.assertIn("anybody who names a user", line)

    def test_refusalIsLogged(self) -> None:
        """With the request, the address, and why; others of the same second are not."""

        def refuse() -> None:
            for _ in range(3):
                with self.assertRaises(NoPermission):
                    self.access.before(self.connection, Asked(21, {}))

        words = f"Request 21 of {self.connection.peer} is refused: username cannot be"
        (line,) = logged(refuse)
        self.assertIn(words, line)

    def test_nobody(self) -> None:
        """The log says that everybody is refused."""
        access, _ = self.made(None)
        self.assertIn("everybody is refused", logged(access.load)[0])
