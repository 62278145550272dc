"""C{rocketbroker context}."""

from __future__ import annotations

from tests.cli.cluster.cluster import NAME_SERVER, VerbCase


class ContextTests(VerbCase):
    """Names for name servers, in a file of the user's."""

    def test_life(self) -> None:
        """Set, used, listed, deleted."""
        self.call("context", "set", "test", NAME_SERVER, "--use")
        self.call("context", "set", "live", "a:1;b:2")
        wanted = (
            "current  name  namesrv\n-        live  a:1;b:2\n*        test  ns:9876\n"
        )
        self.assertEqual(self.call("context", "ls").stdout, wanted)
        self.call("topic", "ls", "--context", "test")
        result = self.call("topic", "ls", "--context", "live", status=1)
        self.assertIn("cannot connect", result.stderr)
        self.call("context", "use", "live")
        self.call("context", "delete", "live")
        wanted = "current  name  namesrv\n-        test  ns:9876\n"
        self.assertEqual(self.call("context", "ls").stdout, wanted)

    def test_wrong(self) -> None:
        """One that is not there is 3; what is no address is refused."""
        for words in (("use", "x"), ("delete", "x")):
            self.assertIn("no context x", self.call("context", *words, status=3).stderr)
        self.call("topic", "ls", "--context", "x", status=3)
        self.call("context", "set", "x", "nowhere", status=1)
        self.assertEqual(self.call("context", "ls").stdout, "")
