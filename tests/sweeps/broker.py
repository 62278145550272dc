"""The power goes under a whole broker with SYNC_FLUSH.

Before each call to the disk, as in L{tests.sweeps.power}: what was answered with
SEND_OK is there, a delayed message is delivered once its time has come, topics, groups
and offsets are those of the last completed write or of one that had begun.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from rocketbroker.testing.files import MemoryDisk
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig
from rocketbroker.wire.bodies.topics import TopicConfig
from rocketbroker.wire.codes import RequestCode
from tests.broker.rig import Rig, send_ext
from tests.sweeps.corpus import Place, handed
from tests.sweeps.power import Figures, before

SETTINGS = {"flushDiskType": "SYNC_FLUSH", "messageDelayLevel": "1s 2s"}

#: So many of the images wait until delayed messages are delivered.
DELIVERED = 0.1


class Promise:
    """What was answered.

    @ivar sent: the body of each message that was answered with SEND_OK.
    @ivar delayed: the same, of messages that are delivered later to topic T.
    @ivar tables: what each table was written with last, as far as is known.
    @ivar writing: what it is being written with.
    """

    def __init__(self) -> None:
        self.sent: dict[Place, bytes] = {}
        self.delayed: set[bytes] = set()
        self.tables: dict[str, object] = {}
        self.writing: dict[str, object] = {}


class Broker:
    """Random work of a broker, watched."""

    def __init__(self, figures: Figures, seed: int, rate: float) -> None:
        """
        @param rate: how many images are taken before each call.
        """
        self.figures = figures
        self.seed = seed
        self.rate = rate
        self.luck = random.Random(seed)
        self.dice = random.Random(-seed - 1)
        self.promise = Promise()
        self.count = 0
        self.rig = Rig(SETTINGS)
        self.rig.topic("T")
        self.rig.schedule.start()
        self.rig.scheduler.start()
        self.note()

    def note(self) -> None:
        """All tables are written."""
        self.promise.tables = self.promise.writing = contents(self.rig)

    def run(self, steps: int) -> None:
        """Work, and look at what a crash would leave."""
        self.rig.disk.watch = self.watch
        for _ in range(steps):
            self.work()
        self.rig.disk.watch = None
        self.rig.close()

    def work(self) -> None:
        """One step."""
        self.count += 1
        (step,) = self.luck.choices(
            (self.send, self.delay, self.configure, self.commit, self.wait),
            (8, 2, 1, 1, 3),
        )
        step()

    def send(self) -> None:
        """A send, and its answer."""
        body = b"%d " % self.count * self.luck.choice((1, 10, 300, 1200))
        queue_id = self.luck.randrange(4)
        answer = self.rig.ask(
            RequestCode.SEND_MESSAGE_V2, send_ext(queue_id=queue_id), body
        )
        assert answer.code == 0 and answer.ext is not None, answer.remark
        self.promise.sent["T", queue_id, int(answer.ext["queueOffset"])] = body

    def delay(self) -> None:
        """A send for later."""
        body = b"later %d" % self.count
        properties = f"DELAY\x01{self.luck.choice((1, 2))}\x02"
        answer = self.rig.ask(
            RequestCode.SEND_MESSAGE_V2, send_ext(properties=properties), body
        )
        assert answer.code == 0, answer.remark
        self.promise.delayed.add(body)

    def configure(self) -> None:
        """Make, change or delete a topic or a group."""
        rig, name = self.rig, f"N{self.luck.randrange(3)}"
        queues = self.luck.randrange(1, 9)
        topic = TopicConfig(
            topic_name=name, read_queue_nums=queues, write_queue_nums=queues
        )
        group = SubscriptionGroupConfig(group_name=name, retry_max_times=queues)
        steps: list[Callable[[], object]] = [
            lambda: rig.topics.put([topic]),
            lambda: rig.groups.put([group]),
            lambda: rig.topics.delete(name),
            lambda: rig.groups.delete(name),
        ]
        self.write(self.luck.choice(steps))

    def commit(self) -> None:
        """Commit offsets, and write them."""
        for queue_id in range(4):
            self.rig.offsets.commit("G", "T", queue_id, self.count + queue_id)
        self.write(self.rig.offsets.save)

    def write(self, step: Callable[[], object]) -> None:
        """Do what writes a table; before its first call to the disk it has changed."""
        self.promise.writing = {}
        step()
        self.note()

    def wait(self) -> None:
        """Let time pass, and what is regular be done."""
        self.rig.clock.advance(self.luck.choice((0.01, 0.5, 1.1)))
        self.rig.schedule.save()

    # Crashes.

    def watch(self, call: str) -> None:
        """Before a call: perhaps the machine stops here."""
        step, disk = f"broker {self.seed}, step {self.count}", self.rig.disk
        before(call, self.figures, self.dice, self.rate, disk, step, self.check)

    def check(self, disk: MemoryDisk, what: str) -> None:
        """Look at what is left."""
        figures, promise = self.figures, self.promise
        now = contents(self.rig)
        rig = Rig(SETTINGS, disk=disk, start_ms=self.rig.wall_ms() + 1000)
        figures.tables += 3
        for name, content in contents(rig).items():
            if content not in (promise.tables[name], now[name]):
                figures.wrong.append(f"{what}: the {name} are {content}")
        found = handed(rig.store)
        for place, body in promise.sent.items():
            figures.checked += 1
            if found.get(place) != body:
                figures.wrong.append(f"{what}: {place} is lost")
        if self.dice.random() < DELIVERED:
            rig.schedule.start()
            for _ in range(40):
                rig.clock.advance(0.1)
            rig.scheduler.dispatch()
            figures.checked += len(promise.delayed)
            missing = promise.delayed - set(handed(rig.store).values())
            if missing:
                figures.wrong.append(f"{what}: {missing} are not delivered")
        rig.close()


def contents(rig: Rig) -> dict[str, object]:
    """What the tables of a broker say."""
    topics = {config.topic_name: config.to_json() for config in rig.topics.configs()}
    groups = {config.group_name: config.to_json() for config in rig.groups.configs()}
    offsets = {
        key: rig.offsets.queues(*reversed(key.split("@")))
        for key in rig.offsets.keys()  # noqa: SIM118  # it is no dict
    }
    return {"topics": topics, "groups": groups, "offsets": offsets}


def sweep(figures: Figures, seeds: range, steps: int, rate: float) -> None:
    """Run brokers.

    @param rate: how many images are taken before each call.
    """
    for seed in seeds:
        Broker(figures, seed, rate).run(steps)
