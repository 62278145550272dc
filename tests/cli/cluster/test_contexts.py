"""Which name servers are asked."""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.cli.cluster.contexts import Contexts, choose, load, path_of, save
from rocketbroker.cli.exit_status import NotThere
from rocketbroker.errors import ConfigurationError


class ContextTests(SynchronousTestCase):
    """A file of two contexts."""

    def setUp(self) -> None:
        """Write it."""
        self.environ = {"XDG_CONFIG_HOME": os.path.abspath(self.mktemp())}
        self.path = path_of(self.environ)
        save(self.path, Contexts({"test": "t:1", "live": "a:1;b:2"}, "test"))

    def test_order(self) -> None:
        """Flag, context, RocketMQ's two variables, current context, this machine."""
        names = {"NAMESRV_ADDR": "n:2"}
        both = {**names, "ROCKETMQ_NAMESRV": "n:1", **self.environ}
        self.assertEqual(choose("f:1", "live", both), "f:1")
        self.assertEqual(choose(None, "live", both), "a:1;b:2")
        self.assertEqual(choose(None, None, both), "n:1")
        self.assertEqual(choose(None, None, {**names, **self.environ}), "n:2")
        self.assertEqual(choose(None, None, self.environ), "t:1")
        nowhere = {"XDG_CONFIG_HOME": self.mktemp()}
        self.assertEqual(choose(None, None, nowhere), "127.0.0.1:9876")

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
