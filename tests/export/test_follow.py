"""Exporting as messages come, in memory and without waiting."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import RocketbrokerError, TopicNotExist
from rocketbroker.export.copying import CopyJobs, JobFailed
from rocketbroker.export.follow import Follow, Pace
from rocketbroker.export.jsonlines import JsonDisplay
from rocketbroker.export.plans import FileTask
from rocketbroker.export.storage import Storage
from rocketbroker.sources.option_values import Time
from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.ranges import Queue
from tests.export.worlds import ONE, ZERO, LocalCopying, World
from tests.sources.messages import START_MS
from tests.sources.origins import MemoryOrigin

OTHER = Queue("U", "broker-a", 0)


class Gone(RocketbrokerError):
    """The broker does not answer."""


class FlakyOrigin(MemoryOrigin):
    """An origin that can be down.

    @ivar is_down: whether it is.
    """

    is_down = False

    def queues(self, topic: str) -> list[Queue]:
        """See L{Origin}; there is no topic without queues."""
        self.check()
        found = super().queues(topic)
        if not found:
            raise TopicNotExist(f"there is no topic {topic}")
        return found

    def bounds(self, queue: Queue) -> tuple[int, int]:
        """See L{Origin}."""
        self.check()
        return super().bounds(queue)

    def check(self) -> None:
        """Answer, or not."""
        if self.is_down:
            raise Gone("nobody answers")


class FailingCopying:
    """Provides C{CopyJobs}: fails a few times.

    @ivar left: how often yet, by topic.
    """

    def __init__(self, copying: LocalCopying, left: dict[str, int]) -> None:
        self.left = left
        self.closed = 0
        self._copying = copying
        self.done = copying.done
        self.abandon = copying.abandon

    def run(
        self, storage: Storage, options: ReadOptions, files: Sequence[FileTask]
    ) -> list[dict[str, Any]]:
        """See C{CopyJobs}."""
        (topic,) = options.topics
        if self.left.get(topic):
            self.left[topic] -= 1
            raise JobFailed("no room")
        return self._copying.run(storage, options, files)

    def close(self) -> None:
        """See C{CopyJobs}."""
        self.closed += 1


class ScriptedClock:
    """Provides C{Clock}: what happens meanwhile stands in a script.

    @ivar acts: what happens at each sleep, in order; behind the last one, the signal to
        stop.
    """

    def __init__(self) -> None:
        self.now = 100.0
        self.acts: list[Callable[[], object]] = []
        self.slept: list[float] = []

    def monotonic(self) -> float:
        """See C{Clock}."""
        return self.now

    def wall_ms(self) -> int:
        """See C{Clock}."""
        return START_MS + int(self.now * 1000)

    def sleep(self, seconds: float) -> None:
        """See C{Clock}."""
        self.slept.append(seconds)
        self.now += seconds
        if not self.acts:
            raise KeyboardInterrupt
        self.acts.pop(0)()


class FollowTests(SynchronousTestCase):
    """L{Follow}."""

    def setUp(self) -> None:
        """A topic of two queues, with a few messages, and an empty one."""
        self.world = World(self.mktemp(), {})
        self.broker = FlakyOrigin({ZERO: 3, ONE: 2, OTHER: 0})
        self.world.origin = self.world.copying.origin = self.broker
        self.clock = ScriptedClock()
        self.out = io.StringIO()

    def follow(
        self,
        *topics: str,
        target: int = 10**9,
        seconds: float = 900.0,
        copying: CopyJobs | None = None,
        **words: Any,
    ) -> int:
        """Follow until the script ends; the exit status."""
        return Follow(
            self.clock,
            self.world.storage,
            copying or self.world.copying,
            JsonDisplay(self.out, self.clock.wall_ms),
            ReadOptions(topics=topics or ("T",), name_server="n:1", **words),
            Pace(target, seconds),
            lambda options: self.broker,
        ).run()

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        """What was said, of some kinds."""
        rows = [json.loads(line) for line in self.out.getvalue().splitlines()]
        return [row for row in rows if row["kind"] in kinds]

    def to(self, queue: Queue, end: int) -> Callable[[], object]:
        """Messages come."""
        return lambda: self.world.origin.ends.update({queue: end})

    def later(self, seconds: float) -> Callable[[], object]:
        """Time goes by."""

        def act() -> None:
            self.clock.now += seconds

        return act

    def test_time(self) -> None:
        """What waits is exported when the oldest message has waited long enough."""
        self.clock.acts = [self.later(700), lambda: None, self.later(200), lambda: None]
        self.assertEqual(self.follow(), 0)
        (exported,) = self.events("exported")
        self.assertEqual((exported["topic"], exported["rows"]), ("T", 5))
        self.assertEqual(exported["time"], self.clock.wall_ms() - 2000)
        self.assertEqual(self.world.rows(), self.world.expected())
        self.assertEqual(
            [(row["messages"], row["topics"]) for row in self.events("waiting")],
            [(5, 1), (0, 1)],
        )
        self.assertEqual([row["pending"] for row in self.events("stopped")], [0])

    def test_old(self) -> None:
        """Messages that have waited before the start need not wait again."""
        self.clock.now = 1000.0
        self.assertEqual(self.follow(), 0)
        self.assertEqual(len(self.events("exported")), 1)

    def test_full(self) -> None:
        """So much that a file is full is exported at once, and again."""
        self.clock.acts = [self.to(ZERO, 50), lambda: None, self.to(ONE, 80)]
        self.assertEqual(self.follow(target=4000), 0)
        self.assertEqual([row["rows"] for row in self.events("exported")], [47 + 5, 78])
        self.assertEqual(self.world.rows(), self.world.expected())

    def test_nothing(self) -> None:
        """While nothing comes, a broker is asked once a second, all topics in turn."""
        self.world.origin.ends |= {ZERO: 0, ONE: 0}
        self.clock.acts = [lambda: None] * 59
        self.assertEqual(self.follow("T", "U"), 0)
        self.assertEqual(self.clock.slept, [1.0] * 60)
        self.assertEqual(self.world.origin.asked, 60)
        self.assertEqual(len(self.events("waiting")), 1)

    def test_brokerGone(self) -> None:
        """A broker that does not answer is asked ever more seldom, and told of once;
        when it is back, everything goes on."""
        self.clock.acts = [self.down(True), *[lambda: None] * 8, self.down(False)]
        self.clock.acts += [self.to(ZERO, 9), lambda: None, lambda: None]
        self.assertEqual(self.follow(seconds=250.0), 0)
        (gone,) = self.events("no_answer")
        self.assertEqual(gone["reason"], "nobody answers")
        self.assertEqual(len(self.events("answers_again")), 1)
        self.assertEqual(
            self.clock.slept[:10],
            [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0, 60.0],
        )
        self.assertEqual(self.clock.slept[10:], [1.0] * 4)
        self.assertEqual([row["rows"] for row in self.events("exported")], [5, 6])

    def down(self, is_down: bool) -> Callable[[], object]:
        """The broker goes, or comes back."""

        def act() -> None:
            self.broker.is_down = is_down

        return act

    def test_failures(self) -> None:
        """A run that fails is tried again, ever more seldom; the others go on."""
        self.clock.now = 1000.0
        self.world.origin.ends[OTHER] = 4
        copying = FailingCopying(self.world.copying, {"T": 3})
        self.clock.acts = [lambda: None] * 12
        self.assertEqual(self.follow("T", "U", copying=copying), 0)
        failed = self.events("failed")
        self.assertEqual([row["reason"] for row in failed], ["no room"] * 3)
        began = failed[0]["time"]
        self.assertEqual(
            [(row["topic"], row["time"] - began) for row in self.events("exported")],
            [("U", 0), ("T", 7000)],
        )
        self.assertEqual(copying.closed, 1)

    def test_loss(self) -> None:
        """Messages that are lost stop their topic, and no other; the status tells."""
        self.world.origin.ends[OTHER] = 4
        self.clock.now = 1000.0
        self.clock.acts = [lambda: None, lambda: None, self.lose, lambda: None]
        self.clock.acts += [self.to(OTHER, 9), self.later(900), *[lambda: None] * 3]
        self.assertEqual(self.follow("T", "U"), 4)
        (loss,) = self.events("data_loss")
        self.assertEqual(loss["topic"], "T")
        (given_up,) = self.events("given_up")
        self.assertEqual((given_up["topic"], given_up["status"]), ("T", 4))
        rows = [(row["topic"], row["rows"]) for row in self.events("exported")]
        self.assertEqual(rows, [("T", 5), ("U", 4), ("U", 5)])

    def lose(self) -> None:
        """Retention overtakes the export."""
        self.world.origin.ends[ZERO] = 20
        self.world.origin.first[ZERO] = 10

    def test_allLost(self) -> None:
        """If no topic can go on, it ends by itself."""
        self.clock.now = 1000.0
        self.clock.acts = [self.lose, *[lambda: None] * 5]
        self.assertEqual(self.follow(), 4)
        self.assertEqual(self.events("stopped"), [])

    def test_allowedLoss(self) -> None:
        """If loss is allowed it is told, and the rest is exported at once."""
        self.clock.now = 1000.0
        self.clock.acts = [self.lose, lambda: None]
        self.assertEqual(self.follow(fail_on_data_loss=False), 0)
        (lost,) = self.events("lost")
        self.assertEqual((lost["topic"], lost["messages"]), ("T", 7))
        self.assertEqual([row["rows"] for row in self.events("exported")], [5, 10])

    def test_pending(self) -> None:
        """A plan that waits is carried out first; an interrupted one is left."""
        self.world.copying.interrupt = True
        self.clock.now = 1000.0
        self.assertEqual(self.follow(), 0)
        self.assertEqual([row["pending"] for row in self.events("stopped")], [1])
        self.assertTrue(self.world.copying.abandoned)
        self.world.copying.interrupt = False
        self.clock.now = 0.0
        self.assertEqual(self.follow(seconds=10**9), 0)
        self.assertEqual(len(self.events("replaying")), 1)
        self.assertEqual([row["rows"] for row in self.events("exported")], [5])

    def test_since(self) -> None:
        """Messages that are not wanted are not waited for again and again."""
        self.clock.now = 1000.0
        self.clock.acts = [lambda: None] * 3
        late = Time(START_MS + 10**6)
        self.assertEqual(self.follow(starting_time=late), 0)
        self.assertEqual([row["rows"] for row in self.events("exported")], [0])
        self.assertEqual([row["messages"] for row in self.events("waiting")], [0])

    def test_refused(self) -> None:
        """What cannot be followed at all is refused at the beginning."""
        self.assertRaises(TopicNotExist, self.follow, "V")
        self.broker.is_down = True
        self.assertRaises(Gone, self.follow)
