"""What pulls are told of offsets that an operator has set."""

from __future__ import annotations

from rocketbroker.testing.connections import RecordedConnection
from tests.broker.pull.pulls import AGAIN, MOVED, PULL, PullCase, bodies
from tests.broker.rig import answered, pull_ext


class ResetTests(PullCase):
    """Offsets that an operator has set."""

    def setUp(self) -> None:
        """Three messages, all consumed."""
        super().setUp()
        self.send("a", "b", "c")
        self.rig.scheduler.dispatch()
        self.rig.offsets.commit("G", "T", 0, 3)

    def reset(self, offset: int) -> None:
        """Let group G go on at an offset."""
        self.rig.pulling.reset("G", self.rig.store.queue("T", 0), offset)

    def moved(self, offset: str = "1") -> None:
        """Exactly one answer, which says where to go on."""
        (answer,) = self.rig.answers()
        self.assertEqual((answer.code, answer.remark), (MOVED, "OFFSET_RESET"))
        self.assertEqual((answer.ext or {})["nextBeginOffset"], offset)

    def test_nextPull(self) -> None:
        """The next pull is told where to go on; the one from there gets messages."""
        for _ in range(2):
            self.reset(1)
            self.rig.hot(PULL, pull_ext(3))
            self.moved()
            self.assertEqual(bodies(self.pull(1)), [b"b", b"c"])
            self.assertEqual(self.rig.offsets.resets, {})
        self.reset(1)
        answer = answered(self.rig.begin(PULL, pull_ext(3)))
        self.assertEqual((answer.code, answer.remark), (MOVED, "OFFSET_RESET"))

    def test_deaf(self) -> None:
        """A client that was told and goes on elsewhere is not told again."""
        self.reset(1)
        self.rig.hot(PULL, pull_ext(3))
        self.moved()
        self.assertEqual(bodies(self.pull(2)), [b"c"])
        self.assertFalse(self.rig.offsets.has_reset("G", "T", 0))

    def test_gone(self) -> None:
        """Who was told and has gone has not gone on: the next one is told too."""
        self.reset(1)
        self.rig.hot(PULL, pull_ext(3))
        self.moved()
        self.rig.connection.close()
        self.rig.connection = RecordedConnection()
        self.rig.hot(PULL, pull_ext(3))
        self.moved()

    def test_held(self) -> None:
        """Pulls of that group that wait are told at once; those of others wait on."""
        self.hold(3)
        self.hold(3, consumerGroup="H")
        self.reset(1)
        self.moved()
        self.assertEqual(self.rig.long_polling.held, 1)
        self.assertEqual(bodies(self.pull(1)), [b"b", b"c"])

    def test_heldByTheDead(self) -> None:
        """A held pull does not use a reset up: its client may be gone unnoticed."""
        self.hold(3)
        self.reset(1)
        self.moved()
        self.rig.connection = RecordedConnection()
        self.rig.hot(PULL, pull_ext(3))
        self.moved()

    def test_heldCongested(self) -> None:
        """One whose answers pile up is told when it asks again."""
        self.hold(3)
        self.rig.connection.congested = True
        self.reset(1)
        (answer,) = self.rig.answers()
        self.assertEqual(answer.code, AGAIN)
        self.rig.connection.congested = False
        self.rig.hot(PULL, pull_ext(3))
        self.moved()

    def test_heldThere(self) -> None:
        """One that waits where it is to go on is asked to say so, and waits again."""
        self.hold(3)
        self.reset(3)
        (answer,) = self.rig.answers()
        self.assertEqual(answer.code, AGAIN)
        self.assertTrue(self.rig.offsets.has_reset("G", "T", 0))
        self.hold(3)
        self.assertFalse(self.rig.offsets.has_reset("G", "T", 0))
        self.assertEqual(self.rig.long_polling.held, 1)

    def test_noCommit(self) -> None:
        """What a pull commits does not undo a reset that it is told of."""
        self.reset(1)
        self.rig.hot(PULL, pull_ext(3, sysFlag="5", commitOffset="3"))
        self.moved()
        self.assertEqual(self.rig.offsets.queues("G", "T"), {0: 1})

    def test_whileReading(self) -> None:
        """Nor does one that was being read from the disk when it came."""
        self.rig = self.make(threads=True, accessMessageInMemoryMaxRatio="0")
        self.send("a", "b", "c")
        self.rig.scheduler.dispatch()
        self.rig.hot(PULL, pull_ext(0, sysFlag="5", commitOffset="3"))
        self.assertEqual(self.rig.pulling.cold, 1)
        self.reset(1)
        self.rig.threads.run()
        self.assertEqual(len(self.rig.answers()), 1)
        self.assertEqual(self.rig.offsets.queues("G", "T"), {0: 1})
