"""Counts of calls."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.proxy import messages_pb2 as pb
from rocketbroker.proxy.counts import BOUNDS_SECONDS, NO_ANSWER, Counts
from rocketbroker.proxy.messages_pb2 import Code, Status
from tests.proxy.proxied import gathered


def result(coroutine: Any) -> Any:
    """What a coroutine returns that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits")


class CountsTests(SynchronousTestCase):
    """L{Counts}, by a clock that the calls move."""

    def setUp(self) -> None:
        """Nothing yet."""
        self.now = 0.0
        self.counts = Counts(lambda: self.now)

    async def heartbeat(self, seconds: float, _: object) -> pb.HeartbeatResponse:
        """Takes so long."""
        self.now += seconds
        if seconds > 100:
            raise ValueError(seconds)
        return pb.HeartbeatResponse(status=Status(code=Code.OK))

    async def receive(
        self, count: int, _: object
    ) -> AsyncIterator[pb.ReceiveMessageResponse]:
        """So many messages."""
        code = Code.OK if count else Code.MESSAGE_NOT_FOUND
        yield pb.ReceiveMessageResponse(status=Status(code=code))
        for _number in range(count):
            self.now += 1.0
            yield pb.ReceiveMessageResponse(message=pb.Message())

    def test_outcomesAndTimesOfAnswers(self) -> None:
        """Each call is in one class, its upper bound included; one that fails is
        counted, and fails still."""
        answer = self.counts.unary("Heartbeat", self.heartbeat)
        for seconds in (0.0, 0.003, 50.0):
            self.assertEqual(result(answer(seconds, None)).status.code, Code.OK)
        with self.assertRaises(ValueError):
            result(answer(101.0, None))
        wanted = {("Heartbeat", "OK"): 3, ("Heartbeat", NO_ANSWER): 1}
        self.assertEqual(self.counts.calls, wanted)
        times = self.counts.times["Heartbeat"]
        self.assertEqual(times.buckets, [1, 1, *[0] * (len(BOUNDS_SECONDS) - 2), 2])
        self.assertAlmostEqual(times.total, 151.003)

    def test_outcomeOfAStreamIsItsFirstStatus(self) -> None:
        """Its time ends with its last message."""
        answer = self.counts.stream("ReceiveMessage", self.receive)
        self.assertEqual(len(result(gathered(answer(2, None)))), 3)
        result(gathered(answer(0, None)))
        wanted = {
            ("ReceiveMessage", "OK"): 1,
            ("ReceiveMessage", "MESSAGE_NOT_FOUND"): 1,
        }
        self.assertEqual(self.counts.calls, wanted)
        self.assertEqual(self.counts.times["ReceiveMessage"].total, 2.0)

    def test_streamThatStaysOpenHasNoTime(self) -> None:
        """How long it was open says nothing."""
        answer = self.counts.stream("Telemetry", self.receive, stays_open=True)
        result(gathered(answer(1, None)))
        self.assertEqual(self.counts.calls, {("Telemetry", "OK"): 1})
        self.assertEqual(self.counts.times, {})
