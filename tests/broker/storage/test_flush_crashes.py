"""Machines that stop at any time, under all settings of flush.

Random work with the broker's own timing, until the machine or the process stops: what
producers were promised is there afterwards, and the checkpoint has not said too much.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.appends.ack_rule import AckRule
from rocketbroker.broker.appends.append_batcher import AppendBatcher
from rocketbroker.broker.appends.group_commit import GroupCommit
from rocketbroker.broker.storage.store_scheduler import StoreScheduler
from rocketbroker.records.entries import ENTRY, SIZE
from rocketbroker.store.commitlog.checkpoint import Checkpoint
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.interfaces import PUT_OK, Draft
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.replicas import ScriptedReplicas
from tests.broker.rig import context_of, settings_of
from tests.store.stores import QUEUE_ENTRIES, ROOT, Wall, draft, make, placed
from tests.store.stores import options as store_options

T = TypeVar("T")

#: What the settings are chosen from, the defaults among them.
CHOICES: dict[str, tuple[object, ...]] = {
    "flush_disk_type": ("ASYNC_FLUSH", "SYNC_FLUSH"),
    "read_un_committed": (False, True),
    "flush_interval_commit_log": (10, 500),
    "flush_commit_log_timed": (True, False),
    "wake_flush_when_put_message": (False, True),
    "flush_commit_log_least_pages": (4, 0),
    "flush_commit_log_thorough_interval": (10_000, 1000),
    "flush_interval_consume_queue": (1000, 100),
    "flush_consume_queue_least_pages": (2, 0, 1),
    "flush_consume_queue_thorough_interval": (60_000, 2000),
    "sync_flush_timeout": (5000, 20),
    "warm_maped_file_enable": (False, True),
}


class SlowThreads:
    """Threads whose work is done at one time and told at another."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], Callable[[], None]]] = []
        self.done: list[Callable[[], None]] = []

    def __call__(self, function: Callable[[], T], /) -> Deferred[T]:
        """Run C{function} later."""
        answered: Deferred[T] = Deferred()

        def work() -> Callable[[], None]:
            try:
                result = function()
            except OSError as error:
                return partial(answered.errback, error)
            return partial(answered.callback, result)

        self.waiting.append(work)
        return answered

    def run(self) -> None:
        """Tell what has been done, then do what waits."""
        done, self.done = self.done, []
        for tell in done:
            tell()
        waiting, self.waiting = self.waiting, []
        self.done += [work() for work in waiting]


class Promise:
    """A message that was stored at a time.

    @ivar is_heard: whether its producer was told of success.
    """

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.queue_id = self.queue_offset = 0
        self.position = self.end = self.ms = 0
        self.is_stored = False
        self.is_heard = False

    def answered(self, draft: Draft, code: int) -> None:
        """The producer gets its answer."""
        self.is_heard = draft.status == PUT_OK and code == 0

    def stored(self, draft: Draft, ms: int) -> None:
        """It was appended, or refused."""
        self.is_stored = draft.status == PUT_OK
        self.queue_id = draft.queue.queue_id
        self.queue_offset = draft.queue_offset
        self.position = draft.position
        self.end = draft.end
        self.ms = ms


class Machine:
    """A disk, and one broker after the other on it, each with other settings.

    @ivar promises: of each queue, what is stored, in order.
    @ivar waited: those whose producers wait for the disk where that is set.
    """

    def __init__(self, seed: int) -> None:
        self.luck = random.Random(seed)
        self.disk = MemoryDisk()
        self.wall = Wall()
        self.promises: dict[int, list[Promise]] = {number: [] for number in range(3)}
        self.waited: set[Promise] = set()
        self.count = 0
        self.start()

    def start(self) -> None:
        """Start a broker on what is there."""
        self.settings = {
            name: self.luck.choice(values) for name, values in CHOICES.items()
        }
        options = store_options(**self.settings)
        self.clock = Clock()
        self.threads = SlowThreads()
        self.store = make(self.disk, self.wall, **self.settings)
        self.store.open()
        self.group_commit = GroupCommit(
            self.clock, self.store, options, self.threads, ScriptedReplicas().acked
        )
        context = context_of(self.clock, settings_of(options), self.store, self.threads)
        self.scheduler = StoreScheduler(context, self.group_commit, lambda: None)
        self.batcher = AppendBatcher(
            self.store,
            self.group_commit,
            AckRule(settings_of(options), ScriptedReplicas().in_sync, lambda: 1),
            settings_of(options),
            self.clock.seconds,
        )
        self.batcher.watch_appended(self.scheduler.appended)
        self.scheduler.start()

    def work(self) -> None:
        """A turn of sends, or time, or threads that come to run."""
        luck = self.luck
        step = luck.random()
        if step < 0.4:
            if not self.batcher.is_full():
                self.turn()
        elif step < 0.75:
            seconds = luck.choice((0.001, 0.01, 0.2, 1.0, 4.0))
            self.clock.advance(seconds)
            self.wall.now_ms += round(seconds * 1000)
        else:
            if luck.random() < 0.05:
                self.disk.fail("datasync", errno.EIO, luck.randrange(3))
            self.threads.run()

    def turn(self) -> None:
        """Some sends that come together."""
        luck = self.luck
        sent = []
        for _ in range(luck.randrange(1, 6)):
            self.count += 1
            promise = Promise(b"%d " % self.count * luck.choice((1, 10, 800, 4000)))
            queue = self.store.queue("T", luck.randrange(3))
            one = draft(queue, promise.body, wait=luck.random() < 0.8)
            one.context = promise.answered
            self.batcher.drafts.append(one)
            sent.append((promise, one))
        self.batcher.flush()
        for promise, one in sent:
            promise.stored(one, self.wall.now_ms)
            if promise.is_stored:
                self.promises[promise.queue_id].append(promise)
                if one.wait:
                    self.waited.add(promise)

    def stop(self) -> None:
        """Stop as one does."""
        for done in (self.scheduler.stop(), self.group_commit.stop()):
            while not done.called:
                self.threads.run()
        self.store.close()

    def survivors(self, killed: bool) -> set[Promise]:
        """What has to be there after the machine, or only the process, has stopped."""
        every = {promise for many in self.promises.values() for promise in many}
        if killed:
            return every
        flushed = self.store.flushed_position
        safe = {promise for promise in every if promise.end <= flushed}
        if self.group_commit.synchronous:
            safe |= {promise for promise in self.waited & every if promise.is_heard}
        return safe

    def has_entry(self, promise: Promise) -> bool:
        """Whether the entry of a message is in the queue's files."""
        folder = f"{ROOT}/consumequeue/T/{promise.queue_id}"
        at = promise.queue_offset * SIZE
        size = QUEUE_ENTRIES * SIZE
        path = f"{folder}/{segment_name(at - at % size)}"
        if not self.disk.exists(path):
            return False
        content = self.disk.read(path)[at % size : at % size + SIZE]
        return len(content) == SIZE and ENTRY.unpack(content)[0] == promise.position


class FlushCrashTests(SynchronousTestCase):
    """What is promised is kept."""

    def check(self, machine: Machine, safe: set[Promise]) -> None:
        """The next start: all that is safe is there, and the rest stands where it was
        put."""
        checkpoint = Checkpoint(machine.disk, ROOT)
        checkpoint.load()
        every = [promise for many in machine.promises.values() for promise in many]
        for promise in every:
            if promise.ms < checkpoint.physic_ms:
                safe.add(promise)
            if promise.ms < checkpoint.logics_ms:
                self.assertTrue(machine.has_entry(promise), machine.settings)
        before = machine.settings
        machine.start()
        for number, promises in machine.promises.items():
            there = placed(machine.store, machine.store.queue("T", number))
            kept = []
            for promise in promises:
                if promise.queue_offset in there:
                    self.assertEqual(there.pop(promise.queue_offset), promise.body)
                    kept.append(promise)
                else:
                    self.assertNotIn(promise, safe, before)
            self.assertEqual(there, {})
            machine.promises[number] = kept

    def crash(self, seed: int) -> None:
        """One machine, with several crashes."""
        machine = Machine(seed)
        for _ in range(4):
            for _ in range(machine.luck.randrange(30)):
                machine.work()
            kind = machine.luck.randrange(4)
            machine.disk.heal()
            if kind == 3:
                machine.stop()
            safe = machine.survivors(killed=kind >= 2)
            machine.disk.crash(machine.luck if kind == 1 else None, keep_all=kind == 2)
            self.check(machine, safe)
            if kind == 3:
                self.assertEqual(machine.store.recovered.records, 0)

    def test_crashes(self) -> None:
        """With SYNC_FLUSH whoever was told of success was told the truth; with
        ASYNC_FLUSH what the last flush covers is there; a process that is killed loses
        nothing; the checkpoint is never ahead of log or queues."""
        for seed in range(30):
            self.crash(seed)
