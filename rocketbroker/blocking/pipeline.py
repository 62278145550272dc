# -*- test-case-name: tests.blocking.test_pipeline -*-
"""Sending a stream of messages: batches that fill, several requests under way.

Messages of one topic fill a batch, and those for one queue a batch of their own. A
batch goes out when the next message does not fit, or after it has waited for a while;
results are told as they come.

A send that fails makes all stop: first every answer that is under way is waited for, so
that none is taken for lost only because nobody looked, then what failed is sent again,
to other brokers if it may go there, until the patience is over. What was under way when
a connection broke may have been stored all the same, so messages can double, under the
same unique key; none is lost without an error.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, final

import attrs

from rocketbroker.blocking.answers import PASSING
from rocketbroker.blocking.messages import Message, SendResult
from rocketbroker.blocking.producer import Producer, Sent, may_help
from rocketbroker.blocking.routes import MessageQueue
from rocketbroker.errors import (
    BrokerError,
    RocketbrokerError,
    ServiceNotAvailable,
    SystemBusy,
    TopicNotExist,
)
from rocketbroker.routing.send_requests import OpenBatch, SendRequest

#: Refusals that mean that a broker is about to start, to stop or too busy. Others are
#: tried again as often as the settings say, whatever the patience.
FOR_A_WHILE: Final = (SystemBusy, ServiceNotAvailable, TopicNotExist)

#: The longest pause between two tries, in seconds.
LONGEST_PAUSE: Final = 1.0


@attrs.frozen
class PipelineLimits:
    """How a stream of messages is sent.

    @ivar in_flight: how many requests may be under way.
    @ivar batch_bytes: how many bytes of messages one batch has at most.
    @ivar linger: how many seconds messages wait for others; it is looked at when the
        next message comes.
    @ivar patience: how many seconds sends are tried again.
    """

    in_flight: int = 8
    batch_bytes: int = 1 << 20
    linger: float = 0.005
    patience: float = 120.0


@attrs.define
class _Outgoing:
    """One request until it is stored.

    @ivar queue: where it has to go, None for any queue.
    @ivar tried: where it went last.
    @ivar tries: how often it went.
    """

    request: SendRequest
    queue: MessageQueue | None
    tried: MessageQueue | None = None
    tries: int = 0
    sent: Sent | None = None
    problem: RocketbrokerError | None = None


@final
class Pipeline:
    """Sends what it is given; it belongs to one thread.

    @ivar retries: how many requests have been sent again.
    """

    def __init__(
        self,
        producer: Producer,
        limits: PipelineLimits,
        stored: Callable[[SendResult], None],
    ) -> None:
        """
        @param producer: makes the requests.
        @param stored: told each result.
        """
        self._producer = producer
        self._limits = limits
        self._stored = stored
        self._settings = producer.client.settings
        self._machine = producer.client.settings.machine
        self._open: dict[tuple[str, MessageQueue | None], OpenBatch] = {}
        self._oldest = 0.0
        self._under_way: deque[_Outgoing] = deque()
        self.retries = 0

    def add(self, message: Message, queue: MessageQueue | None = None) -> None:
        """Send a message, now or with others.

        @param queue: where it has to go, None for any queue of its topic.
        @raise MessageIllegal: it cannot be sent.
        @raise RocketbrokerError: this or an earlier one could not be stored; what is
            under way may be.
        """
        key = (message.topic, queue)
        batch = self._open.get(key)
        if batch is None:
            if not self._open:
                self._oldest = self._machine.monotonic()
            batch = self._open[key] = OpenBatch(self._producer.requests)
        request = batch.take(message, self._limits.batch_bytes)
        if request is not None:
            self._send(_Outgoing(request, queue))
        if self._machine.monotonic() - self._oldest >= self._limits.linger:
            self._close_batches()

    def finish(self) -> None:
        """Send all that is left, and wait until everything is stored.

        @raise RocketbrokerError: something could not be stored.
        """
        self._close_batches()
        while self._under_way:
            self._collect()

    def abandon(self) -> None:
        """Never mind what is under way."""
        for outgoing in self._under_way:
            if outgoing.sent is not None:
                outgoing.sent.connection.forget(outgoing.sent.ticket)
        self._under_way.clear()
        self._open.clear()

    def queues(self, topic: str) -> Sequence[MessageQueue]:
        """The queues of a topic, waited for as sends are.

        @raise TopicNotExist: it has none.
        @raise ConnectionLost: no name server could be reached.
        @raise RequestTimeout: none answered.
        """
        deadline = self._machine.monotonic() + self._limits.patience
        while True:
            try:
                return self._producer.client.routes.to_write(topic)
            except (*PASSING, TopicNotExist):
                if self._machine.monotonic() >= deadline:
                    raise
            self._machine.sleep(LONGEST_PAUSE)

    def _close_batches(self) -> None:
        opened, self._open = self._open, {}
        for (_, queue), batch in opened.items():
            request = batch.close()
            if request is not None:
                self._send(_Outgoing(request, queue))

    def _send(self, outgoing: _Outgoing) -> None:
        while len(self._under_way) >= self._limits.in_flight:
            self._collect()
        self._start(outgoing)
        self._under_way.append(outgoing)

    def _start(self, outgoing: _Outgoing) -> None:
        """One try; its failure is kept for L{_finish}."""
        avoid = outgoing.tried.broker if outgoing.tried is not None else None
        outgoing.tries += 1
        outgoing.sent = outgoing.problem = None
        try:
            queue = outgoing.queue or self._producer.choose(
                outgoing.request.topic, avoid
            )
            outgoing.tried = queue
            outgoing.sent = self._producer.start(outgoing.request, queue)
        except (*PASSING, BrokerError) as problem:
            outgoing.problem = problem

    def _finish(self, outgoing: _Outgoing) -> bool:
        """Wait for the answer to one; whether it is stored."""
        if outgoing.sent is not None:
            try:
                result = self._producer.result(outgoing.sent)
            except (*PASSING, BrokerError) as problem:
                outgoing.problem = problem
            else:
                self._stored(result)
                return True
        return False

    def _collect(self) -> None:
        """Wait for the oldest; if it failed, for all, and send again what failed."""
        if self._finish(self._under_way[0]):
            self._under_way.popleft()
            return
        failed = [self._under_way.popleft()]
        while self._under_way:
            outgoing = self._under_way[0]
            if not self._finish(outgoing):
                failed.append(outgoing)
            self._under_way.popleft()
        self._again(failed)

    def _again(self, failed: list[_Outgoing]) -> None:
        """Send what failed until it is stored, or the limits are reached."""
        deadline = self._machine.monotonic() + self._limits.patience
        pause = self._settings.pause
        while failed:
            over = self._machine.monotonic() >= deadline
            for outgoing in failed:
                self._give_up(outgoing, over)
                self._producer.client.routes.forget(outgoing.request.topic)
            self._machine.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)
            self.retries += len(failed)
            for outgoing in failed:
                self._start(outgoing)
            failed = [each for each in failed if not self._finish(each)]

    def _give_up(self, outgoing: _Outgoing, over: bool) -> None:
        """Raise the problem of a request if it is not to be sent again."""
        problem = outgoing.problem
        assert problem is not None
        lasts = isinstance(problem, BrokerError) and not isinstance(
            problem, FOR_A_WHILE
        )
        most = self._settings.attempts if lasts else None
        many = most is not None and outgoing.tries >= most
        if over or many or not may_help(problem):
            raise SendFailed(outgoing.request, outgoing.tried, outgoing.tries, problem)


class SendFailed(RocketbrokerError):
    """Messages that could not be stored; the text names broker, code and remark.

    @ivar problem: the last failure.
    """

    def __init__(
        self,
        request: SendRequest,
        queue: MessageQueue | None,
        tries: int,
        problem: RocketbrokerError,
    ) -> None:
        count = len(request.message_ids)
        what = "a message" if count == 1 else f"{count} messages"
        where = f"broker {queue.broker}" if queue is not None else "any broker"
        why = str(problem)
        if isinstance(problem, BrokerError):
            why = f"code {problem.code}, {problem.remark or 'without a remark'}"
        often = "1 try" if tries == 1 else f"{tries} tries"
        super().__init__(
            f"{what} for {request.topic} could not be stored by {where} in {often}: "
            f"{why}"
        )
        self.problem = problem
