"""Where micro-batches end, and what is in them."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.ranges import Queue, Range
from rocketbroker.sources.source import DataLoss
from rocketbroker.spark.limits import BatchLimits
from rocketbroker.spark.microbatches import MicroBatches, least_partitions
from rocketbroker.spark.watching import Watch
from tests.examples import examples
from tests.sources.messages import START_MS, stored
from tests.sources.origins import MemoryOrigin

ZERO, ONE, NEW = (Queue("T", "b", number) for number in range(3))

NONE = BatchLimits()


class Stage:
    """A stream over queues in memory, and Spark's part in it.

    @ivar batches: what plans, made anew by L{restart}.
    @ivar offset: the end of the last micro-batch, as a checkpoint has it.
    """

    def __init__(self, ends: dict[Queue, int], **words: Any) -> None:
        self.clock = Clock()
        self.origin = MemoryOrigin(ends)
        self.options = ReadOptions(topics=("T",), **words)
        self.restart()
        self.offset = self.batches.initial()

    def restart(self) -> None:
        """The process that plans is another one now."""
        seconds = self.clock.seconds
        watch = Watch(seconds, self.clock.advance, self.origin, self.options)
        self.batches = MicroBatches(self.now_ms, watch, self.origin, self.options)

    def now_ms(self) -> int:
        """The time."""
        return START_MS + 1000 + int(self.clock.seconds() * 1000)

    def step(self, limits: BatchLimits = NONE) -> dict[int, tuple[int, int]] | None:
        """Run a micro-batch; its ranges by queue, None if there was none."""
        self.clock.advance(1)
        begin = self.offset
        end = self.batches.following(begin, limits)
        if end == begin:
            return None
        self.offset = json.loads(json.dumps(end))
        return self.ranges(begin, end)

    def ranges(self, begin: Any, end: Any) -> dict[int, tuple[int, int]]:
        """What a micro-batch reads of each queue."""
        found = self.batches.ranges(begin, end)
        return {e.queue.queue_id: (e.start, e.until) for e in found if e.size}


class BatchTests(SynchronousTestCase):
    """L{MicroBatches}."""

    def setUp(self) -> None:
        """A stream over two queues."""
        self.stage = Stage({ZERO: 10, ONE: 3})

    def test_all(self) -> None:
        """All there is, then nothing, then what came."""
        self.assertEqual(self.stage.step(), {0: (0, 10), 1: (0, 3)})
        self.assertIsNone(self.stage.step())
        self.stage.origin.ends[ONE] = 4
        self.assertEqual(self.stage.step(), {1: (3, 4)})

    def test_sameOffset(self) -> None:
        """With nothing new Spark gets the very offset it gave."""
        self.stage.step()
        begin = self.stage.offset
        found = self.stage.batches.following(begin, NONE)
        self.assertEqual(json.dumps(found), json.dumps(begin))

    def test_latest(self) -> None:
        """From the end on there is what comes; new queues from their first one."""
        stage = Stage({ZERO: 10}, starting="latest")
        self.assertIsNone(stage.step())
        stage.origin.put(NEW, 2)
        stage.clock.advance(60)
        self.assertEqual(stage.step(), {2: (0, 2)})

    def test_newQueueAgain(self) -> None:
        """A batch with a new queue, run again later, begins where it began."""
        self.stage.step()
        self.stage.origin.put(NEW, 9)
        self.stage.origin.first[NEW] = 4
        self.stage.clock.advance(60)
        begin = self.stage.offset
        self.assertEqual(self.stage.step(), {2: (4, 9)})
        self.stage.origin.first[NEW] = 7
        self.stage.restart()
        found = self.stage.ranges(begin, self.stage.offset)
        self.assertEqual(found, {2: (4, 9)})

    def test_restart(self) -> None:
        """Another process goes on where the checkpoint is."""
        self.stage.step()
        self.stage.restart()
        self.assertIsNone(self.stage.step())
        self.stage.origin.ends[ZERO] = 12
        self.assertEqual(self.stage.step(), {0: (10, 12)})

    def test_recreated(self) -> None:
        """A topic made anew, and grown past the offset, is found by its messages."""
        self.stage.step()
        self.stage.origin.records[2] = stored(2, store_ms=START_MS + 50, queue_id=1)
        self.stage.origin.ends[ONE] = 8
        self.stage.restart()
        error = self.assertRaises(DataLoss, self.stage.step)
        self.assertEqual(
            str(error),
            "TOPIC_RECREATED: message 2 of queue 1 of T on b is another one than the "
            "one read; begin with another checkpoint",
        )

    def test_recreatedUnchecked(self) -> None:
        """C{detectReset=false} looks at no messages."""
        stage = Stage({ONE: 3}, detect_reset=False)
        stage.step()
        stage.origin.records[2] = stored(2, store_ms=START_MS + 50, queue_id=1)
        stage.restart()
        self.assertIsNone(stage.step())

    def test_shorter(self) -> None:
        """A queue that is shorter than it was is another one; also while running."""
        self.stage.step()
        self.stage.origin.ends[ONE] = 2
        error = self.assertRaises(DataLoss, self.stage.step)
        self.assertIn("TOPIC_RECREATED: queue 1 of T on b ends at 2", str(error))

    def test_recreatedReplay(self) -> None:
        """A batch that is to be run again is checked at both ends."""
        begin = self.stage.offset
        self.stage.step()
        self.stage.origin.records[9] = stored(9, store_ms=START_MS + 50)
        self.stage.restart()
        self.assertRaises(DataLoss, self.stage.batches.ranges, begin, self.stage.offset)

    def test_brokerAway(self) -> None:
        """A queue whose broker is away is checked when it is back, and waits."""
        self.stage.step()
        self.stage.origin.records[2] = stored(2, store_ms=START_MS + 50, queue_id=1)
        away = Queue("T", "c", 0)
        self.stage.origin.put(away, 5)
        self.stage.clock.advance(60)
        self.stage.step()
        self.stage.origin.records.clear()
        self.stage.origin.hidden.add(away)
        self.stage.restart()
        self.assertIsNone(self.stage.step())
        self.stage.origin.hidden.clear()
        self.stage.origin.records[4] = stored(4, store_ms=START_MS + 50)
        self.stage.clock.advance(60)
        error = self.assertRaises(DataLoss, self.stage.step)
        self.assertIn("message 4 of queue 0 of T on c", str(error))

    def test_gone(self) -> None:
        """Messages that expire before they are read are data loss."""
        self.stage.origin.first[ZERO] = 4
        error = self.assertRaises(DataLoss, self.stage.step)
        self.assertEqual(
            str(error),
            "the messages [0, 4) of queue 0 of T on b are gone: queue 0 of T on b "
            "begins at 4",
        )

    def test_goneAllowed(self) -> None:
        """With C{record} the stream goes on; offset and log say what is gone."""
        stage = Stage({ZERO: 10}, fail_on_data_loss=False, record_data_loss=True)
        stage.origin.first[ZERO] = 4
        begin = stage.offset
        with self.assertLogs("rocketbroker.spark", "WARNING") as logs:
            self.assertEqual(stage.step(), {0: (4, 10)})
        self.assertIn("[0, 4) of queue 0 of T on b are gone", logs.output[0])
        hole = {"from": 0, "until": 4, "reason": "queue 0 of T on b begins at 4"}
        self.assertEqual(stage.offset["holes"], {"T": {"b": {"0": hole}}})
        self.assertEqual(stage.batches.lags.losses, {ZERO: 4})
        stage.restart()
        self.assertEqual(stage.ranges(begin, stage.offset), {0: (4, 10)})
        stage.origin.ends[ZERO] = 11
        self.assertEqual(stage.step(), {0: (10, 11)})
        self.assertNotIn("holes", stage.offset)

    def test_allGone(self) -> None:
        """Where all messages of a queue expired, the hole comes with the next ones."""
        stage = Stage({ZERO: 10}, fail_on_data_loss=False)
        stage.origin.first[ZERO] = 10
        self.assertIsNone(stage.step())
        stage.origin.ends[ZERO] = 12
        self.assertEqual(stage.step(), {0: (10, 12)})
        self.assertEqual(stage.offset["holes"]["T"]["b"]["0"]["until"], 10)

    def test_availableNow(self) -> None:
        """What comes after the start is not read; nothing waits; no minimum holds."""
        self.stage.batches.stop_at_present_ends()
        self.stage.origin.ends[ZERO] = 20
        limits = BatchLimits(max_offsets=7, min_offsets=100, max_delay_ms=10**9)
        found = [self.stage.step(limits) for _ in range(3)]
        self.assertEqual(found, [{0: (0, 5), 1: (0, 2)}, {0: (5, 10), 1: (2, 3)}, None])
        before = self.stage.clock.seconds()
        self.stage.batches.following(self.stage.offset, limits)
        self.assertEqual(self.stage.clock.seconds(), before)

    def test_bytes(self) -> None:
        """A limit of bytes is one of messages, by the size of the next ones."""
        size = len(self.stage.origin.message(ZERO, 0))
        found = self.stage.step(BatchLimits(max_bytes=7 * size))
        self.assertEqual(found, {0: (0, 5), 1: (0, 1)})

    def test_minimum(self) -> None:
        """Few messages wait for others, but not for ever."""
        self.stage.step()
        limits = BatchLimits(min_offsets=5, max_delay_ms=10_000)
        self.stage.origin.ends[ZERO] = 14
        self.assertIsNone(self.stage.step(limits))
        self.stage.origin.ends[ONE] = 4
        self.assertEqual(self.stage.step(limits), {0: (10, 14), 1: (3, 4)})
        self.stage.origin.ends[ZERO] = 15
        self.assertIsNone(self.stage.step(limits))
        self.stage.clock.advance(10)
        self.assertEqual(self.stage.step(limits), {0: (14, 15)})

    def test_group(self) -> None:
        """Offsets go to a group, each once, if there is one to commit to."""
        self.stage.batches.commit(self.stage.offset)
        self.assertEqual(self.stage.origin.groups, {})
        stage = Stage({ZERO: 10, ONE: 3}, commit_group="G")
        stage.step()
        stage.batches.commit(stage.offset)
        expected = {("G", ZERO): 10, ("G", ONE): 3}
        self.assertEqual(stage.origin.groups, expected)
        stage.origin.groups.clear()
        stage.batches.commit(stage.offset)
        self.assertEqual(stage.origin.groups, {})

    def test_groupRefused(self) -> None:
        """A group that brokers refuse is logged, and the stream goes on."""
        stage = Stage({ZERO: 10}, commit_group="refused")
        stage.step()
        with self.assertLogs("rocketbroker.spark", "WARNING") as logs:
            stage.batches.commit(stage.offset)
        self.assertIn("commitGroup=refused is refused: not exist", logs.output[0])

    def test_lag(self) -> None:
        """Behind what was read, and what will be, in messages and since when."""
        self.stage.step(BatchLimits(max_offsets=4))
        lags = self.stage.batches.lags
        self.assertEqual([lag.messages for lag in lags.read()], [10, 3])
        self.assertEqual([lag.messages for lag in lags.planned()], [7, 2])
        # Message n was stored n + 1 ms after the start, a second before the clock's.
        seconds = [lag.seconds for lag in lags.planned()]
        self.assertEqual(seconds, [1.996, 1.998])
        tree = self.stage.batches.latest()
        self.assertEqual(tree["t"], {"T": {"b": {"0": 10, "1": 3}}})
        self.assertEqual(tree["lag"]["T"]["b"]["1"], {"messages": 2, "ms": 1998})
        self.stage.step()
        self.assertEqual([lag.messages for lag in lags.read()], [7, 2])
        self.assertEqual({lag.seconds for lag in lags.planned()}, {0.0})
        self.stage.step()
        self.assertEqual([lag.messages for lag in lags.read()], [0, 0])

    def test_requests(self) -> None:
        """While nothing comes, brokers get at most 2 requests a second."""
        self.stage.step()
        asked, began = self.stage.origin.asked, self.stage.clock.seconds()
        for _ in range(50):
            self.stage.batches.following(self.stage.offset, NONE)
            self.stage.batches.latest()
        spent = self.stage.clock.seconds() - began
        self.assertLess((self.stage.origin.asked - asked) / spent, 2)

    @examples(0.3)
    @given(
        st.lists(
            st.tuples(
                st.sampled_from((0, 1, 2)),
                st.integers(0, 20),
                st.integers(1, 12),
                st.booleans(),
            ),
            max_size=12,
        )
    )
    def test_everyOffsetOnce(self, moves: list[tuple[int, int, int, bool]]) -> None:
        """Whatever comes, is limited, and restarts: each offset is read once."""
        stage = Stage({ZERO: 3, ONE: 0})
        read: dict[int, list[int]] = {0: [], 1: [], 2: []}

        def take(found: dict[int, tuple[int, int]] | None) -> bool:
            for queue_id, (start, until) in (found or {}).items():
                read[queue_id] += range(start, until)
            return found is not None

        for queue_id, more, limit, restarts in moves:
            queue = Queue("T", "b", queue_id)
            stage.origin.put(queue, stage.origin.ends.get(queue, 0) + more)
            if restarts:
                stage.restart()
            take(stage.step(BatchLimits(max_offsets=limit)))
        stage.clock.advance(60)
        while take(stage.step(BatchLimits(max_offsets=9))):
            pass
        for queue, end in stage.origin.ends.items():
            self.assertEqual(read[queue.queue_id], [*range(end)])


class PartitionTests(SynchronousTestCase):
    """L{least_partitions}."""

    def test_few(self) -> None:
        """A small micro-batch gets few tasks, a large one as many as cores."""
        for size, expected in ((0, 0), (1, 1), (10_000, 1), (30_000, 3), (10**9, 8)):
            ranges = [Range(ZERO, 0, size)]
            self.assertEqual(least_partitions(ranges, ReadOptions(), 8), expected)
        options = ReadOptions(least_partitions=5)
        self.assertEqual(least_partitions([Range(ZERO, 0, 1)], options, 8), 5)
