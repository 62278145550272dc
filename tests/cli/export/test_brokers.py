"""Which brokers an export reads, and how."""

from __future__ import annotations

import click
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.cli.cluster.contexts import Context, Contexts, path_of, save
from rocketbroker.cli.exit_status import NotThere
from rocketbroker.cli.export.brokers import source_words


class SourceWordsTests(SynchronousTestCase):
    """L{source_words}."""

    def setUp(self) -> None:
        """One context, and variables of another account."""
        self.environ = {
            "XDG_CONFIG_HOME": self.mktemp(),
            "ROCKETMQ_CLIENT_TLS": "true",
            "ROCKETMQ_CLIENT_ACCESS_KEY": "somebody",
            "ROCKETMQ_CLIENT_SECRET_KEY": "else",
        }
        options = {"access_key": "operator", "secret_key": "secret"}
        known = {"live": Context("a:1", options)}
        save(path_of(self.environ), Contexts(known, "live"))

    def test_context(self) -> None:
        """All that it says, and nothing of variables."""
        wanted = {"nameServer": "a:1", "accessKey": "operator", "secretKey": "secret"}
        self.assertEqual(source_words(None, "live", self.environ), wanted)

    def test_variables(self) -> None:
        """With name servers; the current context does not count."""
        wanted = {
            "nameServer": "b:1",
            "tls": "true",
            "tls.verify": "true",
            "accessKey": "somebody",
            "secretKey": "else",
        }
        self.assertEqual(source_words("b:1", None, self.environ), wanted)
        self.assertEqual(source_words(None, None, self.environ), {})

    def test_wrong(self) -> None:
        """One of both, and one that there is."""
        both = ("b:1", "live", self.environ)
        self.assertRaises(click.UsageError, source_words, *both)
        self.assertRaises(NotThere, source_words, None, "x", self.environ)
