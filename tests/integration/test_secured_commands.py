"""The command line at a cluster that speaks only TLS and controls access."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from click.testing import CliRunner, Result
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.cli.command import command
from scripts.lab.servers import Cluster, environment
from tests.integration.secured import POLICIES, SecuredCluster
from tests.integration.verbs import told
from tests.missing import needs

#: What the story has no verb of.
MORE = (
    "topic create Orders",
    "top --once",
    "bench send Orders --seconds 0.1 -o jsonl",
    "bench receive Orders --seconds 0.5 -o jsonl",
    "message receive Orders -g billing -c 1",
    "doctor",
    "broker status broker-a",
    "broker replicas",
    "broker services broker-a",
    "namesrv settings",
    "mqadmin topicList",
)

COMMAND = (sys.executable, "-m", "rocketbroker.cli.command")

#: How long a terminal is waited for, in seconds.
SECONDS = 60.0


class Terminal:
    """The command at a terminal of its own.

    @ivar seen: what it has shown until now.
    """

    def __init__(self, line: str, environ: Mapping[str, str]) -> None:
        self.seen = b""
        self._process, self._end = pty.fork()
        if not self._process:
            os.execve(COMMAND[0], [*COMMAND, *line.split()], {**environ})

    def answer(self, question: bytes, text: bytes) -> None:
        """Wait for a question, and type a line."""
        while question not in self.seen:
            self.seen += self._more()
        os.write(self._end, text + b"\n")

    def _more(self) -> bytes:
        if not select.select([self._end], [], [], SECONDS)[0]:
            raise AssertionError(f"it only shows {self.seen!r}")
        return os.read(self._end, 4096)

    def status(self) -> int:
        """Read all, and wait for its end."""
        with contextlib.suppress(OSError):  # the other end is closed
            while data := self._more():
                self.seen += data
        os.close(self._end)
        return os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])


class SecuredCase(SynchronousTestCase):
    """Calls of verbs at a cluster.

    @cvar settings: of its broker.
    """

    settings: ClassVar[dict[str, str]] = {}

    def setUp(self) -> None:
        """The cluster, and a directory for contexts."""
        self.secured = SecuredCluster(Path(self.mktemp()), **self.settings)
        self.addCleanup(self.secured.cluster.stop)
        self.secured.cluster.start()
        self.environ = {"XDG_CONFIG_HOME": str(self.secured.folder)}

    def call(
        self,
        line: str,
        status: int = 0,
        stdin: str = "",
        variables: Mapping[str, str] = {},
    ) -> Result:
        """Call a verb; nothing that it says has a secret."""
        environ = {**self.environ, **variables}
        result = CliRunner().invoke(command, line.split(), input=stdin, env=environ)
        self.assertEqual(result.exit_code, status, (line, result.output))
        self.assertNotIn("hidden", result.output)
        return result


@needs("cryptography")
class SecuredCommandTests(SecuredCase):
    """Verbs with access, and without."""

    def test_verbs(self) -> None:
        """Every verb works with the environment's access, and with a context's."""
        keys = "--access-key administrator --secret-key-file -"
        words = f"context set live {self.secured.names} --tls-ca {self.secured.ca}"
        self.call(f"{words} {keys} --use", stdin="hidden-admin-secret\n")
        names = self.secured.names
        for where, option, variables in (
            (names, "-n", self.secured.variables() | {"ROCKETMQ_NAMESRV": names}),
            ("live", "--context", {}),
        ):
            environ = {**self.environ, **variables}
            for line, wanted, found, _ in told(where, environ, option):
                self.assertEqual(found, wanted, (option, line))
            for line in MORE:
                more = "" if line.startswith("mqadmin") else f" {option} {where}"
                self.call(line + more, variables=variables)
            for left in (
                "topic delete Orders",
                "topic delete Nowhere",
                "group delete H",
            ):
                self.call(f"{left} --yes {option} {where}", variables=variables)

    def test_secretIsAskedFor(self) -> None:
        """At a terminal, which does not show it."""
        names, ca = self.secured.names, self.secured.ca
        line = f"context set asked {names} --tls-ca {ca} --access-key administrator"
        terminal = Terminal(line, {**environment(), **self.environ})
        terminal.answer(b"Secret of administrator:", b"hidden-admin-secret")
        self.assertEqual(terminal.status(), 0, terminal.seen)
        self.assertNotIn(b"hidden", terminal.seen)
        self.call("cluster ls --context asked")

    def test_keysOfTheTools(self) -> None:
        """mqadmin's names sign with mqadmin's file."""
        tools = self.secured.folder / "conf" / "tools.yml"
        line = f"mqadmin clusterList -n {self.secured.names}"
        environ = {
            "ROCKETMQ_HOME": str(self.secured.folder),
            "ROCKETMQ_CLIENT_TLS": "true",
            "ROCKETMQ_CLIENT_TLS_VERIFY": "false",
        }
        self.call(line, 1, variables=environ)
        tools.write_text("accessKey: administrator\nsecretKey: hidden-admin-secret\n")
        self.call(line, variables=environ)

    def test_doctor(self) -> None:
        """It asks as a stranger: nothing is open here; and looks at certificates."""
        variables = self.secured.variables()
        line = f"doctor -n {self.secured.names} -o json"
        found = json.loads(self.call(line, variables=variables).stdout)
        self.assertEqual([row for row in found if row["of"] == "access"], [])
        valid = [row for row in found if "is valid until" in row["found"]]
        self.assertEqual([row["status"] for row in valid], ["ok", "ok"])
        variables["ROCKETMQ_CLIENT_TLS_VERIFY"] = "false"
        text = self.call(line, variables=variables).stdout
        self.assertEqual(text.count("nobody has signed its certificate"), 2)
        open_one = Cluster()
        self.addCleanup(open_one.stop)
        open_one.start()
        text = self.call(f"doctor -n {open_one.names} -o json").stdout
        self.assertIn("answer without TLS", text)
        self.assertIn("without an account", text)
        self.assertNotIn('"problem"', text)

    def test_advice(self) -> None:
        """What is missing is said, and how to give it."""
        names = self.secured.names
        untrusted = {"ROCKETMQ_CLIENT_TLS": "true"}
        unsigned = {**untrusted, "ROCKETMQ_CLIENT_TLS_CA": str(self.secured.ca)}
        for variables, words in (
            ({}, "ROCKETMQ_CLIENT_TLS=true"),
            (untrusted, "--tls-ca FILE"),
            (unsigned, "--access-key KEY"),
            (self.secured.variables(secret="hidden-guess"), "--access-key KEY"),
        ):
            result = self.call(f"topic ls -n {names}", 1, variables=variables)
            self.assertIn(words, result.stderr)


@needs("cryptography")
class PolicyCommandTests(SecuredCase):
    """Users and policies of ACL 2.0."""

    settings = POLICIES

    def test_users(self) -> None:
        """A super user makes another one, and says what that one may do."""
        names = self.secured.names
        servers = {"ROCKETMQ_NAMESRV": names}
        root = self.secured.variables("root", "hidden-root-secret") | servers
        billing = self.secured.variables("billing", "hidden-b-secret") | servers
        for line, wanted, found, _ in told(names, {**self.environ, **root}):
            self.assertEqual(found, wanted, line)
        for line in ("topic create Orders", "topic create Secrets"):
            self.call(line, variables=root)
        self.call("whoami", 1, variables=billing)
        line = "user create billing --password-file -"
        self.call(line, stdin="hidden-b-secret\n", variables=root)
        for line in (
            "acl create billing Topic:Orders --actions pub,sub,get",
            "acl create billing Group:billing --actions sub",
        ):
            self.call(line, variables=root)
        self.assertIn("user billing", self.call("whoami", variables=billing).stdout)
        for line, status in (
            ("can-i pub topic Orders", 0),
            ("can-i pub topic Secrets", 1),
            ("message send Orders x", 0),
            ("message send Secrets x", 1),
            ("message receive Orders -g billing -c 1", 0),
            ("user ls", 1),
        ):
            self.call(line, status, variables=billing)
        self.call("mqadmin updateUser -u billing -s disable", variables=root)
        self.call("message send Orders x", 1, variables=billing)
        self.call("mqadmin deleteUser -u billing", variables=root)
        self.call("acl show billing", 3, variables=root)
