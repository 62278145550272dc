"""C{rocketbroker group reset}."""

from __future__ import annotations

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.routes import MessageQueue
from rocketbroker.blocking.settings import Settings
from rocketbroker.testing.scripted import answer
from rocketbroker.wire.command import Command
from tests.cli.cluster.cluster import NAME_SERVER, VerbCase, refusal


class ResetTests(VerbCase):
    """Group G has consumed one of three messages in queue 0 of T."""

    def setUp(self) -> None:
        """Make them."""
        super().setUp()
        self.cluster.topic("T", 1)
        self.cluster.group("G")
        for body in (b"a", b"b", b"c"):
            self.cluster.rig.append(body)
            self.cluster.rig.clock.advance(60)
        self.cluster.rig.offsets.commit("G", "T", 0, 1)

    def reset(self, to: str, *words: str) -> tuple[int, int, int]:
        """Reset; before, after, lag."""
        call = ("group", "reset", "G", "T", "--to", to, *words)
        (row,) = self.kind("queue", *call)
        return row["before"], row["after"], row["lag"]

    def offset(self) -> int:
        """Where a member of the group would go on."""
        queue = MessageQueue("T", "broker-a", 0)
        settings = Settings(NAME_SERVER, machine=self.cluster.machine)
        with Client(settings) as client:
            offset = client.committed_offset(queue, "G")
        assert offset is not None
        return offset

    def test_places(self) -> None:
        """The beginning, the end, and a time."""
        self.assertEqual(self.reset("latest", "--yes"), (1, 3, 0))
        self.assertEqual(self.offset(), 3)
        self.assertEqual(self.reset("earliest", "--yes"), (3, 0, 3))
        self.assertEqual(self.offset(), 0)
        self.assertEqual(self.reset("1700000050000", "--yes"), (0, 1, 2))
        self.assertEqual(self.offset(), 1)

    def test_dryRun(self) -> None:
        """What would be done is shown, and not done; nobody is asked."""
        self.assertEqual(self.reset("latest", "--dry-run"), (1, 3, 0))
        self.assertEqual(self.offset(), 1)

    def test_confirm(self) -> None:
        """Without --yes nothing is done where nobody can be asked."""
        result = self.call("group", "reset", "G", "T", "--to", "latest", status=2)
        self.assertIn(
            "Reset G to latest in 1 queue of T, so that 2 messages", result.stderr
        )
        self.assertEqual(self.offset(), 1)

    def test_throughMembers(self) -> None:
        """Where a broker needs members and there are none, offsets are committed."""
        self.cluster.faults[222] = refusal(206, "Consumer not online")
        self.assertEqual(self.reset("latest", "--yes"), (1, 3, 0))
        self.assertEqual(self.offset(), 3)

    def test_queueWithoutOffset(self) -> None:
        """Where a queue without an offset stops a broker, offsets are committed,
        and members are told."""
        told: list[Command] = []

        def reset(command: Command) -> Command:
            told.append(command)
            if len(told) == 1:
                return answer(1, remark="THe consumer group <G> not exist")
            key = '{"brokerName":"broker-a","queueId":0,"topic":"T"}'
            return answer(body=b'{"offsetTable":{%s:3}}' % key.encode())

        self.cluster.faults[222] = reset
        self.cluster.join("G", ["T"])
        self.assertEqual(self.reset("latest", "--yes"), (1, 3, 0))
        self.assertEqual(self.offset(), 3)
        self.assertEqual(len(told), 2)

    def test_wrong(self) -> None:
        """A group, a topic or a time that is none."""
        for words, status in (
            (("X", "T", "--to", "latest"), 3),
            (("G", "X", "--to", "latest"), 3),
            (("G", "T", "--to", "soon"), 1),
            (("G", "T"), 2),
        ):
            self.call("group", "reset", *words, "--yes", status=status)
        self.assertEqual(self.offset(), 1)
