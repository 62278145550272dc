"""Tests of L{rocketbroker.broker.appends.overload}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.appends.group_commit import MEASURED_BYTES
from rocketbroker.broker.appends.overload import FORGET_SECONDS, MAX_WAITING_BYTES
from rocketbroker.errors import SystemBusy
from rocketbroker.wire.codes import RequestCode, ResponseCode
from tests.broker.rig import Rig, send_ext

SEND = RequestCode.SEND_MESSAGE_V2


class OverloadTests(SynchronousTestCase):
    """Sends to a broker whose disk is slow."""

    def make(self, threads: bool = False, **settings: str) -> Rig:
        """A data path in which the hot way has approved queue 0 of T."""
        rig = Rig(settings, threads)
        self.addCleanup(rig.close)
        rig.topic("T", 4)
        rig.begin(SEND, send_ext(), b"first")
        self.end_turn(rig)
        return rig

    def end_turn(self, rig: Rig) -> None:
        """Append what came, and let the disk have it."""
        rig.batcher.flush()
        rig.threads.run()
        rig.answers()

    def is_taken(self, rig: Rig) -> bool:
        """Whether a send is, on either way."""
        if rig.hot(SEND, send_ext(), b"body"):
            return True
        with self.assertRaises(SystemBusy):
            rig.begin(SEND, send_ext(), b"body")
        return False

    def refusal(self, rig: Rig) -> str:
        """The remark with which a send is refused."""
        self.assertFalse(rig.hot(SEND, send_ext(), b"body"))
        with self.assertRaises(SystemBusy) as caught:
            rig.begin(SEND, send_ext(), b"body")
        self.assertEqual(caught.exception.code, ResponseCode.SYSTEM_BUSY)
        return str(caught.exception)

    def slow_append(self, rig: Rig, seconds: float) -> None:
        """A turn with one send, whose append takes so long."""
        self.assertTrue(rig.hot(SEND, send_ext(), b"body"))
        rig.stall("pwrite", seconds)
        self.end_turn(rig)

    def test_appendStalls(self) -> None:
        """After an append of more than a second a turn takes one send; when that was
        appended fast, the next takes all."""
        rig = self.make()
        self.slow_append(rig, 1.5)
        self.assertTrue(self.is_taken(rig))
        self.assertEqual(
            self.refusal(rig),
            "[PCBUSY_CLEAN_QUEUE]broker busy, start flow control for a while, "
            "period in queue: 1500ms, size of queue: 0, slow stage: append",
        )
        self.assertEqual(rig.batcher.refused["append_stalled"], 1)
        self.slow_append_goes_on(rig)
        self.end_turn(rig)
        for _ in range(3):
            self.assertTrue(self.is_taken(rig))

    def slow_append_goes_on(self, rig: Rig) -> None:
        """If that one is slow, too, it goes on like this."""
        rig.batcher.drafts.clear()
        self.slow_append(rig, 1.2)
        self.assertTrue(self.is_taken(rig))
        self.assertIn("period in queue: 1200ms", self.refusal(rig))

    def test_appendIsSlow(self) -> None:
        """One of a second is no stall."""
        rig = self.make()
        self.slow_append(rig, 1.0)
        for _ in range(3):
            self.assertTrue(self.is_taken(rig))

    def test_stallIsForgotten(self) -> None:
        """What comes a second after a stall has not waited for it."""
        rig = self.make()
        self.slow_append(rig, 1.5)
        rig.clock.advance(FORGET_SECONDS)
        for _ in range(3):
            self.assertTrue(self.is_taken(rig))

    def test_stallLimit(self) -> None:
        """osPageCacheBusyTimeOutMills says what a stall is, also while running."""
        rig = self.make(osPageCacheBusyTimeOutMills="200")
        self.slow_append(rig, 0.3)
        self.assertTrue(self.is_taken(rig))
        self.assertFalse(self.is_taken(rig))
        rig.change(osPageCacheBusyTimeOutMills=400)
        rig.begin(SEND, send_ext(), b"approved anew")
        self.end_turn(rig)
        self.slow_append(rig, 0.3)
        for _ in range(3):
            self.assertTrue(self.is_taken(rig))

    def test_flushStalls(self) -> None:
        """While a send has waited for the disk for more than a second no other is
        taken; what waits is answered as always."""
        rig = self.make(threads=True, flushDiskType="SYNC_FLUSH")
        self.assertTrue(rig.hot(SEND, send_ext(), b"body"))
        rig.batcher.flush()
        rig.clock.advance(1.0)
        self.assertTrue(self.is_taken(rig))
        rig.batcher.flush()
        rig.clock.advance(0.5)
        # The first turn after it does not know yet.
        self.assertTrue(self.is_taken(rig))
        rig.batcher.flush()
        self.assertEqual(
            self.refusal(rig),
            "[PC_SYNCHRONIZED]broker busy, start flow control for a while, "
            "slow stage: flush, 3 sends wait, the first for 1500ms",
        )
        self.assertEqual(rig.batcher.refused["flush_stalled"], 1)
        rig.threads.run()
        self.assertTrue(self.is_taken(rig))
        rig.threads.run()
        self.assertEqual([answer.code for answer in rig.answers()], [0, 0, 0])

    def test_flushWillTakeLong(self) -> None:
        """So it is when the disk will take longer than that for what waits, as fast as
        it was the last time."""
        rig = self.make(
            threads=True,
            flushDiskType="SYNC_FLUSH",
            mappedFileSizeCommitLog=str(16 << 20),
        )
        body = bytes(MEASURED_BYTES)
        for count in (1, 3):
            for _ in range(count):
                self.assertTrue(rig.hot(SEND, send_ext(), body))
            rig.batcher.flush()
            if count == 1:
                rig.clock.advance(0.5)
                rig.threads.run()
        self.assertIn("3 sends wait, the first for 0ms", self.refusal(rig))
        self.assertEqual(rig.batcher.refused["flush_stalled"], 1)
        rig.threads.run()
        for _ in range(3):
            self.assertTrue(rig.hot(SEND, send_ext(), body))
        rig.batcher.flush()
        self.assertTrue(self.is_taken(rig))

    def test_smallFlush(self) -> None:
        """A flush of little tells nothing of how fast the disk is."""
        size = str(16 << 20)
        rig = self.make(
            threads=True, flushDiskType="SYNC_FLUSH", mappedFileSizeCommitLog=size
        )
        self.assertTrue(rig.hot(SEND, send_ext(), b"body"))
        rig.batcher.flush()
        rig.clock.advance(0.5)
        rig.threads.run()
        for _ in range(3):
            self.assertTrue(rig.hot(SEND, send_ext(), bytes(MEASURED_BYTES)))
        rig.batcher.flush()
        self.assertTrue(self.is_taken(rig))

    def test_tooMuch(self) -> None:
        """Sends that wait may be too big together."""
        rig = self.make(threads=True, flushDiskType="SYNC_FLUSH")
        rig.group_commit.waiting_bytes = MAX_WAITING_BYTES - 1
        self.assertTrue(self.is_taken(rig))
        rig.group_commit.waiting_bytes = MAX_WAITING_BYTES
        rig.batcher.overload.room = 0
        self.assertTrue(
            self.refusal(rig).startswith(
                "[PC_SYNCHRONIZED]broker busy, start flow control for a while, "
                "slow stage: flush"
            )
        )
        self.assertEqual(rig.batcher.refused["overloaded"], 1)

    def test_unflushed(self) -> None:
        """With ASYNC_FLUSH what is not on the disk is bounded; at the bound a flush is
        begun, whatever its interval."""
        rig = self.make(threads=True)
        rig.threads.run()
        size = rig.store.published_position - rig.store.flushed_position
        text = f"rocketbrokerMaxUnflushedBytes={size + 1}\n"
        rig.begin(25, {}, text.encode())
        rig.threads.run()
        rig.begin(SEND, send_ext(), b"the last")
        rig.batcher.flush()
        size = rig.store.published_position - rig.store.flushed_position
        self.assertEqual(
            self.refusal(rig),
            "[PC_SYNCHRONIZED]broker busy, start flow control for a while, "
            f"slow stage: flush, with {size} bytes to go",
        )
        self.assertEqual(rig.batcher.refused["unflushed"], 1)
        rig.threads.run()
        self.assertEqual(rig.store.flushed_position, rig.store.published_position)
        self.assertTrue(self.is_taken(rig))
