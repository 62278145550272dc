"""Groups that wait, under random flushes, reports and time, against a simple model."""

from __future__ import annotations

import errno
import random

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.appends.group_commit import GroupCommit
from rocketbroker.config.store import StoreOptions
from rocketbroker.store.interfaces import Draft
from rocketbroker.testing.replicas import ScriptedReplicas
from rocketbroker.testing.threads import Threads
from rocketbroker.wire.codes import ResponseCode
from tests.broker.rig import Rig

OK = 0
LATE_DISK = ResponseCode.FLUSH_DISK_TIMEOUT
LATE_SLAVE = ResponseCode.FLUSH_SLAVE_TIMEOUT

DISK_SECONDS, SLAVE_SECONDS = 5.0, 3.0

STEPS = 400


class Wait:
    """What the model knows of a group: what each thing that it waits for has come to.

    @ivar disk: the code that the disk has led to; None before that.
    @ivar slaves: the same of the slaves.
    """

    def __init__(self, end: int, copies: int, on_disk: bool, now: float) -> None:
        self.end = end
        self.copies = copies
        self.begun = now
        self.disk: int | None = None if on_disk else OK
        self.slaves: int | None = None if copies > 1 else OK

    @property
    def code(self) -> int | None:
        """What it is answered with by now."""
        if self.disk is None or self.slaves is None:
            return None
        return self.slaves or self.disk


class RandomTests(SynchronousTestCase):
    """Every group is answered once, at its time, with its code."""

    def run_with(self, flush: str, seed: int) -> None:
        """Do random things, and compare after each."""
        self.random = random.Random(seed)
        self.rig = Rig({"flushDiskType": flush})
        self.addCleanup(self.rig.close)
        self.flush = flush
        self.threads, self.replicas = Threads(), ScriptedReplicas()
        self.group_commit = GroupCommit(
            self.rig.clock,
            self.rig.store,
            StoreOptions(flush_disk_type=flush),
            self.threads,
            self.replicas.acked,
        )
        self.replicas.watch(self.group_commit.copied)
        self.waits: list[Wait] = []
        self.answers: dict[int, int] = {}
        steps = self.admit, self.admit, self.report, self.run_flush, self.pass_by
        for _ in range(STEPS):
            self.random.choice(steps)()
            self.check()
        self.rig.clock.pump([DISK_SECONDS] * 3)
        self.assertEqual(len(self.answers), len(self.waits))
        self.assertEqual(self.group_commit.waiting, 0)
        self.assertEqual(self.group_commit.waiting_bytes, 0)
        self.assertEqual(self.group_commit.waiting_for_copies, 0)

    def check(self) -> None:
        """Those are answered, and with that, whom the model has answered."""
        wanted = {wait.end: wait.code for wait in self.waits if wait.code is not None}
        self.assertEqual(self.answers, wanted)

    def settle(self, drafts: list[Draft], code: int) -> None:
        """One is answered."""
        (draft,) = drafts
        self.assertNotIn(draft.end, self.answers)
        self.answers[draft.end] = code

    def admit(self) -> None:
        """One more waits, for up to three copies."""
        on_disk = self.flush == "SYNC_FLUSH"
        copies = self.random.choice((1, 2, 2, 3) if on_disk else (2, 2, 3))
        draft = self.rig.append(bytes(self.random.randrange(1, 100)))
        now = self.rig.clock.seconds()
        self.waits.append(Wait(draft.end, copies, on_disk, now))
        self.group_commit.admit([draft], self.settle, copies)

    def report(self) -> None:
        """Up to three slaves say up to where they have the log."""
        end = self.rig.store.published_position
        count = self.random.randrange(4)
        self.replicas.report(*(self.random.randrange(end + 1) for _ in range(count)))
        for wait in self.waits:
            copies = 1 + sum(each.acked >= wait.end for each in self.replicas.replicas)
            if wait.slaves is None and copies >= wait.copies:
                wait.slaves = OK

    def run_flush(self) -> None:
        """The flush in flight ends; sometimes the disk has refused."""
        if not self.threads.waiting:
            return
        if self.random.random() < 0.1:
            self.rig.disk.fail("datasync", errno.EIO)
        end, failures = self.rig.store.published_position, self.group_commit.failures
        self.threads.waiting.pop(0)()
        failing = self.group_commit.failures > failures
        for wait in self.waits:
            if wait.disk is None and wait.end <= end:
                wait.disk = LATE_DISK if failing else OK

    def pass_by(self) -> None:
        """Some time passes."""
        self.rig.clock.advance(self.random.choice((0.1, 0.5, 1.0)))
        now = self.rig.clock.seconds()
        for wait in self.waits:
            if wait.slaves is None and wait.begun + SLAVE_SECONDS <= now:
                wait.slaves = LATE_SLAVE
            if wait.disk is None and wait.begun + DISK_SECONDS <= now:
                wait.disk = LATE_DISK

    def test_synchronous(self) -> None:
        """With SYNC_FLUSH, where some need no copies."""
        for seed in range(5):
            self.run_with("SYNC_FLUSH", seed)

    def test_asynchronous(self) -> None:
        """With ASYNC_FLUSH, where all wait for slaves only."""
        for seed in range(5):
            self.run_with("ASYNC_FLUSH", seed)
