"""Requests that wait for answers."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import ConnectionLost, RequestTimeout
from rocketbroker.remoting.response_table import (
    GRAIN_SECONDS,
    ResponseTable,
    TooManyRequests,
)
from rocketbroker.wire.command import Command


class ResponseTableTests(SynchronousTestCase):
    """On a clock."""

    def setUp(self) -> None:
        """At most four may wait for a peer."""
        self.clock = Clock()
        self.responses = ResponseTable(self.clock, 4)

    def open(self, timeout: float) -> Deferred[Command]:
        return self.responses.open("a peer", timeout, "a request").answer

    def test_oneTimer(self) -> None:
        """However many wait, there is one timer, at the earliest deadline."""
        waiting = [self.open(timeout) for timeout in (5, 3, 9)]
        (call,) = self.clock.getDelayedCalls()
        self.assertEqual(call.getTime(), 3)
        self.clock.advance(3)
        self.failureResultOf(waiting[1], RequestTimeout)
        (call,) = self.clock.getDelayedCalls()
        self.assertEqual(call.getTime(), 5)
        self.clock.advance(6)
        self.failureResultOf(waiting[0], RequestTimeout)
        self.failureResultOf(waiting[2], RequestTimeout)
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.assertEqual(self.responses.timeouts, 3)

    def test_grain(self) -> None:
        """After a look the next one is a grain later at the earliest."""
        first, second = self.open(1), self.open(1.001)
        self.clock.advance(1)
        self.failureResultOf(first, RequestTimeout)
        self.clock.advance(0.002)
        self.assertNoResult(second)
        self.clock.advance(GRAIN_SECONDS)
        self.failureResultOf(second, RequestTimeout)

    def test_zero(self) -> None:
        """No time at all is still a request, that times out at once."""
        waiting = self.open(0)
        self.assertNoResult(waiting)
        self.clock.advance(0)
        self.failureResultOf(waiting, RequestTimeout)

    def test_most(self) -> None:
        """One more than allowed is refused; one that ended makes room."""
        waiting = [self.open(timeout) for timeout in (1, 9, 9, 9)]
        self.assertRaises(TooManyRequests, self.open, 1)
        self.clock.advance(1)
        self.failureResultOf(waiting[0], RequestTimeout)
        self.open(1).addErrback(lambda failure: Command(0))

    def test_perPeer(self) -> None:
        """What waits for one peer leaves the others their room."""
        for _ in range(4):
            self.open(1).addErrback(lambda failure: None)
        self.responses.open("another", 9, "a request")
        error = self.assertRaises(TooManyRequests, self.open, 1)
        self.assertEqual(str(error), "a request: 4 others wait for its responses")

    def test_opaques(self) -> None:
        """Numbers are positive, wrap around, and skip those that are in use."""
        first = self.responses.open("a peer", 9, "a request")
        self.assertEqual(first.opaque, 1)
        self.responses.last_opaque = 0x7FFFFFFE
        self.assertEqual(self.responses.next_opaque(), 0x7FFFFFFF)
        self.assertEqual(self.responses.next_opaque(), 2)

    def test_stop(self) -> None:
        """Stopping fails all and leaves no timer."""
        waiting = [self.open(1), self.open(2)]
        self.responses.stop()
        for each in waiting:
            self.failureResultOf(each, ConnectionLost)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_failedOnce(self) -> None:
        """What has ended cannot end again."""
        waiting = self.responses.open("a peer", 1, "a request")
        self.assertTrue(self.responses.is_open(waiting))
        self.responses.fail(waiting, ConnectionLost("gone"))
        self.responses.fail(waiting, ConnectionLost("gone again"))
        self.assertFalse(self.responses.is_open(waiting))
        self.failureResultOf(waiting.answer, ConnectionLost)
