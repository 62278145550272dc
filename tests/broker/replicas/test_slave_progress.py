"""How far a slave is behind its master."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.replicas.slave_progress import SlaveProgress
from rocketbroker.testing.master_link import ScriptedLink
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.fastjson import dumps
from tests.broker.callers import Caller
from tests.broker.rig import WALL_MS, Rig, send_ext

MASTER = "10.0.0.9:10911"


class ProgressTests(SynchronousTestCase):
    """A slave beside a master that a test plays."""

    def setUp(self) -> None:
        """A log with a message, and a master that is known."""
        self.rig = Rig({})
        self.addCleanup(self.rig.close)
        self.rig.topic("T")
        self.grow()
        self.end = self.rig.store.published_position
        self.caller = Caller()
        self.link = ScriptedLink()
        self.link.follow("10.0.0.9:10912")
        self.address: str | None = MASTER
        self.progress = SlaveProgress(
            self.caller,
            self.rig.store,
            self.link,
            lambda: self.address,
            self.rig.wall_ms,
        )

    def grow(self) -> None:
        """One more message comes."""
        self.rig.ask(RequestCode.SEND_MESSAGE_V2, send_ext(), b"body")

    def look(self, end: object) -> None:
        """The master's log ends there."""
        looked = self.progress.look()
        (call,) = self.caller.take()
        self.assertEqual((call.address, call.command.code), (MASTER, 28))
        call.answer(body=dumps({"table": {"commitLogMaxOffset": str(end)}}))
        self.successResultOf(looked)

    def test_before(self) -> None:
        """Before an answer nothing is known, and nothing is held against it."""
        self.assertEqual(
            (self.progress.behind(), self.progress.behind_ms()), (None,) * 2
        )
        self.assertIsNone(self.progress.not_ready())
        self.assertIn("has not heard yet", self.progress.sentence())

    def test_level(self) -> None:
        """A log that ends where the master's did lacks nothing."""
        self.look(self.end)
        self.assertEqual((self.progress.behind(), self.progress.behind_ms()), (0, 0))
        self.assertEqual(self.progress.caught_up_ms, WALL_MS)
        self.assertIsNone(self.progress.not_ready())
        self.rig.clock.advance(3)
        self.assertEqual(
            self.progress.sentence(),
            "This slave has all of the log of 10.0.0.9:10912, as it was 3 s ago "
            f"(to {self.end}).",
        )

    def test_never(self) -> None:
        """One that has not caught up since its start is not ready."""
        self.look(self.end + 50)
        self.assertEqual(
            (self.progress.behind(), self.progress.behind_ms()), (50, None)
        )
        self.assertIn("lacks 50 bytes", self.progress.not_ready() or "")
        self.grow()
        self.assertIsNone(self.progress.not_ready())
        self.assertEqual(self.progress.behind(), 0)

    def test_behind(self) -> None:
        """How long it is behind counts from the last end that it has reached."""
        self.look(self.end)
        self.rig.clock.advance(5)
        self.look(self.end + 1)
        self.assertEqual(self.progress.behind_ms(), 5000)
        self.rig.clock.advance(5)
        self.look(self.end + (1 << 20))
        self.assertEqual(self.progress.behind_ms(), 10_000)
        self.grow()
        self.rig.clock.advance(5)
        self.look(self.end + (1 << 20))
        self.assertEqual(self.progress.behind_ms(), 10_000)
        self.assertIsNone(self.progress.not_ready())

    def test_gone(self) -> None:
        """A master that is gone leaves what was known."""
        self.look(self.end + 50)
        looked = self.progress.look()
        self.caller.take()[0].fail()
        self.successResultOf(looked)
        self.assertEqual(self.progress.behind(), 50)
        self.address = None
        self.successResultOf(self.progress.look())
        self.assertEqual((self.caller.calls, self.progress.behind()), ([], 50))

    def test_nonsense(self) -> None:
        """An answer without an end, and a refusal, say nothing."""
        self.look("")
        looked = self.progress.look()
        self.caller.take()[0].answer(code=1)
        self.successResultOf(looked)
        self.assertIsNone(self.progress.behind())

    def test_apart(self) -> None:
        """A log that differs from the master's has not caught up, whatever its end."""
        self.link.problem = "The logs differ."
        self.look(self.end - 1)
        self.assertEqual((self.progress.behind(), self.progress.behind_ms()), (0, None))
        self.assertIsNotNone(self.progress.not_ready())
        self.link.problem = ""
        self.assertEqual(self.progress.behind_ms(), 0)
