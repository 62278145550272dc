"""Which member of a group consumes which queue.

tests.integration.test_allocation compares all strategies with Java's.
"""

from __future__ import annotations

from collections.abc import Callable

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import ConfigurationError
from rocketbroker.routing.allocation import (
    NAMED,
    STRATEGIES,
    Configured,
    ConsistentHash,
    MachineRooms,
    NearbyRoom,
    Strategy,
    allocate,
    averagely,
    named,
)
from rocketbroker.routing.topic_view import MessageQueue


class StrategyTests(SynchronousTestCase):
    """L{allocate}."""

    def test_everyQueueOnce(self) -> None:
        """Whatever the numbers, each queue has one member, and shares differ by one."""
        for strategy in STRATEGIES:
            for queues in range(1, 8):
                for count in range(1, 10):
                    members = [f"c{at}" for at in range(count)]
                    found = [
                        allocate(strategy, range(queues), members, member) or []
                        for member in members
                    ]
                    flat = sorted(queue for part in found for queue in part)
                    self.assertEqual(flat, list(range(queues)))
                    sizes = [len(part) for part in found]
                    self.assertLessEqual(max(sizes) - min(sizes), 1)

    def test_pieces(self) -> None:
        """AVG gives neighbouring queues, AVG_BY_CIRCLE every second one of two."""
        members = ["a", "b"]
        self.assertEqual(allocate("AVG", range(5), members, "a"), [0, 1, 2])
        self.assertEqual(allocate("AVG", range(5), members, "b"), [3, 4])
        self.assertEqual(allocate("AVG_BY_CIRCLE", range(5), members, "b"), [1, 3])

    def test_stranger(self) -> None:
        """A client that is no member gets no queue."""
        self.assertEqual(allocate("AVG", range(5), ["a"], "b"), [])

    def test_unknown(self) -> None:
        """An unknown strategy decides nothing."""
        self.assertIsNone(allocate("NEAR_ROOM", range(5), ["a"], "a"))

    def test_nothingToShare(self) -> None:
        """Without queues, members or the id of the member nothing is decided."""
        self.assertIsNone(allocate("AVG", [], ["a"], "a"))
        self.assertIsNone(allocate("AVG", range(5), [], "a"))
        self.assertIsNone(allocate("AVG", range(5), ["a"], ""))


def queues_of(*brokers: str) -> list[MessageQueue]:
    """Two queues on each of some brokers."""
    return [MessageQueue("T", broker, at) for broker in brokers for at in range(2)]


def room_of_broker(
    rooms: dict[str, str | None],
) -> Callable[[MessageQueue], str | None]:
    """What says in which room the broker of a queue is."""
    return lambda queue: rooms[queue.broker]


class ClientStrategyTests(SynchronousTestCase):
    """What clients choose from, beside the broker's."""

    def shares(
        self, strategy: Strategy, queues: list[MessageQueue], *members: str
    ) -> list[list[str]]:
        """The queues of each member, shortly."""
        return [
            [
                f"{one.broker}/{one.queue_id}"
                for one in strategy(queues, members, me) or ()
            ]
            for me in members
        ]

    def test_consistentHash(self) -> None:
        """What Java's class gave: an owner by the MD5 sum of names."""
        found = self.shares(ConsistentHash(), queues_of("b1", "b2", "b3"), "c1", "c2")
        hers = ["b1/1", "b2/0", "b2/1", "b3/1"]
        self.assertEqual(found, [["b1/0", "b3/0"], hers])

    def test_ownersStayWhenAMemberComes(self) -> None:
        """By consistent hash a queue changes its owner only for the new member."""
        queues = queues_of(*(f"b{n}" for n in range(40)))
        strategy = named("CONSISTENT_HASH")
        before = [set(strategy(queues, ["a", "b"], one) or ()) for one in "ab"]
        after = [set(strategy(queues, ["a", "b", "c"], one) or ()) for one in "ab"]
        for old, new in zip(before, after, strict=True):
            self.assertLess(new, old)

    def test_noVirtualNodes(self) -> None:
        """Without a place on the ring nobody has a queue; fewer cannot be."""
        found = self.shares(ConsistentHash(0), queues_of("b1"), "c1")
        self.assertEqual(found, [[]])
        with self.assertRaises(ConfigurationError):
            ConsistentHash(-1)

    def test_configured(self) -> None:
        """Whatever there is, and whoever asks."""
        queues = queues_of("b1")
        self.assertEqual(list(Configured(queues)([], [], "")), queues)

    def test_machineRooms(self) -> None:
        """Those of brokers in these rooms; what is left over goes to the first."""
        queues = [*queues_of("hz@b1"), *queues_of("hz@b2")[:1], *queues_of("sh@b", "b")]
        found = self.shares(MachineRooms(["hz", "bj"]), queues, "c1", "c2")
        self.assertEqual(found, [["hz@b1/0", "hz@b2/0"], ["hz@b1/1"]])

    def test_nearbyRoom(self) -> None:
        """Each room's queues stay there; of a room without members all have some."""
        strategy = NearbyRoom(
            averagely, lambda one: one.broker[:2], lambda one: one[:2]
        )
        found = self.shares(strategy, queues_of("hz1", "sh1", "bj1"), "hz-a", "sh-a")
        self.assertEqual(
            found, [["hz1/0", "hz1/1", "bj1/0"], ["sh1/0", "sh1/1", "bj1/1"]]
        )

    def test_roomThatIsNotKnown(self) -> None:
        """Of a broker or a member: nothing is decided."""
        for missing in ("b1", "c1"):
            rooms = {"b1": "x", "c1": "x", missing: None}
            strategy = NearbyRoom(averagely, room_of_broker(rooms), rooms.get)
            with self.assertRaisesRegex(ValueError, f"no room is known of .*{missing}"):
                strategy(queues_of("b1"), ["c1"], "c1")

    def test_strangerHasNothing(self) -> None:
        """By none but the configured."""
        near = NearbyRoom(averagely, lambda one: "x", lambda one: "x")
        strategies: list[Strategy] = [*NAMED.values(), MachineRooms(["hz"]), near]
        for strategy in strategies:
            self.assertEqual(strategy(queues_of("hz@b1"), ["c1"], "c2"), [])

    def test_nothingToShareIsRefused(self) -> None:
        """No queues, no members, no id: as Java's classes do."""
        near = NearbyRoom(averagely, lambda one: "x", lambda one: "x")
        queues = queues_of("hz@b1")
        strategies: list[Strategy] = [*NAMED.values(), MachineRooms(["hz"]), near]
        for strategy in strategies:
            self.assertRaises(ValueError, strategy, [], ["c1"], "c1")
            self.assertRaises(ValueError, strategy, queues, [], "c1")
            self.assertRaises(ValueError, strategy, queues, ["c1"], "")

    def test_named(self) -> None:
        """A name, or what is a strategy already."""
        own = Configured([])
        self.assertIs(named(own), own)
        self.assertIs(named("AVG"), averagely)
        with self.assertRaisesRegex(ConfigurationError, "AVG, AVG_BY_CIRCLE, CONS"):
            named("CONFIG")
