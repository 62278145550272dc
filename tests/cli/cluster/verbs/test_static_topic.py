"""C{rocketbroker topic create-static} and C{topic move}, with two brokers."""

from __future__ import annotations

from rocketbroker.testing.scripted import answer
from rocketbroker.wire.bodies.mappings import TopicQueueMappingDetail
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from tests.broker.rig import Rig, send_ext
from tests.cli.cluster.cluster import VerbCase

OTHER = "10.0.0.2:10911"


class StaticTopicTests(VerbCase):
    """Brokers broker-a and broker-b of one cluster."""

    def setUp(self) -> None:
        """The name server knows both."""
        super().setUp()
        cluster = self.cluster
        self.other = Rig(
            {
                "namesrvAddr": "ns:9876",
                "brokerName": "broker-b",
                "brokerIP1": "10.0.0.2",
                "autoCreateTopicEnable": "false",
            },
            client=cluster.rig.broker.context.client,
        )
        self.addCleanup(self.other.close)
        self.other.broker.registration.registration.start()
        table = self.other.table
        cluster.machine.servers[OTHER] = lambda command: cluster.serve(
            table, command, self.other
        )

    def outcomes(self, *words: str) -> list[str]:
        """What becomes of the topic on each broker."""
        rows = self.kind("change", "topic", *words)
        return [f"{row['broker']} {row['outcome']}" for row in rows]

    def detail(self, rig: Rig) -> TopicQueueMappingDetail:
        """The mapping that a broker has."""
        return rig.broker.metadata.mappings.details["T"]

    def create(self) -> None:
        """Make topic T with four queues on both brokers."""
        self.call("topic", "create-static", "T", "-q", "4", "-c", "cluster-a")

    def test_create(self) -> None:
        """A topic has its queues on the brokers that are given, and the others of the
        cluster know of it."""
        words = "create-static", "T", "-q", "2", "-b", "broker-a"
        found = self.outcomes(*words, "--dry-run")
        self.assertEqual(
            found, ["broker-a to be queues 0,1", "broker-b to be queues none"]
        )
        self.assertIsNone(self.other.topics.config("T"))
        found = self.outcomes(*words)
        self.assertEqual(found, ["broker-a queues 0,1", "broker-b queues none"])
        self.assertEqual(self.detail(self.cluster.rig).total_queues, 2)
        self.assertEqual(self.detail(self.other).hosted_queues, {})

    def test_grow(self) -> None:
        """A topic that is there gets more queues."""
        self.create()
        found = self.outcomes("create-static", "T", "-q", "5", "-c", "cluster-a")
        self.assertEqual(found, ["broker-a queues 0,2,4", "broker-b queues 1,3"])
        words = "topic", "create-static", "T", "-q", "5", "-c", "cluster-a"
        self.assertIn("gets no fewer", self.call(*words, status=1).stderr)

    def test_move(self) -> None:
        """Its queues move, and go on behind what is in them."""
        self.create()
        rig = self.cluster.rig
        self.assertEqual(rig.ask(310, send_ext("T", 2), b"x").code, 0)
        found = self.outcomes("move", "T", "-b", "broker-b", "--yes")
        self.assertEqual(found, ["broker-a queues none", "broker-b queues 0,1,2,3"])
        for each in (rig, self.other):
            (old, new) = self.detail(each).hosted_queues[2]
            self.assertEqual((old.bname, new.bname), ("broker-a", "broker-b"))
            self.assertEqual(new.logic_offset, 10000)
        answer = self.other.ask(310, send_ext("T", 2), b"x")
        self.assertEqual((answer.ext or {})["queueOffset"], "10000")

    def test_messages(self) -> None:
        """Sends go to logical queues; all physical queues are read."""
        self.create()
        self.call("topic", "move", "T", "-b", "broker-b", "--yes")
        for number in range(4):
            self.call("message", "send", "T", f"m{number}")
        self.assertEqual(self.cluster.rig.store.queue("T", 0).next_offset, 0)
        self.call("topic", "move", "T", "-c", "cluster-a", "--yes")
        for number in range(4, 8):
            self.call("message", "send", "T", f"m{number}")
        rows = self.rows(
            "message", "receive", "T", "--count", "8", "--from", "earliest"
        )
        bodies = sorted(row["body"] for row in rows)
        self.assertEqual(bodies, [f"m{number}" for number in range(8)])

    def test_finish(self) -> None:
        """A move that was broken off is said to be that, and brought to its end."""
        self.create()
        words = "topic", "move", "T", "-b", "broker-b", "--yes"
        self.cluster.faults[RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC] = self.late
        self.call(*words, status=1)
        self.cluster.faults.clear()
        self.assertIn("--finish", self.call(*words, status=1).stderr)
        found = self.outcomes("move", "T", "--finish", "--yes")
        self.assertEqual(found, ["broker-a queues none", "broker-b queues 0,1,2,3"])
        for items in self.detail(self.other).hosted_queues.values():
            self.assertTrue(items[-1].is_decided)
        found = self.outcomes("move", "T", "-b", "broker-a", "--yes")
        self.assertEqual(found, ["broker-a queues 0,1,2,3", "broker-b queues none"])

    def late(self, command: Command) -> Command | None:
        """Refuse what the giver is told."""
        return answer(1) if b'"bname":"broker-a","currIdMap"' in command.body else None

    def test_wrong(self) -> None:
        """What is missing or not there is said."""
        result = self.call("topic", "create-static", "T", "-q", "2", status=2)
        self.assertIn("Give the brokers", result.stderr)
        self.call("topic", "move", "T", "-c", "cluster-a", "--yes", status=3)
        self.call("topic", "create-static", "a b", "-q", "2", "-b", "x", status=2)
        self.cluster.topic("T", 2)
        words = "topic", "move", "T", "-c", "cluster-a", "--yes"
        self.assertIn("no static topic", self.call(*words, status=1).stderr)

    def test_mqadmin(self) -> None:
        """RocketMQ's spellings."""
        words = "-t", "T", "-qn", "2", "-b", "broker-a,broker-b"
        self.call("mqadmin", "updateStaticTopic", *words)
        self.assertTrue(self.detail(self.other).leads(1))
        self.call("mqadmin", "remappingStaticTopic", "-t", "T", "-b", "broker-b")
        self.assertTrue(self.detail(self.other).leads(0))
