"""C{rocketbroker group}."""

from __future__ import annotations

import click

from rocketbroker.cli.cluster.options import complete_groups
from rocketbroker.testing.scripted import answer
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from tests.cli.cluster.cluster import BROKER, NAME_SERVER, VerbCase, refusal

MEMBER = "10.0.0.9@1"


class GroupTests(VerbCase):
    """Against a name server and a broker in memory."""

    def consumed(self) -> None:
        """Topic T with 3 messages in queue 0, of which group G has consumed one."""
        self.cluster.topic("T", 2)
        self.cluster.group("G")
        for body in (b"a", b"b", b"c"):
            self.cluster.rig.append(body)
        self.cluster.rig.offsets.commit("G", "T", 0, 1)

    def test_ls(self) -> None:
        """Groups with lags and members; the system's only with --all; or only names."""
        self.consumed()
        self.cluster.group("H")
        self.cluster.join("G", ["T"])
        rows = self.kind("group", "group", "ls")
        self.assertEqual([row["group"] for row in rows], ["G", "H"])
        self.assertEqual([row["lag"] for row in rows], [2, 0])
        self.assertEqual([row["members"] for row in rows], [1, 0])
        self.assertEqual((rows[0]["model"], rows[0]["type"]), ("clustering", "push"))
        asked = self.cluster.machine.codes(BROKER)
        self.assertEqual([asked.count(code) for code in (317, 208, 203)], [1, 0, 2])
        self.assertEqual(self.call("group", "ls", "--names").stdout, "G\nH\n")
        self.assertEqual(self.call("group", "list", "H", "--names").stdout, "H\n")
        (row,) = self.kind("group", "group", "ls", "H*")
        self.assertEqual(row["group"], "H")
        asked = self.cluster.machine.codes(BROKER)
        self.assertEqual([asked.count(code) for code in (317, 208)], [1, 1])
        every = [row["group"] for row in self.kind("group", "group", "ls", "--all")]
        self.assertIn("TOOLS_CONSUMER", every)

    def test_show(self) -> None:
        """Settings, members, subscriptions, and the lag of each queue."""
        self.consumed()
        self.cluster.join("G", ["T"])
        body = b'{"mqTable":{{"brokerName":"broker-a","queueId":0,"topic":"T"}:{}}}'
        self.cluster.faults[307] = lambda command: answer(body=body)
        rows = self.rows("group", "show", "G")
        kinds = [row["kind"] for row in rows]
        self.assertEqual(
            kinds[:2] + kinds[-2:], ["group", "settings", "queue", "queue"]
        )
        (member,) = (row for row in rows if row["kind"] == "member")
        self.assertEqual(
            (member["client"], member["address"]), (MEMBER, "10.0.0.2:4711")
        )
        (wanted,) = (row for row in rows if row["kind"] == "subscription")
        self.assertEqual((wanted["topic"], wanted["expression"]), ("T", "*"))
        first, second = rows[-2:]
        numbers = [first[name] for name in ("queue", "end", "committed", "lag")]
        self.assertEqual(numbers, [0, 3, 1, 2])
        self.assertEqual((first["member"], second["member"]), (MEMBER, None))
        self.assertEqual(
            (first["last_consumed"], second["lag"]), (1_700_000_000_000, 0)
        )

    def test_silentMember(self) -> None:
        """A member that says nothing of its queues leaves them without a member."""
        self.consumed()
        self.cluster.join("G", ["T"])
        self.cluster.faults[307] = refusal(207, "timeout")
        self.assertEqual(self.rows("group", "show", "G")[-1]["member"], None)

    def test_deafMember(self) -> None:
        """A member that does not answer in time is told, and the rest is shown."""
        self.consumed()
        self.cluster.join("G", ["T"])
        self.cluster.faults[307] = lambda command: []
        result = self.call("group", "show", "G")
        self.assertIn(f"{MEMBER} does not say what it consumes", result.stderr)
        self.assertIn("committed", result.stdout)

    def test_oddGroup(self) -> None:
        """A group that a broker stumbles over is told, and the others are listed."""
        self.consumed()
        self.cluster.group("H")

        def stumble(command: Command) -> Command | None:
            is_odd = (command.ext or {})["consumerGroup"] == "G"
            return answer(1, remark="null pointer") if is_odd else None

        self.cluster.faults[208] = stumble
        self.cluster.faults[317] = refusal(1, "null pointer")
        result = self.call("group", "ls")
        self.assertIn("rocketbroker: G: null pointer", result.stderr)
        self.assertIn("\nH ", result.stdout)

    def test_oneTopic(self) -> None:
        """The queues of one topic."""
        self.consumed()
        self.cluster.topic("U", 1)
        self.cluster.rig.offsets.commit("G", "U", 0, 0)
        queues = self.kind("queue", "group", "show", "G", "--topic", "U")
        self.assertEqual([row["topic"] for row in queues], ["U"])

    def test_notThere(self) -> None:
        """A group that is not there ends with 3, and is not made by looking."""
        for words in (("show",), ("update",), ("delete", "--yes")):
            result = self.call("group", words[0], "X", *words[1:], status=3)
            self.assertIn("There is no group X. rocketbroker group ls", result.stderr)
        self.assertEqual(self.call("group", "ls", "--names").stdout, "")

    def test_create(self) -> None:
        """With what is given; one that is there is refused."""
        words = ("group", "create", "G", "--retries", "3", "--no-broadcast")
        (row,) = self.kind("change", *words)
        self.assertEqual((row["address"], row["outcome"]), (BROKER, "created"))
        config = self.cluster.rig.groups.config("G")
        assert config is not None
        self.assertEqual(config.retry_max_times, 3)
        self.assertEqual(
            (config.consume_enable, config.consume_broadcast_enable), (True, False)
        )
        self.assertIn("is there already", self.call(*words, status=1).stderr)
        self.call("group", "create", "a b", status=2)

    def test_update(self) -> None:
        """Only what is given changes; a dry run changes nothing."""
        self.call("group", "create", "G", "--retries", "3")
        self.call("group", "update", "G", "--no-consume", "--dry-run")
        config = self.cluster.rig.groups.config("G")
        assert config is not None
        self.assertTrue(config.consume_enable)
        (row,) = self.kind("change", "group", "update", "G", "--no-consume")
        self.assertEqual(row["outcome"], "changed")
        config = self.cluster.rig.groups.config("G")
        assert config is not None
        self.assertEqual((config.consume_enable, config.retry_max_times), (False, 3))
        (row,) = self.kind("change", "group", "update", "G", "--no-consume")
        self.assertEqual(row["outcome"], "unchanged")

    def test_delete(self) -> None:
        """With its offsets, if the user says so; who is online is told."""
        self.consumed()
        self.cluster.join("G", ["T"])
        result = self.call("group", "delete", "G", status=2)
        self.assertIn(
            "Delete group G with its offsets, while 1 member is online?", result.stderr
        )
        self.call("group", "delete", "G", "--dry-run")
        self.assertIsNotNone(self.cluster.rig.groups.config("G"))
        self.call("group", "delete", "G", "--yes")
        self.assertIsNone(self.cluster.rig.groups.config("G"))
        self.assertEqual(self.cluster.rig.offsets.query("G", "T", 0), -1)

    def test_keepOffsets(self) -> None:
        """Offsets stay, or retry and dead-letter topics go, as the user wants it."""
        self.consumed()
        self.cluster.topic("%DLQ%G", 1)
        self.call("group", "delete", "G", "--yes", "--keep-offsets", "--topics")
        self.assertEqual(self.cluster.rig.offsets.query("G", "T", 0), 1)
        self.assertIsNone(self.cluster.rig.topics.config("%DLQ%G"))
        self.assertIn(216, self.cluster.machine.codes(NAME_SERVER))

    def test_offsetsOfOldBrokers(self) -> None:
        """A broker of 4.9 finds what it knows by another name."""
        self.consumed()
        self.call("group", "delete", "G", "--yes")
        ((_, request),) = (
            (where, command)
            for where, command in self.cluster.machine.requests
            if command.code == RequestCode.DELETE_SUBSCRIPTIONGROUP
        )
        assert request.ext is not None
        self.assertEqual(request.ext["removeOffset"], "true")
        self.assertEqual(request.ext["cleanOffset"], "true")

    def test_completion(self) -> None:
        """Users' groups are completed; not where the cluster cannot be asked."""
        self.cluster.group("G")
        context = click.Context(click.Command("x"), obj=self.cluster.surroundings)
        context.params = {"namesrv": NAME_SERVER}
        argument = click.Argument(["group"])
        found = complete_groups(context, argument, "")
        self.assertEqual([item.value for item in found], ["G"])
        self.assertEqual(complete_groups(context, argument, "x"), [])
        context.params = {"namesrv": "nowhere:1"}
        self.assertEqual(complete_groups(context, argument, ""), [])
