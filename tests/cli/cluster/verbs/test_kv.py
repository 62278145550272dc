"""C{rocketbroker kv}."""

from __future__ import annotations

from tests.cli.cluster.cluster import NAME_SERVER, VerbCase


class KeyValueTests(VerbCase):
    """Settings of a name server in memory."""

    def test_pairs(self) -> None:
        """Set, seen, and deleted."""
        (row,) = self.kind("change", "kv", "set", "N", "k", "v w")
        self.assertEqual(row, {"key": "k", "server": NAME_SERVER, "outcome": "set"})
        self.assertEqual(
            self.kind("pair", "kv", "ls", "N"), [{"key": "k", "value": "v w"}]
        )
        self.assertEqual(self.call("kv", "get", "N", "k").stdout, "v w\n")
        self.call("kv", "delete", "N", "k", status=2)
        self.assertEqual(self.call("kv", "get", "N", "k").stdout, "v w\n")
        self.call("kv", "delete", "N", "k", "--yes")
        for words in (("get", "N", "k"), ("delete", "N", "k", "--yes")):
            result = self.call("kv", *words, status=3)
            self.assertIn("There is no k in N.", result.stderr)

    def test_noNamespace(self) -> None:
        """A namespace that is not there is 3."""
        result = self.call("kv", "ls", "X", status=3)
        self.assertIn("There is no namespace X.", result.stderr)
