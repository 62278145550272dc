"""Each rebalance strategy gives a member the queues that Java's class gives it."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from rocketbroker.errors import ConfigurationError
from rocketbroker.routing.allocation import (
    Configured,
    ConsistentHash,
    MachineRooms,
    NearbyRoom,
    Strategy,
    named,
)
from rocketbroker.routing.topic_view import MessageQueue
from scripts.lab.javabroker import jars
from scripts.lab.javaclient import PROJECT, QUICK, why_not
from tests.heavy import HEAVY

#: How many inputs each strategy is tried with.
INPUTS = 10_000 if HEAVY else 300
SEED = 17

NEARBY = "MACHINE_ROOM_NEARBY-"
STRATEGIES = (
    *("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "CONFIG", "MACHINE_ROOM"),
    *(f"{NEARBY}{inner}" for inner in ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")),
    f"{NEARBY}MACHINE_ROOM",
)

SOURCE = PROJECT / "oracle" / "Allocate.java"

ROOMS = ("hz", "sh", "bj", "b", "\u00e4")


class Case(NamedTuple):
    """An input: what a strategy is configured with, and what it is asked."""

    strategy: str
    configured: str
    queues: list[MessageQueue]
    members: list[str]
    member: str

    def line(self) -> str:
        """The line that asks Java."""
        members, queues = ",".join(self.members), text_of(self.queues)
        fields = (self.strategy, self.configured, queues, members, self.member)
        return "\t".join(fields) + "\n"


def text_of(queues: Sequence[MessageQueue]) -> str:
    """Queues as they stand in a line."""
    return ",".join(f"{one.topic}/{one.broker}/{one.queue_id}" for one in queues)


def queues_in(text: str) -> list[MessageQueue]:
    """Queues that stand in a line."""
    parts = [word.split("/") for word in text.split(",") if word]
    return [MessageQueue(topic, broker, int(at)) for topic, broker, at in parts]


class Cases:
    """Makes them: mostly as clients see it, all sorted; some such as never occur."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def one(self, strategy: str) -> Case:
        """An input for a strategy."""
        random = self._random
        queues = self._queues(strategy)
        members = self._members(strategy)
        chance = random.random()
        if chance < 0.05:
            random.shuffle(queues)
            random.shuffle(members)
        elif chance < 0.1:
            members += random.choices(members, k=2) if members else []
        member = random.choice(members) if members else "a"
        if random.random() < 0.04:
            member = random.choice(("", "stranger", "hz-stranger"))
        return Case(strategy, self._configured(strategy), queues, members, member)

    def _configured(self, strategy: str) -> str:
        random = self._random
        if strategy == "CONFIG":
            return text_of(self._queues(strategy))
        if strategy.endswith("MACHINE_ROOM"):
            near = strategy.startswith(NEARBY)
            rooms = [f"{a}-{b}" for a in ROOMS for b in ROOMS] if near else ROOMS
            return ",".join(random.sample(rooms, random.randrange(len(rooms))))
        if strategy.endswith("CONSISTENT_HASH"):
            return random.choice(("", "", "", "10", "1", "0", "37", "-1"))
        return ""

    def _queues(self, strategy: str) -> list[MessageQueue]:
        random = self._random
        if random.random() < 0.02:
            return []
        topic = random.choice(("T", "%RETRY%G", f"orders_{random.randrange(99)}"))
        brokers = {self._broker(strategy) for _ in range(random.randrange(1, 7))}
        return sorted(
            MessageQueue(topic, broker, at)
            for broker in brokers
            for at in range(random.choice((1, 2, 4, 8, 8, 16)))
        )

    def _broker(self, strategy: str) -> str:
        random = self._random
        room, number = random.choice(ROOMS), random.randrange(9)
        if strategy.startswith(NEARBY) and random.random() < 0.998:
            return f"{room}-{random.choice(ROOMS)}@broker{number}"
        if strategy.endswith("MACHINE_ROOM") and random.random() < 0.2:
            shapes = ("@{}", "{}@@", "{0}@{0}@", "{0}@{0}@{0}", "@@{}", "@", "{}")
            return random.choice(shapes).format(room)
        return f"{room}@broker-{number}"

    def _members(self, strategy: str) -> list[str]:
        random = self._random
        if random.random() < 0.02:
            return []
        count = random.choice((1, 1, 2, 3, 4, 5, 8, 13, 40))
        return sorted({self._member(strategy) for _ in range(count)})

    def _member(self, strategy: str) -> str:
        random = self._random
        address = ".".join(str(random.randrange(256)) for _ in range(4))
        member = f"{address}@{random.randrange(99999)}#{random.getrandbits(47)}"
        if strategy.startswith(NEARBY) and random.random() < 0.998:
            return f"{random.choice(ROOMS)}-{member}"
        return member


def room_of(name: str) -> str | None:
    """The room of a broker or a member whose name begins with it."""
    room, dash, _ = name.partition("-")
    return room if dash else None


def strategy_of(name: str, configured: str) -> Strategy:
    """Our strategy."""
    if name.startswith(NEARBY):
        return NearbyRoom(
            strategy_of(name.removeprefix(NEARBY), configured),
            lambda queue: room_of(queue.broker),
            room_of,
        )
    if name == "CONFIG":
        return Configured(queues_in(configured))
    if name == "MACHINE_ROOM":
        return MachineRooms(configured.split(",") if configured else ())
    if name == "CONSISTENT_HASH" and configured:
        return ConsistentHash(int(configured))
    return named(name)


def ours(case: Case) -> str:
    """What our strategy gives."""
    try:
        strategy = strategy_of(case.strategy, case.configured)
        return text_of(strategy(case.queues, case.members, case.member) or [])
    except (ValueError, ConfigurationError):
        return "IllegalArgumentException"


class AllocationTests(SynchronousTestCase):
    """The real classes beside ours."""

    def test_sameQueuesAsJava(self) -> None:
        """Also in the same order, and what one refuses the other refuses, too."""
        reason = why_not()
        if reason is not None:
            raise SkipTest(reason)
        made = Cases(SEED)
        cases = [made.one(name) for name in STRATEGIES for _ in range(INPUTS)]
        path = f"{jars('5.3.3', 'broker')}/*"
        done = subprocess.run(
            ["java", *QUICK, "-Dfile.encoding=UTF-8", "-cp", path, str(SOURCE)],
            input="".join(case.line() for case in cases).encode(),
            capture_output=True,
        )
        answers = done.stdout.decode().splitlines()
        self.assertEqual(len(answers), len(cases), done.stderr)
        different = [
            (case, answer, found)
            for case, answer in zip(cases, answers, strict=True)
            if (found := ours(case)) != answer
        ]
        self.assertEqual(different[:3], [])
        self.assertWorthIt(cases, answers)

    def assertWorthIt(self, cases: list[Case], answers: list[str]) -> None:
        """Of each strategy many inputs give some queues, and some are refused."""
        for name in STRATEGIES:
            found = [
                answer
                for case, answer in zip(cases, answers, strict=True)
                if case.strategy == name
            ]
            refused = found.count("IllegalArgumentException")
            self.assertGreater(len(found) - refused - found.count(""), len(found) // 5)
            self.assertEqual(refused > 0, name != "CONFIG", name)
