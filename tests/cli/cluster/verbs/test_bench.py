"""C{rocketbroker bench}."""

from __future__ import annotations

from rocketbroker.cli.cluster.verbs.bench import percentiles
from rocketbroker.wire.codes import ResponseCode
from tests.cli.cluster.cluster import VerbCase, refusal

SEND = 310


class BenchTests(VerbCase):
    """Loads on a broker in memory."""

    def setUp(self) -> None:
        """A topic."""
        super().setUp()
        self.cluster.topic("T", 1)

    def stored(self) -> int:
        """How many messages there are."""
        return self.cluster.rig.store.queue("T", 0).next_offset

    def test_count(self) -> None:
        """As many as are wanted are sent, and received again."""
        words = ("bench", "send", "T", "--threads", "1", "--count", "7", "--size", "5")
        (row,) = self.rows(*words)
        self.assertEqual((row["sent"], row["errors"]), (7, 0))
        self.assertNotIn("last_error", row)
        self.assertEqual(self.stored(), 7)
        for wanted, expected in (("3", 3), ("70", 7)):
            (row,) = self.rows("bench", "receive", "T", "--count", wanted)
            self.assertEqual(row["received"], expected)
        (row,) = self.rows("bench", "receive", "T")
        self.assertEqual(row["received"], 7)

    def test_rate(self) -> None:
        """At a rate, until the time is over; late answers delay nobody's due time."""
        words = ("--threads", "1", "--rate", "5", "--seconds", "2")
        (row,) = self.rows("bench", "send", "T", *words)
        self.assertEqual((row["sent"], self.stored()), (10, 10))
        self.assertEqual((row["seconds"], row["max_ms"]), (1.8, 0))
        machine = self.cluster.machine

        def later() -> None:
            machine.now += 0.5

        machine.meanwhile = later
        (row,) = self.rows("bench", "send", "T", *words)
        self.assertEqual(row["sent"], 10)
        self.assertGreaterEqual(row["max_ms"], 500)

    def test_errors(self) -> None:
        """Sends that fail are counted, with the last reason."""
        self.cluster.faults[SEND] = refusal(ResponseCode.MESSAGE_ILLEGAL, "no room")
        words = ("--threads", "1", "--count", "3")
        (row,) = self.rows("bench", "send", "T", *words)
        self.assertEqual((row["sent"], row["errors"], row["max_ms"]), (0, 3, None))
        self.assertIn("no room", row["last_error"])

    def test_nothing(self) -> None:
        """A topic that is not there, or is empty, is 3."""
        self.call("bench", "receive", "X", status=3)
        result = self.call("bench", "receive", "T", status=3)
        self.assertIn("T has no messages", result.stderr)

    def test_sendMakesItsTopic(self) -> None:
        """A topic that is not there is made, and that is said."""
        result = self.call("bench", "send", "New", "--count", "1", "--threads", "1")
        self.assertIn("New was not there and is made", result.stderr)
        (row,) = self.kind("topic", "topic", "ls", "New")
        self.assertEqual(row["queues"], 8)
        self.call("bench", "send", "a b", status=2)

    def test_percentiles(self) -> None:
        """Of a thousand times from 1 to 1000 ms."""
        found = percentiles([each / 1000 for each in range(1000, 0, -1)])
        self.assertEqual(
            found,
            {
                "p50_ms": 501.0,
                "p90_ms": 901.0,
                "p99_ms": 991.0,
                "p99.9_ms": 1000.0,
                "max_ms": 1000.0,
            },
        )
