"""ACL 1.0 before the requests of a broker, and the requests that change it."""

from __future__ import annotations

from typing import Any, cast

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.auth.request import Asked
from rocketbroker.auth.signatures import Credentials, sign
from rocketbroker.broker.access.plain_access import PlainAccess
from rocketbroker.broker.access.plain_files import PlainFiles
from rocketbroker.errors import SystemFailure
from rocketbroker.remoting.refusal_log import RefusalLog
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.threads import Threads
from rocketbroker.wire import fastjson
from rocketbroker.wire.command import VERSION, Command
from tests.broker.rig import logged

OPS = Credentials("operator", "op-secret")
KEYS = {"accessKey": "long-enough", "secretKey": "s-long-enough"}
PLACE = {"brokerName": "b", "brokerAddr": "1.2.3.4:5", "clusterName": "c"}


class PlainAccessTests(SynchronousTestCase):
    """L{PlainAccess}."""

    def setUp(self) -> None:
        """One administrator, who is made by a request."""
        self.disk = MemoryDisk()
        self.threads = Threads()
        files = PlainFiles(self.disk, "/home")
        refusals = RefusalLog(lambda: 0.0)
        self.access = PlainAccess(files, self.threads, lambda: 7, PLACE, refusals)
        self.table = ResponderTable()
        self.access.register(self.table)
        self.connection = RecordedConnection()
        self.warnings = logged(self.access.load)
        self.assertEqual(
            self.ask(50, accessKey="operator", secretKey="op-secret", admin="true"),
            (0, None),
        )

    def ask(self, code: int, **fields: str) -> tuple[int, str | None]:
        answer = self.answer(code, **fields)
        return answer.code, answer.remark

    def answer(self, code: int, **fields: str) -> Command:
        """The answer to a request that has been let in."""
        found = self.table.responders[code](self.connection, Command(code, fields))
        if isinstance(found, Command):
            return found
        self.threads.run()
        return cast(Command, self.successResultOf(found))  # type: ignore[arg-type]

    def test_noAccounts(self) -> None:
        """The log says that everybody is refused, and where accounts are to be."""
        (line,) = self.warnings
        self.assertIn("/home/conf/plain_acl.yml", line)

    def test_hook(self) -> None:
        """What is signed is let in, and the connection knows for whom; all else is
        refused and counted."""
        fields = sign({"topic": "T"}, b"", OPS)
        self.access.before(self.connection, Asked(17, fields, source="9.9.9.9"))
        self.assertEqual(self.connection.who, f"operator at {self.connection.peer}")
        for wrong in ({}, {**fields, "topic": "U"}, {**fields, "AccessKey": "other"}):
            with self.assertRaises(SystemFailure) as caught:
                self.access.before(self.connection, Asked(17, wrong))
            self.assertIn("AclException: ", caught.exception.remark)
        self.assertEqual(self.access.refused, 3)

    def test_queriesByKey(self) -> None:
        """The mark of a unique key is signed, as clients do since 4.9.4; 4.9.8 refuses
        it from its own clients."""
        fields = {"topic": "T", "_UNIQUE_KEY_QUERY": "true"}
        marked = Asked(12, sign(fields, b"", OPS), version=VERSION)
        self.access.before(self.connection, marked)
        late = {**sign({"topic": "T"}, b"", OPS), "_UNIQUE_KEY_QUERY": "true"}
        self.access.before(self.connection, Asked(12, late, version=399))
        with self.assertRaises(SystemFailure):
            self.access.before(self.connection, Asked(12, late, version=VERSION))

    def test_changes(self) -> None:
        """They are in the file, and in a line of the log that names the user."""
        self.connection.user = "operator"
        lines = logged(
            lambda: self.ask(50, accessKey="application", secretKey="app-secret")
        )
        who = f"operator at {self.connection.peer}"
        self.assertEqual(lines, [f"{who} changed the account application."])
        for secret in ("app-secret", "op-secret"):
            self.assertNotIn(secret, "".join(lines))
            self.assertIn(secret, self.disk.read("/home/conf/plain_acl.yml").decode())
        found = cast(Any, fastjson.loads(self.answer(54).body))
        self.assertEqual(
            [each["accessKey"] for each in found["plainAccessConfigs"]],
            ["operator", "application"],
        )
        self.assertEqual(self.ask(51, accessKey="application"), (0, None))
        self.assertEqual(self.ask(53, globalWhiteAddrs="9.9.9.9"), (0, None))
        self.access.before(self.connection, Asked(17, {}, source="9.9.9.9"))
        answer = self.answer(52)
        ext = answer.ext or {}
        self.assertEqual({key: ext[key] for key in PLACE}, PLACE)
        version = cast(Any, fastjson.loads(ext["version"].encode()))
        self.assertEqual(version["counter"], 4)

    def test_accountsThatAreNoAdministrators(self) -> None:
        """Their signature is right, and they change no accounts; 4.9 lets them, and so
        each account could make itself an administrator."""
        self.ask(50, **KEYS)
        keys = Credentials("long-enough", "s-long-enough")
        for code in (50, 51, 52, 53, 54):
            with self.assertRaisesRegex(SystemFailure, "Need admin permission"):
                self.access.before(self.connection, Asked(code, sign({}, b"", keys)))
            self.access.before(self.connection, Asked(code, sign({}, b"", OPS)))

    def test_refusedChanges(self) -> None:
        """Each kind has a code of its own, and the words say why."""
        for code, failed, fields in (
            (50, 209, {"accessKey": "short", "secretKey": "s"}),
            (50, 209, {**KEYS, "topicPerms": "a=B"}),
            (51, 210, {"accessKey": "nobody"}),
            (53, 211, {"globalWhiteAddrs": "1.2.*", "aclFileFullPath": ""}),
            (
                53,
                211,
                {"globalWhiteAddrs": "1.2.3.4", "aclFileFullPath": "/etc/x"},
            ),
        ):
            found, remark = self.ask(code, **fields)
            self.assertEqual(found, failed, fields)
            self.assertTrue(remark)

    def test_filesThatChange(self) -> None:
        """They are taken at the next look, and the log says so; and what is wrong."""
        path = "/home/conf/plain_acl.yml"
        self.disk.now_ms += 1000
        self.disk.open(path).truncate(0)
        self.disk.open(path).pwrite(b"accounts: [", 0)

        def look() -> None:
            self.access.look()
            self.threads.run()

        lines = logged(look)
        self.assertEqual(lines[0], "The accounts of ACL 1.0 were read again.")
        self.assertIn(path, lines[1])
        self.assertEqual(logged(look), [])
