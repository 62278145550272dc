"""C{rocketbroker offset}."""

from __future__ import annotations

from rocketbroker.testing.scripted import answer
from rocketbroker.wire.codes import RequestCode
from tests.cli.cluster.cluster import VerbCase

OLD = b'{"table":{"brokerVersionDesc":"V4_9_7"}}'


class OffsetTests(VerbCase):
    """Group G has consumed one of three messages in queue 0 of T."""

    def setUp(self) -> None:
        """Make them, a minute apart."""
        super().setUp()
        self.cluster.topic("T", 2)
        self.cluster.group("G")
        for body in (b"a", b"b", b"c"):
            self.cluster.rig.append(body)
            self.cluster.rig.clock.advance(60)
        self.cluster.rig.offsets.commit("G", "T", 0, 1)

    def committed(self, group: str) -> list[int]:
        """Where a group goes on in both queues."""
        rows = self.kind("queue", "offset", "show", "T", "-g", group)
        return [row["committed"] for row in rows]

    def test_resetIsElsewhere(self) -> None:
        """Who looks for reset here is told where it is."""
        words = ("offset", "reset", "G", "T", "--to", "earliest")
        error = self.call(*words, status=2).stderr
        self.assertIn("rocketbroker group reset GROUP TOPIC --to TIME", error)

    def test_show(self) -> None:
        """First, last, of a time, of a group."""
        words = ("offset", "show", "T", "-g", "G", "--at", "1700000050000")
        first, second = self.kind("queue", *words)
        wanted = {"min": 0, "max": 3, "first_stored": 1_700_000_000_000, "at": 1}
        self.assertEqual({name: first[name] for name in wanted}, wanted)
        self.assertEqual((first["committed"], second["committed"]), (1, None))
        self.assertEqual((second["max"], second["first_stored"]), (0, -1))
        self.call("offset", "show", "X", status=3)

    def test_set(self) -> None:
        """One queue, within its offsets."""
        call = ("offset", "set", "G", "T", "broker-a:0")
        (row,) = self.kind("queue", *call, "2", "--yes")
        self.assertEqual((row["before"], row["after"], row["outcome"]), (1, 2, "set"))
        self.assertEqual(self.committed("G"), [2, None])
        self.assertIn(222, self.cluster.machine.codes())
        for words, status in (
            ((*call, "4", "--yes"), 1),
            ((*call, "1"), 2),
            (("offset", "set", "X", "T", "broker-a:0", "1", "--yes"), 3),
            (("offset", "set", "G", "X", "broker-a:0", "1", "--yes"), 3),
            (("offset", "set", "G", "T", "broker-a:9", "0", "--yes"), 3),
        ):
            self.call(*words, status=status)
        self.call(*call, "0", "--dry-run")
        self.assertEqual(self.committed("G"), [2, None])

    def test_before5(self) -> None:
        """An old broker, which would reset all queues, only gets the offset; and not
        where members are online, who would not know."""
        self.cluster.faults[RequestCode.GET_BROKER_RUNTIME_INFO] = lambda _: answer(
            body=OLD
        )
        call = ("offset", "set", "G", "T", "broker-a:0", "2", "--yes")
        self.call(*call)
        self.assertEqual(self.committed("G"), [2, None])
        self.assertNotIn(222, self.cluster.machine.codes())
        self.cluster.join("G", ["T"])
        self.assertIn("stop them first", self.call(*call, status=1).stderr)

    def test_clone(self) -> None:
        """Another group goes on where the first one is."""
        self.cluster.group("H")
        self.call("offset", "clone", "G", "H", "T", "--dry-run")
        self.call("offset", "clone", "G", "H", "T", status=2)
        self.assertEqual(self.committed("H"), [None, None])
        (row,) = self.kind("queue", "offset", "clone", "G", "H", "T", "--yes")
        self.assertEqual((row["before"], row["after"]), (None, 1))
        self.assertEqual(self.committed("H"), [1, None])
        self.call("offset", "clone", "X", "H", "T", "--yes", status=3)
