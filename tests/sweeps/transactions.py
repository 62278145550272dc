"""The power goes in the middle of transactions, with SYNC_FLUSH.

Before each call to the disk, as in L{tests.sweeps.power}: a broker is started on what
is left, and its producer answers what it is asked. Then each message whose half was
acknowledged is there if its producer has decided so, and no other; one is there twice
only if the power went between its commit and the mark of it, which is one for each time
at the most. In some of the images the power goes again while that is done.
"""

from __future__ import annotations

import random

from rocketbroker.errors import BrokerError
from rocketbroker.records import record
from rocketbroker.records.names import HALF_TOPIC, OP_HALF_TOPIC
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.wire.command import Command
from scripts.torture.twice import delivered_again
from tests.broker.rig import WALL_MS, Rig, send_ext
from tests.broker.transactions import COMMIT, ROLLBACK, SEND, UNKNOWN, ConnectionGroup
from tests.sweeps import power

SETTINGS = {
    "flushDiskType": "SYNC_FLUSH",
    "transactionTimeOut": "1000",
    "transactionCheckInterval": "1000",
    "transactionCheckMax": "1000",
}

QUEUES = 4

#: In so many of the images the power goes again.
AGAIN = 0.1

#: How many rounds of checks an image is given: one to ask all, one to be sure of it.
ROUNDS = 2

#: For so many seconds some producers do not want to be asked.
IMMUNE = "CHECK_IMMUNITY_TIME_IN_SECONDS\x012\x02"


class Figures(power.Figures):
    """What a sweep has come to.

    @ivar asked: how many questions were answered after a crash.
    @ivar twice: how many messages were delivered twice, as they may be.
    """

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.twice = 0

    def __str__(self) -> str:
        return (
            f"{self.taken()}: "
            f"{self.checked} transactions ended as decided, {self.asked} of them by "
            f"questions, {self.twice} delivered twice, {len(self.wrong)} wrong"
        )


def started(disk: MemoryDisk, start_ms: int) -> Rig:
    """A data path at work on a disk."""
    rig = Rig(SETTINGS, disk=disk, start_ms=start_ms)
    rig.topic("T", QUEUES)
    rig.transactions.start()
    rig.scheduler.start()
    return rig


def key_of(question: Command) -> str:
    """Which transaction is asked about."""
    return record.decode(question.body).unique_key or ""


class Workload:
    """Random transactions, watched.

    @ivar decided: of each one whose half was acknowledged, how it is to end.
    """

    def __init__(self, figures: Figures, seed: int, rate: float) -> None:
        """
        @param rate: how many images are taken before each call.
        """
        self.figures = figures
        self.seed = seed
        self.rate = rate
        self.luck = random.Random(seed)
        self.dice = random.Random(-seed - 1)
        self.count = 0
        self.step = "begin"
        self.decided: dict[str, int] = {}
        self.halves: dict[str, Command] = {}
        self.rig = started(MemoryDisk(), WALL_MS)
        self.party = ConnectionGroup(self.rig)

    def run(self, steps: int) -> None:
        """Work, and look at what a crash would leave."""
        self.rig.disk.watch = self.watch
        for _ in range(steps):
            (step,) = self.luck.choices(
                (self.half, self.end, self.answer, self.send, self.wait),
                (8, 8, 3, 1, 4),
            )
            self.count += 1
            self.step = step.__name__
            step()
        self.rig.disk.watch = None
        self.rig.transactions.stop()
        self.rig.close()

    def half(self) -> None:
        """Begin a transaction."""
        key = f"K{self.count}"
        body = key.encode() * self.luck.choice((1, 10, 300))
        more = IMMUNE if self.luck.random() < 0.2 else ""
        half = self.party.half(key, body, more, self.luck.randrange(QUEUES))
        self.halves[key] = half
        self.decided[key] = self.luck.choice((COMMIT, COMMIT, ROLLBACK))

    def end(self) -> None:
        """End one, perhaps again, or say that it is not known yet."""
        if not self.halves:
            return
        key = self.luck.choice([*self.halves])
        outcome = UNKNOWN if self.luck.random() < 0.1 else self.decided[key]
        try:
            self.party.end(self.halves[key], outcome)
        except BrokerError:
            # Too late for one that is immune: the next question ends it.
            return

    def answer(self) -> None:
        """Answer some of what is asked."""
        for question in self.party.questions():
            if self.luck.random() < 0.5:
                self.party.reply(question, self.decided[key_of(question)])

    def send(self) -> None:
        """An ordinary message between them."""
        answer = self.rig.ask(SEND, send_ext("O"), b"x" * 3000)
        assert answer.code == 0, answer.remark

    def wait(self) -> None:
        """Let time pass, and write down how far the checks are."""
        self.rig.clock.advance(self.luck.choice((0.01, 0.5, 1.1)))
        self.rig.transactions.save()
        self.rig.offsets.save()

    # Crashes.

    def watch(self, call: str) -> None:
        """Before a call: perhaps the machine stops here."""
        step = f"transactions {self.seed}, {self.step} {self.count}"
        disk = self.rig.disk
        power.before(call, self.figures, self.dice, self.rate, disk, step, self.check)

    def check(self, disk: MemoryDisk, what: str, losses: int = 1) -> None:
        """Start on what is left, answer all questions, and look.

        @param losses: how often the power has gone; a second time is the last.
        """
        once = losses == 1
        figures, decided = self.figures, self.decided
        rig = started(disk, self.rig.wall_ms() + 5000)
        party = ConnectionGroup(rig)
        for _ in range(ROUNDS):
            rig.clock.advance(1.1)
            for question in party.questions():
                figures.asked += 1
                party.reply(question, decided.get(key_of(question), ROLLBACK))
                if once and self.dice.random() < AGAIN / 2:
                    once = False
                    kind = self.dice.choice([*power.KINDS])
                    left = power.KINDS[kind](rig.disk, self.dice)
                    self.check(left, f"{what}, then {kind} left", losses + 1)
        halves, marks = rig.records(0, HALF_TOPIC), rig.records(0, OP_HALF_TOPIC)
        seen: set[str] = set()
        twice: list[str] = []
        for queue_id in range(QUEUES):
            messages = rig.records(queue_id)
            seen.update(message.unique_key or "" for message in messages)
            for older, marked in delivered_again(halves, marks, messages):
                key = older.unique_key or ""
                twice.append(key)
                if marked:
                    figures.wrong.append(f"{what}: {key} was delivered after its mark")
        figures.twice += len(twice)
        if len(twice) > losses:
            figures.wrong.append(f"{what}: {twice} were delivered twice")
        wanted = {key for key, outcome in decided.items() if outcome == COMMIT}
        figures.checked += len(decided)
        if seen != wanted:
            missing, others = sorted(wanted - seen), sorted(seen - wanted)
            figures.wrong.append(f"{what}: {missing} are missing, {others} visible")
        rig.transactions.stop()
        rig.close()


def sweep(figures: Figures, seeds: range, steps: int, rate: float) -> None:
    """Run workloads.

    @param rate: how many images are taken before each call.
    """
    for seed in seeds:
        Workload(figures, seed, rate).run(steps)
