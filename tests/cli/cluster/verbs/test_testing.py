"""C{rocketbroker testing}."""

from __future__ import annotations

from tests.cli.cluster.cluster import BROKER, VerbCase

DAY = 86_400_000


class TestingModeTests(VerbCase):
    """A broker in testing mode."""

    is_testing = True

    def test_time(self) -> None:
        """It is shown, and moved."""
        (row,) = self.kind("time", "testing", "time")
        self.assertEqual((row["broker"], row["ahead"]), ("broker-a", 0))
        (row,) = self.kind("time", "testing", "time", "+3d", "--keep-clients")
        self.assertEqual(row["ahead"], 3 * DAY)
        self.assertIn("3 d", self.call("testing", "time", "--broker", BROKER).stdout)

    def test_timesThatAreNone(self) -> None:
        """They are refused in words."""
        for words in (("3",), ("--", "-3d")):
            result = self.call("testing", "time", *words, status=1)
            self.assertIn("is no span of time: give +3d", result.stderr)

    def test_faults(self) -> None:
        """Added, listed with their hits, and cleared."""
        words = "--group G --request send --request 15 --times 3 --owner me"
        added = ("testing", "fault", "add", "flush-timeout", "--topic", "T")
        (row,) = self.kind("change", *added)
        self.assertEqual(row, {"fault": 1, "broker": "broker-a", "outcome": "added"})
        self.call("testing", "fault", "add", "busy", *words.split())
        self.cluster.topic("T", 1)
        self.call("message", "send", "T", "hello")
        first, second = self.kind("fault", "testing", "fault", "list")
        self.assertEqual((first["action"], first["hits"]), ("flush_timeout", 1))
        self.assertIsNotNone(first["last"])
        self.assertEqual(second["request"], "10,15,310,320")
        self.assertEqual((second["times"], second["owner"]), (3, "me"))
        (row,) = self.kind("change", "testing", "fault", "clear", "--owner", "me")
        self.assertEqual(row["outcome"], "1 removed")
        self.call("testing", "fault", "clear", "1")
        self.call("testing", "fault", "clear", "1", status=3)
        (row,) = self.kind("change", "testing", "fault", "clear")
        self.assertEqual(row["outcome"], "0 removed")

    def test_senselessFault(self) -> None:
        """The broker says what is wrong."""
        result = self.call("testing", "fault", "add", "explode", status=1)
        self.assertIn("it is one of code, delay, drop", result.stderr)


class OtherModeTests(VerbCase):
    """A broker like any other."""

    def test_isTold(self) -> None:
        """With what is in testing mode."""
        for words in ("time", "fault list", "fault clear", "fault add drop"):
            result = self.call("testing", *words.split(), status=1)
            self.assertIn("broker-a is not in testing mode: ", result.stderr)
