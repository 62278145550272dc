"""Exports of some messages only."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.export.history import queue_states, read_history
from rocketbroker.export.runs import DONE, NOTHING_NEW
from rocketbroker.export.verify import DIGESTS, check_manifest, check_one, compare_with
from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.ranges import Queue
from tests.export.worlds import ONE, ZERO, World
from tests.sources.messages import stored

EVEN: dict[str, Any] = {"tags": "even"}


class FilteringTests(SynchronousTestCase):
    """Tags and conditions."""

    def setUp(self) -> None:
        """Two queues; every other message is even."""
        self.world = World(self.mktemp(), {ZERO: 20, ONE: 5})

    def exported(self) -> list[int]:
        """The offsets that are exported, of both queues."""
        return [offset for _, offset, _ in self.world.rows()]

    def faults(self) -> list[str]:
        """What is wrong with ledger, files and source."""
        options = ReadOptions(name_server="n", topics=("T",))
        history = read_history(self.world.storage)
        found = [*check_manifest(history)]
        for file in history.files():
            found += check_one(self.world.storage, file, DIGESTS)
            found += compare_with(self.world.origin, options, file).faults
        return [fault.text for fault in found]

    def test_tags(self) -> None:
        """Only messages with a tag are exported, and the others are counted."""
        self.assertEqual(self.world.run(**EVEN), DONE)
        self.assertEqual(self.exported(), [*range(0, 20, 2), 0, 2, 4])
        self.assertIn(
            "rows=13 expected=25 missing=0 filtered=12", self.world.out.getvalue()
        )
        self.assertEqual(self.faults(), [])
        states = queue_states(read_history(self.world.storage))
        self.assertEqual([state.filtered for state in states], [10, 2])
        self.assertEqual(self.world.run(**EVEN), NOTHING_NEW)

    def test_condition(self) -> None:
        """So by a condition."""
        self.assertEqual(self.world.run(sql_filter="TAGS = 'odd'"), DONE)
        self.assertEqual(self.exported(), [*range(1, 20, 2), 1, 3])
        self.assertEqual(self.faults(), [])

    def test_none(self) -> None:
        """If none is wanted, the next run goes on behind them all the same."""
        self.assertEqual(self.world.run(tags="other"), DONE)
        self.assertEqual(self.exported(), [])
        self.assertEqual(self.world.run(tags="other"), NOTHING_NEW)
        self.world.origin.records[19] = stored(19, b"other", store_ms=5)
        self.assertNotEqual(self.world.run(tags="other"), NOTHING_NEW)

    def test_damaged(self) -> None:
        """A damaged message is a hole, whether it was wanted or not."""
        self.world.origin.ends[ONE] = 0
        self.world.origin.records[3] = b"garbage"
        self.assertEqual(self.world.run(fail_on_data_loss=False, **EVEN), DONE)
        history = read_history(self.world.storage)
        (gap,) = history.commits[0].gaps
        self.assertEqual((gap.wanted.start, gap.wanted.until), (3, 4))
        self.assertEqual(list(check_manifest(history)), [])

    def test_other(self) -> None:
        """A wanted message that is another one in the source is found."""
        self.world.run(**EVEN)
        self.world.origin.ends[ONE] = 0
        self.world.origin.records[4] = stored(4, b"other", {"TAGS": "even"})
        self.assertTrue(self.faults())

    def test_changed(self) -> None:
        """A run with another filter is of what is new."""
        self.world.run(**EVEN)
        self.world.origin.ends[ZERO] = 22
        self.assertEqual(self.world.run(), DONE)
        self.assertEqual(self.exported()[-5:], [20, 21, 0, 2, 4])
        self.assertEqual(self.faults(), [])

    def test_light(self) -> None:
        """Messages of queues of many topics keep their offsets."""
        queue = Queue("%LMQ%T", "broker-a", 0)
        self.world.origin.put(queue, 6)
        for number in range(6):
            tag = {"TAGS": "even" if number % 2 == 0 else "odd"}
            self.world.origin.records[number] = stored(
                100 + number, b"%d" % number, tag
            )
        self.assertEqual(self.world.run(topics=(queue.topic,), **EVEN), DONE)
        self.assertEqual(self.exported(), [0, 2, 4])


class StartTests(SynchronousTestCase):
    """Where an export begins."""

    def setUp(self) -> None:
        """Two queues."""
        self.world = World(self.mktemp(), {ZERO: 20, ONE: 5})

    def exported(self) -> list[int]:
        """The offsets of queue 0 that are exported."""
        return [offset for queue, offset, _ in self.world.rows() if queue == 0]

    def test_latest(self) -> None:
        """An export that begins at the end does so once, not in each run again."""
        self.assertEqual(self.world.run(starting="latest"), NOTHING_NEW)
        self.world.origin.ends[ZERO] = 23
        self.assertEqual(self.world.run(starting="latest"), DONE)
        self.assertEqual(self.exported(), [20, 21, 22])
        self.assertEqual(self.world.run(starting="latest"), NOTHING_NEW)
        history = read_history(self.world.storage)
        self.assertEqual(list(check_manifest(history)), [])

    def test_named(self) -> None:
        """Offsets by name count for the queues of their topics."""
        other = Queue("U", "broker-a", 0)
        self.world.origin.put(other, 4)
        starting = ((ZERO, 15), (other, 1))
        words: dict[str, Any] = {"topics": ("T", "U"), "starting": starting}
        self.assertEqual(self.world.run(**words), DONE)
        self.assertEqual(self.exported(), [1, 2, 3, *range(15, 20)])
        wrong: dict[str, Any] = {**words, "starting": ((Queue("V", "b", 0), 1),)}
        self.assertEqual(self.world.run(**wrong), 1)
        self.assertIn("topic 'V', which is not exported", self.world.out.getvalue())

    def test_noSuchQueue(self) -> None:
        """A queue that does not exist is refused, with those that do."""
        starting = ((queue_of(9), 1),)
        self.assertEqual(self.world.run(starting=starting), 1)
        self.assertIn("which has queues 0, 1", self.world.out.getvalue())


def queue_of(number: int) -> Queue:
    """A queue of the topic."""
    return ZERO._replace(queue_id=number)
