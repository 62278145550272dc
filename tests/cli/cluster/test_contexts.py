"""Which name servers are asked, and how."""

from __future__ import annotations

import os
import stat

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.auth.signatures import Credentials
from rocketbroker.cli.cluster.access import Access
from rocketbroker.cli.cluster.contexts import (
    Context,
    Contexts,
    choose,
    load,
    path_of,
    save,
)
from rocketbroker.cli.exit_status import NotThere
from rocketbroker.config.certificates import ClientTls
from rocketbroker.errors import ConfigurationError

#: The options of a context with a secret.
SIGNED = {"access_key": "operator", "secret_key": "hidden-secret"}

#: Variables that say how a cluster is spoken to.
VARIABLES = {
    "ROCKETMQ_CLIENT_TLS": "true",
    "ROCKETMQ_CLIENT_ACCESS_KEY": "somebody",
    "ROCKETMQ_CLIENT_SECRET_KEY": "else",
}


class ContextTests(SynchronousTestCase):
    """A file of two contexts."""

    def setUp(self) -> None:
        """Write it."""
        self.environ = {"XDG_CONFIG_HOME": os.path.abspath(self.mktemp())}
        self.path = path_of(self.environ)
        known = {"test": Context("t:1"), "live": Context("a:1;b:2", SIGNED)}
        save(self.path, Contexts(known, "test"))

    def test_order(self) -> None:
        """Flag, context, RocketMQ's two variables, current context, this machine."""
        names = {"NAMESRV_ADDR": "n:2"}
        both = {**names, "ROCKETMQ_NAMESRV": "n:1", **self.environ}
        nowhere = {"XDG_CONFIG_HOME": self.mktemp()}
        for namesrv, context, environ, wanted in (
            ("f:1", "live", both, "f:1"),
            (None, "live", both, "a:1;b:2"),
            (None, None, both, "n:1"),
            (None, None, {**names, **self.environ}, "n:2"),
            (None, None, self.environ, "t:1"),
            (None, None, nowhere, "127.0.0.1:9876"),
        ):
            found = choose(namesrv, context, environ)
            self.assertEqual(found.name_servers, wanted)

    def test_access(self) -> None:
        """A context says all of it, whatever variables say; else those count."""
        environ = {**self.environ, **VARIABLES}
        signed = Access(credentials=Credentials("operator", "hidden-secret"))
        self.assertEqual(choose(None, "live", environ).access, signed)
        self.assertEqual(choose(None, None, environ).access, Access())
        keys = Credentials("somebody", "else")
        told = Access(tls=ClientTls(), credentials=keys)
        self.assertEqual(choose("f:1", None, environ).access, told)
        environ["NAMESRV_ADDR"] = "n:2"
        self.assertEqual(choose(None, None, environ).access, told)

    def test_onlyTheOwnerReadsTheFile(self) -> None:
        """From its first byte on, whatever was there, and whatever is left over."""
        for path in (self.path, f"{self.path}.tmp"):
            with open(path, "w"):
                os.chmod(path, 0o666)
        left = os.stat(f"{self.path}.tmp").st_ino
        before = os.umask(0)
        try:
            with open(f"{self.path}.tmp") as opened:
                save(self.path, Contexts({"live": Context("a:1", SIGNED)}))
                self.assertEqual(opened.read(), "")
        finally:
            os.umask(before)
        state = os.stat(self.path)
        self.assertEqual(stat.S_IMODE(state.st_mode), 0o600)
        self.assertNotEqual(state.st_ino, left)
        self.assertEqual(load(self.path).of("live").options, SIGNED)

    def test_secretsAreNotRepeated(self) -> None:
        """Neither by a value nor by an error."""
        self.assertNotIn("hidden-secret", repr(load(self.path)))
        self.assertNotIn("hidden-secret", repr(choose(None, "live", self.environ)))
        wrong = Context("a:1", {"secret_key": "hidden-secret"})
        save(self.path, Contexts({"live": wrong}))
        error = self.assertRaises(
            ConfigurationError, choose, None, "live", self.environ
        )
        self.assertEqual(
            str(error), "context live: access_key and secret_key go together"
        )

    def test_unknown(self) -> None:
        """A context that is not there is told, with those that are."""
        error = self.assertRaises(NotThere, choose, None, "x", self.environ)
        self.assertIn("There is no context x; there are: live, test.", str(error))

    def test_home(self) -> None:
        """Without XDG_CONFIG_HOME the file is below .config."""
        path = path_of({"HOME": "/h"})
        self.assertEqual(path, "/h/.config/rocketbroker/contexts.json")

    def test_damaged(self) -> None:
        """A file that holds something else is told by its name, not overwritten."""
        for text in ("", "[]", '{"contexts": {"x": {}}}', '{"contexts": []}'):
            with open(self.path, "w") as file:
                file.write(text)
            error = self.assertRaises(ConfigurationError, load, self.path)
            self.assertIn(self.path, str(error))
