"""TLS and keys as options of reads and writes."""

from __future__ import annotations

import pickle

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.auth.signatures import Credentials
from rocketbroker.config.certificates import ClientTls
from rocketbroker.errors import ConfigurationError
from rocketbroker.sources.access import ACCESS, access_words
from rocketbroker.sources.options import ReadOptions, parse_options

LEAST = {"nameServer": "a:1", "subscribe": "T"}

#: All of them.
WORDS = {
    "tls": "true",
    "tls.verify": "false",
    "tls.ca": "/ca",
    "tls.certificate": "/c",
    "tls.key": "/k",
    "tls.keyPassword": "hidden-password",
    "accessKey": "billing",
    "secretKey": "hidden-secret",
    "securityToken": "hidden-token",
}


class AccessTests(SynchronousTestCase):
    """L{AccessOptions}, as parts of a read's options."""

    def test_options(self) -> None:
        """They become what a client takes, and come back as the same words."""
        self.assertEqual({*WORDS}, {one.name for one in ACCESS})
        options = parse_options({**LEAST, **WORDS})
        tls = ClientTls(
            verify=False,
            ca_path="/ca",
            certificate_path="/c",
            key_path="/k",
            key_password="hidden-password",
        )
        keys = Credentials("billing", "hidden-secret", "hidden-token")
        self.assertEqual(options.tls_terms(), tls)
        self.assertEqual(options.credentials(), keys)
        self.assertEqual(access_words(tls, keys), WORDS)
        self.assertEqual(pickle.loads(pickle.dumps(options)), options)

    def test_none(self) -> None:
        """Without them, plain text without signatures."""
        options = parse_options(LEAST)
        self.assertIsNone(options.tls_terms())
        self.assertIsNone(options.credentials())
        self.assertEqual(access_words(None, None), {})

    def test_secretsAreMasked(self) -> None:
        """Where options are shown, and in errors."""
        options = parse_options({**LEAST, **WORDS})
        self.assertNotIn("hidden", repr(options))
        words = {**LEAST, "secretKey": "hidden-secret"}
        error = self.assertRaises(ConfigurationError, parse_options, words)
        self.assertEqual(str(error), "accessKey and secretKey go together")

    def test_wrong(self) -> None:
        """What does not go together is refused, in a sentence."""
        for given, words in (
            ({"tls.ca": "/ca"}, "go with tls=true"),
            ({"tls.verify": "false"}, "go with tls=true"),
            ({"tls": "true", "tls.key": "/k"}, "a certificate and its key go together"),
            ({"accessKey": "k"}, "accessKey and secretKey go together"),
            ({"tls": "perhaps"}, "tls='perhaps'"),
        ):
            error = self.assertRaises(
                ConfigurationError, parse_options, {**LEAST, **given}
            )
            self.assertIn(words, str(error))
        store = {"store": "/s", "subscribe": "T", "tls": "true"}
        error = self.assertRaises(ConfigurationError, parse_options, store)
        self.assertIn("go with nameServer, not with store", str(error))

    def test_othersGetTheSame(self) -> None:
        """Options that are made of these speak in the same way."""
        options = parse_options({**LEAST, **WORDS})
        other = options.with_access_for(ReadOptions(name_server="b:1"))
        self.assertEqual(other.name_server, "b:1")
        self.assertEqual(other.credentials(), options.credentials())
        self.assertEqual(other.tls_terms(), options.tls_terms())
