"""Requests with long bodies, and the memory that they hold."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.long_requests import MAX_HELD, LongRequests
from rocketbroker.errors import SystemBusy
from rocketbroker.remoting.cooperative_tasks import Slices
from rocketbroker.wire.command import Command


class LongRequestTests(SynchronousTestCase):
    """Works that end when a test says so."""

    def setUp(self) -> None:
        """None is worked on."""
        self.requests = LongRequests(Slices(Clock()))
        self.ends: list[Deferred[None]] = []

    def begin(self, size: int) -> Deferred[int]:
        """Work on a request whose body has that size."""

        async def work() -> int:
            end: Deferred[None] = Deferred()
            self.ends.append(end)
            await end
            return size

        return self.requests.begin(Command(18, body=bytes(size)), work())

    def test_asMuchAsFits(self) -> None:
        """Together they have so many bytes; one more is refused in words."""
        begun = [self.begin(MAX_HELD // 2) for _ in range(2)]
        with self.assertRaises(SystemBusy) as caught:
            self.begin(1)
        self.assertIn(f"at most {MAX_HELD}", caught.exception.remark)
        self.assertEqual((self.requests.refused, len(self.ends)), (1, 2))
        self.ends[0].callback(None)
        self.assertEqual(self.successResultOf(begun[0]), MAX_HELD // 2)
        self.begin(1)
        self.assertEqual(self.requests.held, MAX_HELD // 2 + 1)

    def test_oneThatIsLarger(self) -> None:
        """One alone is worked on, however large it is."""
        begun = self.begin(MAX_HELD + 1)
        with self.assertRaises(SystemBusy):
            self.begin(1)
        self.ends[0].errback(ValueError("wrong"))
        self.failureResultOf(begun, ValueError)
        self.assertEqual(self.requests.held, 0)
