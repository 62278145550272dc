"""The list of what is wrong with consumer groups."""

from __future__ import annotations

import json

from twisted.logger import capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.diagnostics.group_diagnosis import (
    GROUP_WORK,
    MAX_LINE,
    NEW_SECONDS,
    REFUSED_SECONDS,
    SILENT_SECONDS,
    DiagnosisBounds,
)
from rocketbroker.broker.registration.route_cache import ANSWER_SECONDS
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig
from rocketbroker.wire.command import Command
from tests.broker.diagnostics.world import WALL_MS, World, peers


class DiagnosisTests(SynchronousTestCase):
    """Found, logged once, listed, over."""

    def setUp(self) -> None:
        """A broker without clients."""
        self.world = World()
        self._events = self.enterContext(capturedLogs())

    @property
    def logged(self) -> list[str]:
        """The lines of the log that the diagnosis has written."""
        diagnosis = self.world.diagnosis
        return [
            formatEvent(event)
            for event in self._events
            if event["log_source"] is diagnosis
        ]

    def test_quiet(self) -> None:
        """Members that want the same are no problem."""
        for connection in peers(3):
            self.world.beat(connection, {"T": "a||b", "%RETRY%G": "*"})
        self.assertEqual(self.world.kinds(), [])
        self.assertEqual(self.logged, [])

    def test_different(self) -> None:
        """It lists both sides, the time, and the consequence, and logs one line."""
        one, two, three = peers(3)
        self.world.beat(one, {"T": "a", "U": "*"})
        self.world.beat(two, {"T": "b", "U": "*"})
        self.world.beat(three, {"T": "b"})
        found, missing = self.world.problems()
        self.assertEqual((found["subject"], missing["subject"]), ("T", "U"))
        self.assertEqual(found["kind"], "subscriptions")
        self.assertEqual(found["group"], "G")
        self.assertEqual(found["sinceMs"], WALL_MS + 3000)
        self.assertTrue(found["new"])
        self.assertIn("passed over", found["leadsTo"])
        self.assertEqual(
            found["sides"][0],
            {
                "what": "a",
                "count": 1,
                "members": [
                    {
                        "clientId": "c127.0.0.1:1",
                        "clientAddr": "127.0.0.1:1",
                        "language": "JAVA",
                        "version": 479,
                    }
                ],
            },
        )
        self.assertEqual(
            [(side["what"], side["count"]) for side in missing["sides"]],
            [("*", 2), ("(not subscribed)", 1)],
        )
        self.world.beat(one, {"T": "a", "U": "*"})
        self.world.problems()
        (first, _) = self.logged
        self.assertIn("Group 'G': problem subscriptions with 'T': 'a': 1 mem", first)
        self.assertEqual(self.world.diagnosis.found["subscriptions"], 2)

    def test_over(self) -> None:
        """It is over when members agree or have gone, and the log says so once."""
        one, two = peers(2)
        self.world.beat(one, {"T": "a"})
        self.world.beat(two, {"T": "b"})
        self.assertEqual(len(self.world.problems()), 1)
        self.world.beat(one, {"T": "b"})
        self.assertEqual(self.world.problems(), [])
        self.assertEqual(
            self.logged[1:], ["Group 'G': problem subscriptions with 'T' is over."]
        )
        self.world.beat(one, {"T": "a"})
        self.assertEqual(len(self.world.problems()), 1)
        one.close()
        two.close()
        self.assertEqual(self.world.problems(), [])
        self.assertEqual(self.world.diagnosis.found["subscriptions"], 2)

    def test_new(self) -> None:
        """A problem is new for some minutes, then it is not, and is the same one."""
        one, two = peers(2)
        self.world.beat(one, {"T": "a"})
        self.world.beat(two, {"T": "b"})
        (found,) = self.world.problems()
        counts = self.world.diagnosis.counts()
        self.assertEqual(counts["subscriptions", True], 1)
        self.world.clock.advance(NEW_SECONDS)
        (later,) = self.world.problems()
        self.assertFalse(later["new"])
        self.assertEqual(later["sinceMs"], found["sinceMs"])
        counts = self.world.diagnosis.counts()
        self.assertEqual(counts["subscriptions", True], 0)
        self.assertEqual(counts["subscriptions", False], 1)

    def test_silentAboutIt(self) -> None:
        """A member whose subscriptions were not heard is not compared."""
        one, two = peers(2)
        self.world.beat(one, {"T": "a"})
        self.world.beat(two, None)
        self.assertEqual(self.world.kinds(), [])

    def test_sameClientId(self) -> None:
        """Two connections with one id that both go on talking are a problem."""
        one, two = peers(2)
        self.world.beat(one, {"T": "*"}, client="10.0.0.9@1")
        self.world.beat(two, {"T": "*"}, client="10.0.0.9@1")
        self.assertEqual(self.world.kinds(), [])
        self.world.beat(one, {"T": "*"}, client="10.0.0.9@1")
        (found,) = self.world.problems()
        self.assertEqual((found["kind"], found["subject"]), ("client-id", "10.0.0.9@1"))
        (side,) = found["sides"]
        addresses = [member["clientAddr"] for member in side["members"]]
        self.assertEqual(addresses, ["127.0.0.1:1", "127.0.0.1:2"])
        two.close()
        self.assertEqual(self.world.kinds(), [])

    def test_connectedAgain(self) -> None:
        """A client that comes back by another connection is not there twice."""
        one, two = peers(2)
        self.world.beat(one, {"T": "*"}, client="c")
        for _ in range(5):
            self.world.beat(two, {"T": "*"}, client="c")
            self.assertEqual(self.world.kinds(), [])

    def test_permissions(self) -> None:
        """Topics that are not there or may not be read, as soon as that is so."""
        (one,) = peers(1)
        self.world.beat(one, {"T": "*", "U": "*", "Nowhere": "*"})
        self.assertEqual(self.world.kinds(), [("topic-missing", "Nowhere")])
        self.world.topic("Nowhere")
        self.world.topic("T", perm=2)
        self.assertEqual(self.world.kinds(), [("topic-unreadable", "T")])
        self.world.topic("T")
        self.assertEqual(self.world.kinds(), [])

    def test_topicElsewhere(self) -> None:
        """A topic that another broker has is not missing, nor one of which name servers
        have not said so; and one that comes up there is no longer."""
        self.world = World(["n:9876"])
        self.world.others.add("Elsewhere")
        (one,) = peers(1)
        self.world.beat(one, {"Elsewhere": "*", "Nowhere": "*"})
        self.assertEqual(self.world.kinds(), [("topic-missing", "Nowhere")])
        self.world.others.add("Nowhere")
        self.world.clock.advance(ANSWER_SECONDS)
        self.assertEqual(self.world.kinds(), [])

    def test_groupDisabled(self) -> None:
        """So is a group that may not consume, and one that was deleted."""
        (one,) = peers(1)
        self.world.beat(one, {"T": "*"})
        self.assertEqual(self.world.kinds(), [])
        config = SubscriptionGroupConfig(group_name="G", consume_enable=False)
        self.world.groups.put([config])
        self.assertEqual(self.world.kinds(), [("group-disabled", "G")])
        self.world.groups.put([SubscriptionGroupConfig(group_name="G")])
        self.assertEqual(self.world.kinds(), [])
        self.world.groups.delete("G")
        self.assertEqual(self.world.kinds(), [("group-disabled", "G")])

    def test_broadcastDisabled(self) -> None:
        """And one that broadcasts and may not."""
        (one,) = peers(1)
        config = SubscriptionGroupConfig(group_name="G", consume_broadcast_enable=False)
        self.world.groups.put([config])
        self.world.beat(one, {"T": "*"}, model="BROADCASTING")
        self.assertEqual(self.world.kinds(), [("broadcast-disabled", "G")])

    def test_mostKept(self) -> None:
        """Beyond the limit problems are counted; they come when there is room."""
        world = self.world = World(bounds=DiagnosisBounds(kept=2))
        one, two = peers(2)
        for group in ("G1", "G2", "G3"):
            world.beat(one, {"T": "a"}, group=group)
            world.beat(two, {"T": "b"}, group=group)
        self.assertEqual([found["group"] for found in world.problems()], ["G1", "G2"])
        self.assertEqual(world.diagnosis.left_out, 1)
        world.beat(one, {"T": "b"}, group="G1")
        world.problems()
        self.assertEqual([found["group"] for found in world.problems()], ["G2", "G3"])
        self.assertEqual(world.diagnosis.left_out, 0)

    def test_mostBytes(self) -> None:
        """Problems beyond the limit are counted, and known ones stay as they
        were when they would no longer fit."""
        world = self.world = World(bounds=DiagnosisBounds(bytes=1000))
        one, two, *more = peers(4)
        for group in ("G1", "G2"):
            world.beat(one, {"T": "a"}, group=group)
            world.beat(two, {"T": "b"}, group=group)
        (found,) = world.problems()
        self.assertEqual((found["group"], world.diagnosis.left_out), ("G1", 1))
        for each in more:
            world.beat(each, {"T": each.peer + "x" * 100}, group="G1", client="y" * 100)
        self.assertEqual(world.problems(), [found])
        for each in (one, *more):
            each.close()
        self.assertEqual(world.problems(), [])
        self.assertEqual(world.diagnosis.left_out, 0)

    def test_mostWork(self) -> None:
        """One look is bounded; the next goes on."""
        world = self.world = World(bounds=DiagnosisBounds(work=GROUP_WORK))
        one, two = peers(2)
        for group in ("G1", "G2", "G3"):
            world.beat(one, {"T": "a"}, group=group)
            world.beat(two, {"T": "b"}, group=group)
        self.assertEqual([len(world.problems()) for _ in range(4)], [1, 2, 3, 3])

    def test_steps(self) -> None:
        """Each group is a step of its own, between which the broker does other work."""
        one, two = peers(2)
        for group in ("G1", "G2", "G3"):
            self.world.beat(one, {"T": "a"}, group=group)
            self.world.beat(two, {"T": "b"}, group=group)
        steps = self.world.diagnosis.look()
        found = [len(self.world.diagnosis.findings()) for _ in steps]
        self.assertEqual(found, [1, 2, 3])

    def test_comesAndGoes(self) -> None:
        """A problem that comes back soon is not logged again, unless it stays."""
        one, two = peers(2)
        self.world.beat(one, {"T": "a"})
        for _ in range(10):
            self.world.beat(two, {"T": "b"})
            self.assertEqual(len(self.world.problems()), 1)
            self.world.beat(two, {"T": "a"})
            self.assertEqual(self.world.problems(), [])
        self.assertEqual(len(self.logged), 2)
        self.assertEqual(self.world.diagnosis.found["subscriptions"], 10)
        self.world.beat(two, {"T": "b"})
        self.world.problems()
        self.assertEqual(len(self.logged), 2)
        self.world.clock.advance(SILENT_SECONDS)
        self.world.problems()
        self.world.problems()
        self.assertEqual(len(self.logged), 3)

    def test_mostLogged(self) -> None:
        """Of very many problems the first are logged, and that there are more; the
        others when there is room for them in the log."""
        self.world = World(bounds=DiagnosisBounds(logged=3))
        one, two = peers(2)
        for number in range(10):
            self.world.beat(one, {"T": "a"}, group=f"G{number}")
            self.world.beat(two, {"T": "b"}, group=f"G{number}")
        self.world.problems()
        self.world.problems()
        *_, last = self.logged
        self.assertEqual(len(self.logged), 4)
        self.assertIn("not all logged for 300 s", last)
        self.world.clock.advance(SILENT_SECONDS)
        self.world.problems()
        self.assertEqual(len(self.logged), 8)

    def test_line(self) -> None:
        """A line of the log is bounded, and has no line break of a client's in it."""
        many = peers(40)
        for number, connection in enumerate(many):
            client = f"\n\x1b[31m{number}" + "x" * 200
            self.world.beat(connection, {"T": f"{number}" * 90}, client=client)
        self.world.problems()
        (line,) = self.logged
        self.assertLess(len(line), MAX_LINE + 500)
        self.assertTrue(line.isprintable(), line)

    def test_refusedPulls(self) -> None:
        """A client that pulls what it may not is named without a heartbeat, for as
        long as it goes on."""
        refusals = self.world.diagnosis.refusals
        self.world.topic("T", perm=2)
        self.world.groups.put([SubscriptionGroupConfig(group_name="G")])
        self.assertEqual(self.world.kinds(), [])
        for _ in range(3):
            refusals.note("G", "T", "10.0.0.9:4711")
        (found,) = self.world.problems()
        self.assertEqual(
            (found["kind"], found["subject"], found["group"]),
            ("topic-unreadable", "T", "G"),
        )
        (side,) = found["sides"]
        self.assertEqual((side["what"], side["count"]), ("perm=2", 1))
        self.assertEqual(side["members"][0]["clientAddr"], "10.0.0.9:4711")
        for _ in range(4):
            self.world.clock.advance(REFUSED_SECONDS)
            refusals.note("G", "T", "10.0.0.9:4711")
            self.assertEqual(len(self.world.problems()), 1)
        self.world.clock.advance(REFUSED_SECONDS + 1)
        self.assertEqual(self.world.problems(), [])
        self.assertEqual(refusals.count, 7)

    def test_refusedNoMore(self) -> None:
        """It is over when the topic may be read."""
        self.world.topic("T", perm=2)
        self.world.groups.put([SubscriptionGroupConfig(group_name="G")])
        self.world.diagnosis.refusals.note("G", "T", "10.0.0.9:4711")
        self.assertEqual(self.world.kinds(), [("topic-unreadable", "T")])
        self.world.topic("T")
        self.assertEqual(self.world.kinds(), [])
        self.world.topics.delete("T")
        self.assertEqual(self.world.kinds(), [])

    def test_refusedMember(self) -> None:
        """A member that chooses its queues itself is named with its client id."""
        (one,) = peers(1)
        self.world.topic("T", perm=2)
        self.world.beat(one, {}, client="c")
        self.world.diagnosis.refusals.note("G", "T", one.peer)
        (found,) = self.world.problems()
        (side,) = found["sides"]
        self.assertEqual(side["members"][0]["clientId"], "c")

    def test_refusedGroup(self) -> None:
        """So is who pulls for a group that may not consume."""
        config = SubscriptionGroupConfig(group_name="G", consume_enable=False)
        self.world.groups.put([config])
        self.world.diagnosis.refusals.note("G", "", "10.0.0.9:4711")
        self.assertEqual(self.world.kinds(), [("group-disabled", "G")])
        self.world.groups.delete("G")
        self.assertEqual(self.world.kinds(), [])

    def test_broadcastingTwins(self) -> None:
        """Members that broadcast may have one client id: by default they have."""
        one, two = peers(2)
        for _ in range(2):
            for each in (one, two):
                self.world.beat(each, {"T": "*"}, client="c", model="BROADCASTING")
        self.assertEqual(self.world.kinds(), [])

    def test_request(self) -> None:
        """Request 31001 lists all, or what one group has."""
        one, two = peers(2)
        for group in ("G1", "G2"):
            self.world.beat(one, {"T": "a"}, group=group)
            self.world.beat(two, {"T": "b"}, group=group)
        self.world.look()
        table = ResponderTable()
        self.world.diagnosis.register(table)
        for ext, groups in ((None, ["G1", "G2"]), ({"group": "G2"}, ["G2"])):
            answer = table.responders[31001](one, Command(31001, ext, opaque=1))
            assert isinstance(answer, Command)
            self.assertEqual(answer.code, 0)
            listed = json.loads(answer.body)
            self.assertEqual([found["group"] for found in listed["problems"]], groups)
            self.assertEqual(listed["leftOut"], 0)
