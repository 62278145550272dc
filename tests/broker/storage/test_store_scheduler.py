"""Tests of L{rocketbroker.broker.storage.store_scheduler}."""

from __future__ import annotations

import errno
from typing import Any

from twisted.logger import capturedLogs, formatEvent

from rocketbroker.broker.storage.store_scheduler import (
    ALLOCATE_SECONDS,
    CATCH_UP_SECONDS,
    DISPATCH_SECONDS,
    FINDINGS_SECONDS,
    HASTE_SECONDS,
    INDEX_SECONDS,
    MAX_DISPATCHED,
    MAX_INDEXED_NOW,
    RECEIVED_SECONDS,
    REST_SECONDS,
    RETRY_SECONDS,
)
from rocketbroker.store.interfaces import Arrival, Draft
from rocketbroker.store.message_store import Store
from tests.broker.rig import HOST
from tests.broker.storage.schedulers import SchedulerCase


class Mistaken:
    """A store that fails to name its findings, for the first time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._asked = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def findings(self) -> list[str]:
        """An error, then a finding."""
        self._asked += 1
        assert self._asked > 1 or 1 // 0
        return ["Found."]


class DispatchTests(SchedulerCase):
    """When what was appended gets into the queues."""

    def test_soon(self) -> None:
        """A millisecond after the first of several appends, all together."""
        self.append()
        self.append()
        self.rig.clock.advance(DISPATCH_SECONDS / 2)
        self.append()
        self.assertEqual(self.arrived, [])
        self.rig.clock.advance(DISPATCH_SECONDS / 2)
        self.assertEqual(self.arrived, [(3, 3)])
        self.rig.clock.advance(INDEX_SECONDS)
        self.rig.threads.run()
        self.rig.clock.advance(CATCH_UP_SECONDS)
        self.assertEqual(self.rig.clock.getDelayedCalls(), [])

    def test_received(self) -> None:
        """What came from a master is dispatched some milliseconds later, and sent on to
        other slaves at once."""
        self.rig.append()
        self.scheduler.received()
        self.assertEqual(self.replicas.notices, 1)
        self.rig.clock.advance(RECEIVED_SECONDS / 2)
        self.assertEqual(self.arrived, [])
        self.rig.clock.advance(RECEIVED_SECONDS / 2)
        self.assertEqual(self.arrived, [(1, 1)])

    def test_elsewhere(self) -> None:
        """What another process has appended is dispatched when it tells of it; soon,
        all together, if several do within a millisecond."""
        self.rig.clock.advance(DISPATCH_SECONDS)
        self.rig.append()
        self.scheduler.appended_elsewhere()
        self.assertEqual((self.arrived, self.replicas.notices), ([(1, 1)], 1))
        for _ in range(2):
            self.rig.append()
            self.scheduler.appended_elsewhere()
        self.assertEqual(len(self.arrived), 1)
        self.rig.clock.advance(0)
        self.assertEqual(self.arrived, [(1, 1), (3, 2)])

    def test_elsewhereLate(self) -> None:
        """What is told behind the stop is left to the next start."""
        self.rig.clock.advance(DISPATCH_SECONDS)
        self.scheduler.stop()
        self.rig.append()
        self.scheduler.appended_elsewhere()
        self.assertEqual(self.arrived, [])

    def test_elsewhereRefused(self) -> None:
        """A disk that refuses is asked again after a while, not with each append."""
        self.rig.clock.advance(DISPATCH_SECONDS)
        self.rig.append()
        self.rig.disk.fail("pwrite", errno.EIO)
        self.scheduler.appended_elsewhere()
        self.scheduler.appended_elsewhere()
        self.rig.clock.advance(RETRY_SECONDS / 2)
        self.scheduler.appended_elsewhere()
        self.assertEqual((self.arrived, self.scheduler.failures), ([], 1))
        self.rig.clock.advance(RETRY_SECONDS / 2)
        self.assertEqual(self.arrived, [(1, 1)])

    def test_now(self) -> None:
        """At once when asked; then nothing is left for later."""
        self.append()
        self.scheduler.dispatch()
        self.assertEqual(self.arrived, [(1, 1)])
        self.rig.clock.advance(DISPATCH_SECONDS)
        self.assertEqual(len(self.arrived), 1)
        self.assertEqual(self.scheduler.dispatches, 1)

    def test_turn(self) -> None:
        """A dispatch is a turn, at whose end the woken are answered all at once."""
        ended: list[int] = []
        self.turns.watch_turn_end(lambda: ended.append(len(self.arrived)))
        self.append()
        self.rig.clock.advance(DISPATCH_SECONDS)
        self.assertEqual(ended, [1])

    def test_steps(self) -> None:
        """Much goes in steps, between which others get their turn."""
        self.append(MAX_DISPATCHED + 1)
        self.rig.clock.advance(DISPATCH_SECONDS)
        self.assertEqual(
            self.arrived, [(MAX_DISPATCHED, MAX_DISPATCHED), (MAX_DISPATCHED + 1, 1)]
        )
        self.assertEqual(self.scheduler.dispatches, 2)

    def test_withoutQueue(self) -> None:
        """Steps that met only half messages do not end the work before its end."""
        queue = self.rig.store.queue("T", 0)
        for sys_flag in [4] * (MAX_DISPATCHED + 1) + [0]:
            self.rig.store.append(
                [Draft(queue, b"", b"", 0, sys_flag, 0, HOST, 0, 0, None)]
            )
        self.scheduler.appended()
        self.rig.clock.advance(DISPATCH_SECONDS)
        self.assertEqual(self.arrived, [(1, 1)])

    def test_fromWithin(self) -> None:
        """Who is woken by a dispatch may ask for one: nothing is done twice."""

        def wake(arrival: Arrival) -> None:
            self.scheduler.dispatch()

        self.scheduler.watch(wake)
        self.append()
        self.scheduler.dispatch()
        self.assertEqual(self.arrived, [(1, 1)])

    def test_onlyFlushed(self) -> None:
        """With SYNC_FLUSH what is not on the disk stays out, and comes after."""
        self.begin(flush_disk_type="SYNC_FLUSH")
        self.append()
        self.rig.clock.advance(DISPATCH_SECONDS)
        self.assertEqual(self.arrived, [])
        self.assertEqual(self.rig.clock.getDelayedCalls(), [])
        self.group_commit.flush()
        self.rig.threads.run()
        self.rig.clock.advance(DISPATCH_SECONDS)
        self.assertEqual(self.arrived, [(1, 1)])

    def test_failure(self) -> None:
        """A disk that refuses is asked again later; nothing is lost."""
        self.append()
        self.rig.disk.fail("pwrite", errno.EIO)
        self.scheduler.dispatch()
        self.scheduler.dispatch()
        self.rig.clock.advance(RETRY_SECONDS / 2)
        self.assertEqual((self.arrived, self.scheduler.failures), ([], 1))
        self.rig.clock.advance(RETRY_SECONDS / 2)
        self.assertEqual(sum(count for _, count in self.arrived), 1)
        self.assertEqual(
            self.rig.store.dispatched_position, self.rig.store.published_position
        )


class RegularTests(SchedulerCase):
    """What is done every so often."""

    def flushed(self) -> bool:
        """Whether all that was published is on the disk."""
        return self.rig.store.flushed_position == self.rig.store.published_position

    def advance(self, seconds: float) -> None:
        """Let time pass and threads work."""
        self.rig.clock.advance(seconds)
        self.rig.threads.run()
        self.rig.threads.run()

    def test_flush(self) -> None:
        """With ASYNC_FLUSH the log is flushed every flushIntervalCommitLog."""
        self.begin(flush_interval_commit_log=500, flush_commit_log_least_pages=0)
        self.scheduler.start()
        self.append()
        self.advance(0.4)
        self.assertFalse(self.flushed())
        self.advance(0.1)
        self.assertTrue(self.flushed())
        self.stop()

    def test_nothingToFlush(self) -> None:
        """Without anything new the disk is left alone."""
        self.begin(flush_commit_log_least_pages=0)
        self.scheduler.start()
        self.advance(20)
        self.assertEqual(self.group_commit.flushes, 0)
        self.stop()

    def test_next(self) -> None:
        """The next segment is made at the start and looked for twice a second."""
        self.scheduler.start()
        self.assertEqual(len(self.rig.threads.waiting), 1)
        self.rig.threads.run()
        self.rig.clock.advance(ALLOCATE_SECONDS)
        self.assertEqual(len(self.rig.threads.waiting), 1)
        self.stop()

    def test_haste(self) -> None:
        """A load that takes the next segment has another made at once, but a disk that
        has no room is not asked without a pause."""
        self.scheduler.start()
        self.rig.threads.run()
        self.rig.append(b"x" * 60_000)
        self.rig.append(b"x" * 60_000)
        self.scheduler.dispatch()
        self.rig.disk.capacity = 0
        before = self.rig.disk.calls["make_dirs"]
        for _ in range(40):
            self.scheduler.appended()
            self.rig.clock.advance(DISPATCH_SECONDS)
            self.rig.threads.run()
        self.assertEqual(self.rig.disk.calls["make_dirs"], before + 2)
        self.rig.disk.capacity = None
        self.rig.clock.advance(HASTE_SECONDS)
        self.scheduler.appended()
        self.rig.clock.advance(DISPATCH_SECONDS)
        self.rig.threads.run()
        self.assertFalse(self.rig.store.lacks_room())
        self.stop()

    def test_onceAtATime(self) -> None:
        """A step that still runs is not begun again."""
        self.scheduler.start()
        for _ in range(10):
            self.rig.clock.advance(1)
        self.assertEqual(len(self.rig.threads.waiting), 2)
        self.stop()

    def test_findings(self) -> None:
        """What was found wrong on the disk is logged, once."""
        self.scheduler.start()
        self.rig.store.corruption_log.note(7, "Nothing stands at 7.")
        with capturedLogs() as events:
            for _ in range(3):
                self.advance(FINDINGS_SECONDS)
        (event,) = events
        self.assertEqual(formatEvent(event), "Nothing stands at 7.")
        self.stop()

    def test_mistake(self) -> None:
        """No error ends the regular steps: it is logged and counted, and the step
        comes again."""
        self.begin(Mistaken)
        self.scheduler.start()
        self.advance(FINDINGS_SECONDS)
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)
        self.assertEqual(sum(call.failures for call in self.services.calls.values()), 1)
        with capturedLogs() as events:
            self.advance(FINDINGS_SECONDS)
        self.assertEqual([formatEvent(event) for event in events], ["Found."])
        self.stop()

    def test_queues(self) -> None:
        """Queues are flushed every flushIntervalConsumeQueue, also after failures."""
        self.begin(flush_interval_consume_queue=1000)
        self.scheduler.start()
        self.append()
        self.advance(0.9)
        self.rig.disk.fail("datasync", errno.EIO, times=1)
        self.assertEqual(self.scheduler.failures, 0)
        self.advance(0.1)
        self.assertEqual(self.scheduler.failures, 1)
        self.advance(1)
        self.assertEqual(self.scheduler.failures, 1)
        self.stop()

    def test_stop(self) -> None:
        """At the end what was appended is dispatched, and threads are waited for."""
        self.scheduler.start()
        self.append()
        self.services.stop()
        done = self.scheduler.stop()
        self.assertEqual(self.arrived, [(1, 1)])
        self.assertNoResult(done)
        self.rig.threads.run()
        self.successResultOf(done)
        self.append()
        self.assertEqual(self.rig.clock.getDelayedCalls(), [])

    def test_stopBeforeStart(self) -> None:
        """What was never started stops too."""
        self.stop()


class IndexTests(SchedulerCase):
    """When the index is built."""

    def append(self, count: int = 1) -> None:
        """Append messages with keys."""
        for _ in range(count):
            self.rig.append(properties=b"KEYS\x01k\x02")
        self.scheduler.appended()

    def test_behind(self) -> None:
        """In a thread, behind the dispatch, once at a time, until nothing is left."""
        self.scheduler.start()
        self.rig.threads.run()
        self.append(3)
        self.rig.clock.advance(DISPATCH_SECONDS)
        self.assertTrue(self.rig.store.index_behind)
        self.rig.clock.advance(INDEX_SECONDS)
        self.rig.clock.advance(INDEX_SECONDS)
        self.assertEqual(len(self.rig.threads.waiting), 1)
        self.rig.threads.run()
        self.assertFalse(self.rig.store.index_behind)
        self.rig.clock.advance(INDEX_SECONDS)
        self.assertEqual(len(self.rig.threads.waiting), 0)
        self.stop()

    def test_now(self) -> None:
        """Once there is a file with room, between the turns."""
        self.begin(max_index_num=100_000)
        for threads in (1, 0):
            self.append(3)
            self.rig.clock.advance(DISPATCH_SECONDS)
            self.rig.clock.advance(INDEX_SECONDS)
            self.assertEqual(len(self.rig.threads.waiting), threads)
            self.rig.threads.run()
            self.assertFalse(self.rig.store.index_behind)
        self.rig.clock.advance(INDEX_SECONDS)

    def test_rest(self) -> None:
        """What is too much for one step is not left waiting for others."""
        self.begin(max_index_num=100_000)
        self.append()
        self.rig.clock.advance(DISPATCH_SECONDS)
        self.rig.clock.advance(INDEX_SECONDS)
        self.rig.threads.run()
        self.rig.clock.advance(INDEX_SECONDS)
        for _ in range(3):
            self.append(MAX_INDEXED_NOW // 3 + 1)
            self.rig.clock.advance(DISPATCH_SECONDS)
        self.rig.clock.advance(INDEX_SECONDS - 2 * DISPATCH_SECONDS)
        self.assertTrue(self.rig.store.index_behind)
        self.rig.clock.advance(REST_SECONDS)
        self.assertFalse(self.rig.store.index_behind)
        self.rig.clock.advance(INDEX_SECONDS)

    def test_refused(self) -> None:
        """What the disk refuses is logged, and tried again."""
        self.begin(max_index_num=100_000)
        self.append(3)
        self.rig.clock.advance(DISPATCH_SECONDS)
        self.rig.clock.advance(INDEX_SECONDS)
        self.rig.threads.run()
        self.append(3)
        self.rig.clock.advance(DISPATCH_SECONDS)
        self.rig.disk.fail("pwrite", errno.ENOSPC)
        with capturedLogs() as events:
            self.rig.clock.advance(INDEX_SECONDS)
        self.assertEqual(events[0]["step"], "build_index_now")
        for _ in range(60):
            self.rig.clock.advance(CATCH_UP_SECONDS)
            self.rig.threads.run()
        self.assertFalse(self.rig.store.index_behind)

    def test_stop(self) -> None:
        """A stop waits for the step that runs and begins no other."""
        self.append(3)
        self.rig.clock.advance(DISPATCH_SECONDS)
        self.stop()
        self.assertTrue(self.rig.store.index_behind)
