# -*- test-case-name: tests.integration.test_commands -*-
"""A member of a consumer group, as verbs of the command line read with it.

It shares the queues with the other members, in whatever language, by
L{rocketbroker.threads}. It rides over servers that are restarted.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Final, NoReturn, final

from rocketbroker.blocking.routes import MessageQueue
from rocketbroker.cli.cluster.cluster import Cluster
from rocketbroker.cli.cluster.surroundings import connect
from rocketbroker.client.runtimes.machine import may_watch_termination
from rocketbroker.errors import RequestTimeout
from rocketbroker.threads import MessageStream, ReceivedMessage

#: How long one look waits for a message, in seconds.
POLL_SECONDS: Final = 0.2

#: How often offsets are committed: a member that joins goes on there.
COMMIT_SECONDS: Final = 0.5

#: How many messages are written before they are acknowledged.
MOST_WRITTEN: Final = 256

#: How long a member may be without a queue before it has nothing to read.
WITHOUT_QUEUES_SECONDS: Final = 3.0

#: How long nothing may come of a queue that has messages.
STUCK_SECONDS: Final = 60.0


@contextmanager
def member(
    cluster: Cluster, topic: str, group: str, start: str, tags: str
) -> Iterator[MessageStream]:
    """Be a member of a group, and leave it at the end, at a signal, too.

    @param start: where a group without offsets begins.
    """

    def end(number: int, frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    watches = may_watch_termination()
    if watches:
        signal.signal(signal.SIGTERM, end)
    try:
        with (
            connect(cluster.client.settings) as mq,
            mq.consumer(
                topic, group, start=start, tags=tags, commit_seconds=COMMIT_SECONDS
            ) as messages,
        ):
            yield messages
    finally:
        if watches:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


@final
class GroupReader:
    """Gives the messages of one member to a function, and acknowledges them.

    @ivar taken: how many messages have been given to it.
    """

    def __init__(
        self,
        cluster: Cluster,
        stream: MessageStream,
        take: Callable[[ReceivedMessage], None],
        flush: Callable[[], None],
    ) -> None:
        """
        @param take: writes a message.
        @param flush: what is written has arrived when it returns: what a reader who has
            gone did not get is not acknowledged.
        """
        self.taken = 0
        self._client = cluster.client
        self._clock = cluster.client.settings.machine.monotonic
        self._stream = stream
        self._take = take
        self._flush = flush
        self._written: list[ReceivedMessage] = []

    def run(
        self,
        ends: Mapping[MessageQueue, int] | None,
        wait: float | None,
        count: int | None,
    ) -> None:
        """Read until the end.

        @param ends: where to stop in each queue; None: nowhere.
        @param wait: how many seconds without a message are the end.
        @param count: how many messages at most.
        @raise RocketbrokerError: a broker is away at the end.
        """
        last = begun = self._clock()
        try:
            while count is None or self.taken < count:
                message = self._stream.next(0.0)
                if message is None:
                    self._settle()
                    if ends is not None and self._is_over(ends, begun, last):
                        return
                    if wait is not None and self._clock() - last >= wait:
                        self._check_brokers()
                        return
                    message = self._stream.next(POLL_SECONDS)
                if message is None:
                    continue
                last = self._clock()
                if ends is None or message.offset < ends.get(message.queue, 1 << 63):
                    self._take(message)
                    self._written.append(message)
                    self.taken += 1
                    if len(self._written) >= MOST_WRITTEN:
                        self._settle()
        finally:
            self._settle()

    def _settle(self) -> None:
        """Acknowledge what is written."""
        if self._written:
            self._flush()
            written, self._written = self._written, []
            for message in written:
                message.ack()

    def _is_over(
        self, ends: Mapping[MessageQueue, int], begun: float, last: float
    ) -> bool:
        """Whether all queues that are ours are at their ends.

        @raise RocketbrokerError: a broker is away, or gives nothing.
        """
        now = self._clock()
        mine = {
            queue: position
            for queue, position in self._stream.positions.items()
            if queue in ends
        }
        if not mine:
            return now - begun >= WITHOUT_QUEUES_SECONDS
        left = [queue for queue, position in mine.items() if position < ends[queue]]
        if left and now - last >= POLL_SECONDS * 5:
            self._check_brokers()
            if now - last >= STUCK_SECONDS:
                raise RequestTimeout(f"nothing has come of {left[0]}")
        return not left

    def _check_brokers(self) -> None:
        for queue in self._stream.queues:
            self._client.max_offset(queue)
