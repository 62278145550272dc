"""C{rocketbroker context}."""

from __future__ import annotations

import json
import os

from rocketbroker.app.certificates import self_signed
from tests.cli.cluster.cluster import NAME_SERVER, VerbCase
from tests.missing import needs


class ContextTests(VerbCase):
    """Names for name servers, in a file of the user's."""

    def test_life(self) -> None:
        """Set, used, listed, deleted."""
        self.call("context", "set", "test", NAME_SERVER, "--use")
        self.call("context", "set", "live", "a:1;b:2")
        wanted = (
            "current  name  namesrv  tls  access_key\n"
            "-        live  a:1;b:2  no   -\n"
            "*        test  ns:9876  no   -\n"
        )
        self.assertEqual(self.call("context", "ls").stdout, wanted)
        self.call("topic", "ls", "--context", "test")
        result = self.call("topic", "ls", "--context", "live", status=1)
        self.assertIn("cannot connect", result.stderr)
        self.call("context", "use", "live")
        self.call("context", "delete", "live")
        self.assertNotIn("live", self.call("context", "ls").stdout)
        self.call("context", "show", status=2)

    def path(self, name: str, content: str = "") -> str:
        """A file."""
        path = os.path.abspath(self.mktemp())
        os.mkdir(path)
        path = os.path.join(path, name)
        with open(path, "w") as file:
            file.write(content)
        return path

    def kept(self, name: str) -> dict[str, object]:
        """What the file has of a context."""
        with open(os.path.join(self.home, "rocketbroker", "contexts.json")) as file:
            found = json.load(file)["contexts"][name]
        assert isinstance(found, dict)
        return found

    def test_keysSignRequests(self) -> None:
        """By a context with keys all requests are signed, of messages, too; the secret
        is kept, and shown nowhere."""
        secret = self.path("secret", "hidden-secret\n")
        keys = ("--access-key", "operator", "--secret-key-file", secret)
        self.call("context", "set", "test", NAME_SERVER, *keys, "--use")
        self.assertEqual(self.kept("test")["secret_key"], "hidden-secret")
        for verb in ("show", "ls"):
            result = self.call("context", verb)
            self.assertIn("operator", result.output)
            self.assertNotIn("hidden", result.output)
        self.assertIn("***", self.call("context", "show", "test").stdout)
        self.cluster.topic("T", 1)
        for words in (("topic", "ls"), ("message", "send", "T", "body")):
            self.cluster.machine.requests.clear()
            self.call(*words, "--context", "test")
            found = [command.ext or {} for _, command in self.cluster.machine.requests]
            self.assertEqual({ext.get("AccessKey") for ext in found}, {"operator"})
            self.assertTrue(all(ext.get("Signature") for ext in found))

    def test_environmentSigns(self) -> None:
        """Its keys count for name servers that a flag or a variable names, and not for
        those of a context."""
        self.environ = {
            "ROCKETMQ_CLIENT_ACCESS_KEY": "somebody",
            "ROCKETMQ_CLIENT_SECRET_KEY": "hidden-secret",
        }
        self.call("context", "set", "test", NAME_SERVER)
        for words, wanted in (
            ((), "somebody"),
            (("-n", NAME_SERVER), "somebody"),
            (("--context", "test"), None),
        ):
            self.call("topic", "ls", *words)
            command = self.cluster.machine.requests[-1][1]
            self.assertEqual((command.ext or {}).get("AccessKey"), wanted)

    @needs("cryptography")
    def test_tls(self) -> None:
        """What says something of TLS says that it is spoken; paths become absolute."""
        certificate, _ = self_signed(["localhost"])
        ca = self.path("ca.pem", certificate.decode())
        for words, wanted in (
            (["--tls"], {}),
            (["--no-tls-verify"], {"tls_verify": False}),
            (["--tls-ca", os.path.relpath(ca)], {"tls_ca": ca}),
        ):
            self.call("context", "set", "a", "a:1", *words)
            self.assertEqual(self.kept("a"), {"namesrv": "a:1", "tls": True, **wanted})

    def test_badAccess(self) -> None:
        """Nothing is kept of what cannot work, and no secret is an argument."""
        empty, key = self.path("empty"), self.path("key", "no PEM")
        for words, status, sentence in (
            (("--tls-ca", "/none"), 1, "/none cannot be read"),
            (("--tls-ca", key), 1, "has no certificates in PEM"),
            (("--tls-key", key), 1, "a certificate and its key go together"),
            (("--access-key", "k"), 2, "nobody can be asked"),
            (("--secret-key-file", key), 2, "goes with --access-key"),
            (("--access-key", "k", "--secret-key-file", empty), 2, "has to hold"),
            (("--access-key", "k", "--secret-key", "hidden"), 2, "No such option"),
        ):
            result = self.call("context", "set", "x", "a:1", *words, status=status)
            self.assertIn(sentence, result.stderr)
        self.assertEqual(self.call("context", "ls").stdout, "")

    def test_wrong(self) -> None:
        """One that is not there is 3; what is no address is refused."""
        for words in (("use", "x"), ("delete", "x")):
            self.assertIn("no context x", self.call("context", *words, status=3).stderr)
        self.call("topic", "ls", "--context", "x", status=3)
        self.call("context", "set", "x", "nowhere", status=1)
        self.assertEqual(self.call("context", "ls").stdout, "")
