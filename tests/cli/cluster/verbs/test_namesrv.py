"""C{rocketbroker namesrv}."""

from __future__ import annotations

from tests.cli.cluster.cluster import NAME_SERVER, VerbCase


class NameServerTests(VerbCase):
    """A name server in memory, with a broker."""

    def test_settings(self) -> None:
        """Shown by a pattern, and changed."""
        words = ("namesrv", "settings", "ordermessage*")
        (row,) = self.kind("setting", *words)
        self.assertEqual(
            row,
            {"server": NAME_SERVER, "name": "orderMessageEnable", "value": "false"},
        )
        self.call("namesrv", "set", "orderMessageEnable=true", status=2)
        self.call("namesrv", "set", "orderMessageEnable=true", "--yes")
        (row,) = self.kind("setting", *words)
        self.assertEqual(row["value"], "true")
        self.call("namesrv", "settings", "nothing", status=3)
        self.call("namesrv", "set", "nothing", "--yes", status=2)

    def test_permissions(self) -> None:
        """A broker's topics take no messages, until it is permitted again."""
        self.cluster.topic("T", 4)
        name = self.cluster.rig.broker.settings.broker.broker_name
        (row,) = self.kind("change", "namesrv", "wipe", name, "--yes")
        self.assertGreater(row["topics"], 0)
        self.call("message", "send", "T", "hello", status=1)
        (again,) = self.kind("change", "namesrv", "permit", name)
        self.assertEqual(again["topics"], row["topics"])
        self.call("message", "send", "T", "hello")
        self.call("namesrv", "wipe", "nobody", "--yes", status=3)
