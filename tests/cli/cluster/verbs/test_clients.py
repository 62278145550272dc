"""C{rocketbroker consumer} and C{rocketbroker producer}."""

from __future__ import annotations

from rocketbroker.testing.scripted import answer
from tests.cli.cluster.cluster import VerbCase, refusal

MEMBER = "10.0.0.9@1"
INFO = (
    b'{"jstack":"main: waits","mqTable":{{"brokerName":"broker-a","queueId":1,"topic":"'
    b'T"}:{"cachedMsgCount":3,"cachedMsgSizeInMiB":2,"commitOffset":7,"droped":false,"l'
    b'astPullTimestamp":1700000000000,"locked":true}},"properties":{"PROP_X":"y"},"stat'
    b'usTable":{"T":{"consumeFailedMsgs":1,"consumeOKTPS":2.5,"consumeRT":0.125}}}'
)


class ConsumerTests(VerbCase):
    """Group G with a member, and group H without."""

    def setUp(self) -> None:
        """They are there."""
        super().setUp()
        self.cluster.topic("T", 2)
        self.cluster.group("G")
        self.cluster.group("H")
        self.cluster.join("G", ["T"])

    def test_ls(self) -> None:
        """Members of all groups, or of one; none is 3."""
        (row,) = self.kind("consumer", "consumer", "ls")
        self.assertEqual((row["group"], row["client"]), ("G", MEMBER))
        self.assertEqual(row["address"], "10.0.0.2:4711")
        self.assertEqual(self.kind("consumer", "consumer", "ls", "G"), [row])
        self.call("consumer", "ls", "H", status=3)
        self.call("consumer", "ls", "X", status=3)

    def test_show(self) -> None:
        """Properties, rates by topic, queues; stacks where they are wanted."""
        self.cluster.faults[307] = lambda command: answer(body=INFO)
        rows = self.rows("consumer", "show", "G", MEMBER)
        self.assertEqual([row["kind"] for row in rows], ["property", "topic", "queue"])
        self.assertEqual((rows[0]["name"], rows[0]["value"]), ("PROP_X", "y"))
        self.assertEqual((rows[1]["consumed"], rows[1]["consume_ms"]), (2.5, 0.12))
        self.assertEqual((rows[1]["pulled"], rows[1]["failed_last_hour"]), (None, 1))
        queue = rows[2]
        self.assertEqual((queue["queue"], queue["committed"]), (1, 7))
        self.assertEqual((queue["cached"], queue["cached_size"]), (3, 2 << 20))
        self.assertEqual((queue["locked"], queue["dropped"]), (True, False))
        rows = self.rows("consumer", "show", "G", MEMBER, "--stack")
        self.assertEqual(rows[-1], {"kind": "stack", "text": "main: waits"})
        out = self.call("consumer", "show", "G", MEMBER, "--stack").stdout
        self.assertTrue(out.endswith("\n\nmain: waits\n"), out)

    def test_notThere(self) -> None:
        """A client that is not connected is 3."""
        result = self.call("consumer", "show", "G", "x", status=3)
        self.assertIn("consumer ls G", result.stderr)


class ProducerTests(VerbCase):
    """Producer P, which comes with a consumer."""

    def setUp(self) -> None:
        """It is connected."""
        super().setUp()
        self.cluster.join("G", ["T"])

    def test_ls(self) -> None:
        """All, or those of a group; none is 3."""
        (row,) = self.kind("producer", "producer", "ls")
        self.assertEqual((row["group"], row["client"]), ("P", MEMBER))
        self.assertEqual(self.kind("producer", "producer", "ls", "P"), [row])
        self.call("producer", "ls", "X", status=3)

    def test_before5(self) -> None:
        """A broker that cannot list all is told with what it can."""
        self.cluster.faults[328] = refusal(3, "request type 328 not supported")
        result = self.call("producer", "ls", status=3)
        self.assertIn("broker-a cannot list all producers: give a", result.stderr)
