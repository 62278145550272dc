"""How the command line speaks to a cluster."""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.auth.signatures import Credentials
from rocketbroker.cli.cluster.access import (
    NAMES,
    Access,
    access_of,
    access_of_environment,
    client_options,
    keys_of_mqadmin,
)
from rocketbroker.client.options import client_settings
from rocketbroker.client.settings import ClientSettings
from rocketbroker.config.certificates import ClientTls
from rocketbroker.errors import ConfigurationError

KEYS = Credentials("operator", "hidden-secret", "token")


class AccessTests(SynchronousTestCase):
    """L{access_of} and its reverse."""

    def test_clientsGetAllOptions(self) -> None:
        """A session has the access of the command, also where variables say another."""
        environ = {f"ROCKETMQ_CLIENT_{name.upper()}": "x" for name in NAMES}
        environ |= {"ROCKETMQ_CLIENT_TLS": "true", "ROCKETMQ_CLIENT_TLS_VERIFY": "true"}
        for access in (
            Access(),
            Access(tls=ClientTls(), credentials=KEYS),
            Access(tls=ClientTls(verify=False)),
        ):
            options = client_options(access)
            settings, _ = client_settings("a:1", options, environ)
            self.assertEqual(settings.tls_terms(), access.tls)
            self.assertEqual(settings.credentials(), access.credentials)

    def test_namesAreThoseOfClients(self) -> None:
        """All options of our clients that are about access, and no other."""
        fields = ClientSettings.__annotations__
        wanted = [n for n in fields if n.startswith(("tls", "access", "sec"))]
        self.assertEqual(sorted(NAMES), sorted({*wanted} - {"seconds"}))

    def test_environment(self) -> None:
        """Each variable counts; others, and empty ones, do not."""
        environ = {
            "ROCKETMQ_CLIENT_TLS": "true",
            "ROCKETMQ_CLIENT_TLS_VERIFY": "no",
            "ROCKETMQ_CLIENT_TLS_CA": "",
            "ROCKETMQ_CLIENT_ACCESS_KEY": "operator",
            "ROCKETMQ_CLIENT_SECRET_KEY": "hidden-secret",
            "ROCKETMQ_CLIENT_SECURITY_TOKEN": "token",
            "ROCKETMQ_CLIENT_PATIENCE": "bad",
        }
        wanted = Access(tls=ClientTls(verify=False), credentials=KEYS)
        self.assertEqual(access_of_environment(environ), wanted)
        self.assertEqual(access_of_environment({}), Access())

    def test_mistakes(self) -> None:
        """They are told with whose they are, and without secrets."""
        for options, words in (
            ({"secret_key": "hidden"}, "c: access_key and secret_key go together"),
            ({"tls_ca": "/none"}, "c: settings of TLS go with tls=True"),
            ({"tls": True, "tls_ca": "/none"}, "c: /none cannot be read"),
            ({"tls": "perhaps"}, "c: tls has to be true or false"),
            ({"tls_caa": "x"}, "c has an unknown option tls_caa"),
        ):
            error = self.assertRaises(ConfigurationError, access_of, options, "c")
            self.assertIn(words, str(error))


class ToolsTests(SynchronousTestCase):
    """The file of mqadmin."""

    def setUp(self) -> None:
        """A home without one."""
        self.home = os.path.abspath(self.mktemp())
        os.makedirs(os.path.join(self.home, "conf"))

    def keys(self, text: str) -> Credentials | None:
        """What a file says."""
        with open(os.path.join(self.home, "conf", "tools.yml"), "w") as file:
            file.write(text)
        return keys_of_mqadmin({"ROCKETMQ_HOME": self.home})

    def test_keys(self) -> None:
        """Those of RocketMQ's file; a number is a text."""
        text = "accessKey: rocketmq2\nsecretKey: 12345678\n"
        self.assertEqual(self.keys(text), Credentials("rocketmq2", "12345678"))

    def test_none(self) -> None:
        """Without a home, a file, or one of the keys nothing is signed."""
        self.assertIsNone(keys_of_mqadmin({}))
        self.assertIsNone(keys_of_mqadmin({"ROCKETMQ_HOME": self.home}))
        for text in ("", "# nothing\n", "accessKey: a\n"):
            self.assertIsNone(self.keys(text))

    def test_damaged(self) -> None:
        """The file is named, and not repeated."""
        for text in ("- hidden", "secretKey: 'hidden", "hidden: [", "hidden"):
            error = self.assertRaises(ConfigurationError, self.keys, text)
            self.assertIn("tools.yml has to have accessKey", str(error))
            self.assertNotIn("hidden", str(error))
