"""C{rocketbroker top}."""

from __future__ import annotations

from typing import Any

from rocketbroker.cli.cluster.verbs.top import Ends, TopicLag, _group_rows, _topic_rows
from tests.broker.rig import send_ext
from tests.cli.cluster.cluster import VerbCase


class TopTests(VerbCase):
    """A group that consumes while others send."""

    def setUp(self) -> None:
        """A topic with ten messages, of which group G has consumed four."""
        super().setUp()
        self.cluster.topic("T", 1)
        self.cluster.group("G")
        self.send(10)
        self.cluster.rig.offsets.commit("G", "T", 0, 4)

    def send(self, count: int) -> None:
        """So many messages come."""
        for _ in range(count):
            self.cluster.rig.ask(310, send_ext("T"), b"body")
        self.cluster.rig.scheduler.dispatch()

    def looks(self, *words: str) -> list[dict[str, Any]]:
        """The rows of one look; meanwhile two messages come and five are consumed."""

        def later() -> None:
            self.send(2)
            self.cluster.rig.offsets.commit("G", "T", 0, 9)

        self.cluster.machine.meanwhile = later
        return self.rows("top", "--once", *words)

    def test_rates(self) -> None:
        """What came and what was consumed between two looks; broker and topic beside
        it."""
        broker, group, topic = self.looks()
        self.assertEqual((broker["kind"], broker["in_today"]), ("broker", 12))
        self.assertGreater(group.pop("consumed_up_to"), 0)
        self.assertEqual(
            group,
            {
                "kind": "group",
                "group": "G",
                "topic": "T",
                "lag": 3,
                "in": 2.0,
                "out": 5.0,
                "done_in": 1000,
            },
        )
        self.assertGreater(topic.pop("last_message"), 0)
        wanted = {"kind": "topic", "topic": "T", "in": 2.0, "messages": 12}
        self.assertEqual(topic, wanted)
        self.assertEqual(self.cluster.machine.slept, [1.0])

    def test_most(self) -> None:
        """Those that are behind most come first, and no more than are wanted."""
        self.cluster.group("H")
        self.cluster.rig.offsets.commit("H", "T", 0, 0)
        rows = self.looks("--rows", "1")
        self.assertEqual([row.get("group") for row in rows], [None, "H", None])
        self.assertEqual((rows[1]["lag"], rows[1]["done_in"]), (12, None))

    def test_topicsThatGetMostComeFirst(self) -> None:
        """Topics without a group are there, too; the system's only with --all."""
        for name in ("A", "Z"):
            self.cluster.topic(name, 3)
        rows = self.looks()
        found = [row["topic"] for row in rows if row["kind"] == "topic"]
        self.assertEqual(found, ["T", "A", "Z"])
        rows = self.looks("--all", "--rows", "100")
        found = [row["topic"] for row in rows if row["kind"] == "topic"]
        self.assertIn("broker-a", found)

    def test_brokerThatComesBackIsNoBurst(self) -> None:
        """What a broker has had before it was away has not come just now."""
        alone = TopicLag(10, 4, 0)
        before = {("G", "T", "a"): alone}
        now = {
            ("G", "T", "a"): TopicLag(12, 9, 0),
            ("G", "T", "b"): TopicLag(1000, 900, 0),
        }
        (row,) = _group_rows(before, now, 1.0)
        self.assertEqual((row["in"], row["out"], row["lag"]), (2.0, 5.0, 103))
        ends = {("T", "a"): Ends(12, 12, 0), ("T", "b"): Ends(1000, 1000, 0)}
        (row,) = _topic_rows({("T", "a"): Ends(10, 10, 0)}, ends, 1.0)
        self.assertEqual((row["in"], row["messages"]), (2.0, 1012))

    def test_noCluster(self) -> None:
        """A cluster that is not there is 3."""
        self.call("top", "--once", "-c", "nowhere", status=3)
