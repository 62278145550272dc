"""C{rocketbroker topic}."""

from __future__ import annotations

from rocketbroker.testing.scripted import answer
from rocketbroker.wire.codes import RequestCode
from tests.cli.cluster.cluster import BROKER, NAME_SERVER, VerbCase, refusal


class TopicTests(VerbCase):
    """Against a name server and a broker in memory."""

    def create(self, *words: str) -> None:
        """Make topic T with 2 queues."""
        self.call("topic", "create", "T", "-q", "2", *words)

    def test_create(self) -> None:
        """A topic is made on the masters, with what was given, and is then there."""
        (row,) = self.kind(
            "change", "topic", "create", "T", "-q", "2", "--perm", "r", "--type", "fifo"
        )
        self.assertEqual(
            row,
            {
                "topic": "T",
                "broker": "broker-a",
                "address": BROKER,
                "outcome": "created",
            },
        )
        config = self.cluster.rig.topics.config("T")
        assert config is not None
        self.assertEqual((config.write_queue_nums, config.read_queue_nums), (2, 2))
        self.assertEqual(
            (config.perm, config.attributes), (4, {"message.type": "FIFO"})
        )
        self.assertIn(
            "is there already", self.call("topic", "create", "T", status=1).stderr
        )

    def test_wrongName(self) -> None:
        """A name that no topic can have is refused before anything is asked."""
        result = self.call("topic", "create", "a b", status=2)
        self.assertIn("illegal characters", result.stderr)
        self.assertEqual(self.cluster.machine.codes(), [])

    def test_ls(self) -> None:
        """Users' topics by a pattern; with --all also others; or only names."""
        self.create()
        self.cluster.rig.topic("Other", 1)
        self.cluster.rig.topic("%RETRY%G", 1)
        (row,) = self.kind("topic", "topic", "ls", "T*")
        wanted = {
            "topic": "T",
            "type": "normal",
            "brokers": 1,
            "queues": 2,
            "perm": "rw",
        }
        self.assertEqual(row, wanted)
        found = self.kind("topic", "topic", "list", "the")
        self.assertEqual([row["topic"] for row in found], ["Other"])
        types = {
            row["topic"]: row["type"]
            for row in self.kind("topic", "topic", "ls", "--all")
        }
        self.assertEqual(types["%RETRY%G"], "retry")
        for own in ("broker-a", "cluster-a", "cluster-a_REPLY_TOPIC"):
            self.assertEqual(types[own], "system")
        self.cluster.faults[RequestCode.GET_ALL_TOPIC_CONFIG] = refusal(1)
        self.assertEqual(self.call("topic", "ls", "--names").stdout, "T\n")

    def test_show(self) -> None:
        """Settings, queues with their messages, groups."""
        self.create("-a", "reserve.time=1000")
        self.cluster.rig.append(b"one")
        self.cluster.group("G")
        self.cluster.join("G", ["T"])
        rows = self.rows("topic", "show", "T")
        self.assertEqual(
            [row.pop("kind") for row in rows], ["topic", "queue", "queue", "group"]
        )
        self.assertEqual(rows[0]["write_queues"], 2)
        first = {k: rows[1][k] for k in ("queue", "min", "max", "messages")}
        self.assertEqual(first, {"queue": 0, "min": 0, "max": 1, "messages": 1})
        self.assertGreater(rows[1]["last_message"], 1_700_000_000_000 - 1)
        self.assertEqual(rows[2]["last_message"], 0)
        self.assertEqual(rows[3], {"group": "G"})
        self.assertIn("2023-11-14 22:13:20", self.call("topic", "show", "T").stdout)

    def test_before5(self) -> None:
        """A broker that does not tell one topic's settings is asked for all."""
        self.create()
        self.cluster.faults[RequestCode.GET_TOPIC_CONFIG] = refusal(3, "not supported")
        self.assertEqual(self.rows("topic", "show", "T")[0]["write_queues"], 2)

    def test_notThere(self) -> None:
        """A topic that is not there ends with 3, and says what to do."""
        for words in (("show", "X"), ("update", "X"), ("delete", "X", "--yes")):
            result = self.call("topic", *words, status=3)
            self.assertIn("There is no topic X. rocketbroker topic ls", result.stderr)

    def test_update(self) -> None:
        """Only what is given is changed."""
        self.create("-a", "reserve.time=1000")
        (row,) = self.kind("change", "topic", "update", "T", "--write-queues", "1")
        self.assertEqual(row["outcome"], "changed")
        config = self.cluster.rig.topics.config("T")
        assert config is not None
        self.assertEqual((config.write_queue_nums, config.read_queue_nums), (1, 2))
        self.assertEqual(config.attributes, {"reserve.time": "1000"})
        (row,) = self.kind("change", "topic", "update", "T", "--write-queues", "1")
        self.assertEqual(row["outcome"], "unchanged")
        self.call("topic", "update", "T", "-a", "reserve.time=")
        config = self.cluster.rig.topics.config("T")
        assert config is not None
        self.assertEqual(config.attributes, {})
        self.call("topic", "update", "T", "-a", "size", status=1)

    def test_fewerQueues(self) -> None:
        """Messages that nobody could read any more are not hidden without a yes."""
        self.create()
        result = self.call("topic", "update", "T", "-q", "1", status=2)
        self.assertIn(
            "Let nobody read the queues of T on broker-a from 1", result.stderr
        )
        config = self.cluster.rig.topics.config("T")
        assert config is not None
        self.assertEqual((config.write_queue_nums, config.read_queue_nums), (2, 2))
        self.call("topic", "update", "T", "-q", "1", "--yes")

    def test_delete(self) -> None:
        """It goes from the broker and from the name server, if the user says so."""
        self.create()
        self.assertIn("Give --yes", self.call("topic", "delete", "T", status=2).stderr)
        (row,) = self.kind("change", "topic", "delete", "T", "--dry-run")
        self.assertEqual(row["outcome"], "to be deleted")
        self.assertIsNotNone(self.cluster.rig.topics.config("T"))
        (row,) = self.kind("change", "topic", "delete", "T", "--yes")
        self.assertEqual(row["outcome"], "deleted")
        self.assertIsNone(self.cluster.rig.topics.config("T"))
        self.assertIn(216, self.cluster.machine.codes(NAME_SERVER))
        self.call("topic", "show", "T", status=3)

    def test_failsAfterwards(self) -> None:
        """RocketMQ without timers deletes a topic and then fails: it is deleted."""
        self.create()
        self.cluster.faults[RequestCode.DELETE_TOPIC_IN_BROKER] = refusal(1)
        self.call("topic", "delete", "T", "--yes", status=1)
        self.cluster.faults[RequestCode.GET_TOPIC_CONFIG] = refusal(17, "gone")
        self.call("topic", "delete", "T", "--yes")
        self.assertIn(216, self.cluster.machine.codes(NAME_SERVER))

    def test_dryRun(self) -> None:
        """A dry run changes nothing."""
        self.call("topic", "create", "T", "--dry-run")
        self.assertIsNone(self.cluster.rig.topics.config("T"))
        self.create()
        (row,) = self.kind("change", "topic", "update", "T", "-q", "4", "--dry-run")
        self.assertEqual(row["outcome"], "to be changed")
        config = self.cluster.rig.topics.config("T")
        assert config is not None
        self.assertEqual(config.write_queue_nums, 2)

    def test_where(self) -> None:
        """A cluster or broker that is not there is told, with those that are."""
        result = self.call("topic", "create", "T", "-c", "X", status=3)
        self.assertIn("There is no cluster X; there are: cluster-a.", result.stderr)
        result = self.call("topic", "create", "T", "-b", "X", status=3)
        self.assertIn("There is no broker X; there are: broker-a.", result.stderr)

    def test_javasGroups(self) -> None:
        """RocketMQ 5.3.3 says the topic's own name among its groups."""
        self.create()
        body = b'{"groupList":["T","G"]}'
        self.cluster.faults[300] = lambda command: answer(body=body)
        self.assertEqual(self.kind("group", "topic", "show", "T"), [{"group": "G"}])
