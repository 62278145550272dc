# -*- test-case-name: tests.blocking.test_consumer -*-
"""A consumer that is alone in its group: it reads all queues, or those it is given.

It does not register with the broker, so it takes no part in a rebalance: of several
consumers in one group each has to be given queues of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias, final

from rocketbroker.blocking.answers import PASSING, may_pass
from rocketbroker.blocking.client import Client
from rocketbroker.blocking.puller import (
    FOUND,
    OFFSET_MOVED,
    PendingPull,
    Pulled,
    Puller,
    messages,
)
from rocketbroker.blocking.routes import MessageQueue
from rocketbroker.errors import (
    BrokerError,
    ConfigurationError,
    NoPermission,
    RemoteProtocolError,
    RocketbrokerError,
)
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.record import StoredMessage

#: How long to wait before looking again when nothing came.
IDLE_SECONDS: Final = 0.05

# Where to begin in a queue for which the group has no offset.
EARLIEST: Final = "earliest"
LATEST: Final = "latest"

#: Messages of one queue, in order.
FromQueue: TypeAlias = tuple[MessageQueue, list[StoredMessage]]


@final
class Consumer:
    """Reads the queues of a topic in turn: those that there are when it starts.

    It belongs to one thread.

    @ivar positions: the offset where each queue goes on.
    @ivar received: how many messages have been given.
    """

    def __init__(
        self,
        client: Client,
        group: str,
        topic: str,
        expression: str = "*",
        begin: str = EARLIEST,
        queues: Sequence[MessageQueue] | None = None,
        max_messages: int = 1024,
    ) -> None:
        """
        @param expression: tags to read, as in C{a || b}.
        @param begin: L{EARLIEST} or L{LATEST}.
        @param queues: which; all of the topic's unless said otherwise, also those that
            it gets later.
        @param max_messages: how many to ask a queue for at once.
        @raise ConfigurationError: C{begin} is neither of the two.
        """
        if begin not in (EARLIEST, LATEST):
            raise ConfigurationError(
                f"a consumer begins at {EARLIEST!r} or {LATEST!r}, not at {begin!r}"
            )
        self._client = client
        self._group = group
        self._topic = topic
        self._begin = begin
        self._wanted: frozenset[str] | None = None
        if expression not in ("", "*"):
            self._wanted = frozenset(tag.strip() for tag in expression.split("||"))
        self._puller = Puller(client, group, expression, max_messages)
        self._queues = queues
        self._look_at = client.settings.machine.monotonic()
        self._look_at += client.settings.route_seconds
        self._failures = 0
        self._owed: RocketbrokerError | None = None
        self._committed: dict[MessageQueue, int] = {}
        self._unpulled: set[MessageQueue] = set()
        self.positions: dict[MessageQueue, int] = {}
        self.received = 0

    def start(self) -> None:
        """Find out where to go on; L{poll} does it by itself.

        @raise TopicNotExist: there is no such topic.
        @raise NoPermission: none of its queues may be read.
        """
        queues = self._queues
        if queues is None:
            queues = self._client.queues(self._topic)
            if not queues:
                raise NoPermission(
                    f"{self._topic} may not be read: it has no read permission"
                )
        positions = {}
        for queue in queues:
            offset = self._client.committed_offset(queue, self._group)
            if offset is None:
                if self._begin == LATEST:
                    # The first pull makes the group; before it none can be committed.
                    self._unpulled.add(queue)
                    positions[queue] = self._client.max_offset(queue)
                    continue
                offset = self._client.min_offset(queue)
            self._committed[queue] = positions[queue] = offset
        # Only when all is known: half of the queues would look like all of them.
        self.positions = positions

    def _look_for_queues(self) -> None:
        """Begin to read queues that the topic has got meanwhile, on whichever broker:
        all of their messages are new."""
        client = self._client
        settings = client.settings
        self._look_at = settings.machine.monotonic() + settings.route_seconds
        try:
            for queue in client.queues(self._topic):
                if queue not in self.positions:
                    offset = client.committed_offset(queue, self._group)
                    if offset is None:
                        offset = client.min_offset(queue)
                    self._committed[queue] = self.positions[queue] = offset
        except (*PASSING, BrokerError):
            pass  # those that are read say so, or it is looked for again

    def poll(self, seconds: float = 1.0) -> list[StoredMessage]:
        """The next messages of all queues; of each queue in order.

        @param seconds: how long to wait for some; then there are none.
        @raise BrokerError: a broker refused the request.
        @raise ConnectionLost: one could not be reached, again and again.
        @raise RequestTimeout: one did not answer, again and again.
        """
        return [message for _, some in self.poll_queues(seconds) for message in some]

    def poll_queues(self, seconds: float = 1.0) -> list[FromQueue]:
        """The next messages of all queues, with the queue of each; as L{poll}."""
        machine = self._client.settings.machine
        deadline = machine.monotonic() + seconds
        if not self.positions:
            self.start()
        elif self._queues is None and machine.monotonic() >= self._look_at:
            self._look_for_queues()
        if self._owed is not None:
            owed, self._owed = self._owed, None
            raise owed
        while True:
            found = self._look()
            left = deadline - machine.monotonic()
            if found or left <= 0:
                self.received += sum(len(some) for _, some in found)
                return found
            machine.sleep(min(IDLE_SECONDS, left))

    def _look(self) -> list[FromQueue]:
        """Ask all queues at once, and take what there is."""
        puller = self._puller
        found: list[FromQueue] = []
        asked: list[tuple[MessageQueue, PendingPull]] = []
        failure: RocketbrokerError | None = None
        for queue, offset in self.positions.items():
            try:
                asked.append((queue, puller.submit(queue, offset)))
            except (*PASSING, BrokerError) as problem:
                failure = problem
        for queue, pending in asked:
            try:
                some = self._take(queue, puller.collect(pending))
            except (*PASSING, BrokerError) as problem:
                failure = problem
            else:
                if some:
                    found.append((queue, some))
        if failure is None:
            self._failures = 0
        else:
            self._failed(failure, bool(found))
        return found

    def _failed(self, problem: RocketbrokerError, found: bool) -> None:
        """Go on, or raise: at once, or after what other queues gave has been given."""
        settings = self._client.settings
        self._failures += 1
        self._client.routes.forget(self._topic)
        if self._failures >= settings.attempts or not may_pass(problem):
            if not found:
                raise problem
            self._owed = problem
        elif not found:
            settings.machine.sleep(settings.pause)

    def _take(self, queue: MessageQueue, pulled: Pulled) -> list[StoredMessage]:
        """Go on in a queue.

        Where the offset does not exist any more, go to the one that the broker names.
        """
        start = self.positions[queue]
        self._unpulled.discard(queue)
        if pulled.status != FOUND and pulled.status != OFFSET_MOVED:
            self.positions[queue] = max(start, pulled.next_offset)
            return []
        if pulled.status == OFFSET_MOVED:
            self.positions[queue] = pulled.next_offset
            return []
        try:
            found = list(messages(pulled.data))
        except Malformed as problem:
            raise RemoteProtocolError(
                f"{queue} gives no message at {start}: {problem}"
            ) from None
        self.positions[queue] = pulled.next_offset
        if self._wanted is not None:
            found = [message for message in found if message.tags in self._wanted]
        return found

    def commit(self, offsets: Mapping[MessageQueue, int] | None = None) -> None:
        """Commit where the group goes on, of each queue where that has changed.

        @param offsets: where; unless given, behind all that has been received.
        """
        if offsets is None:
            offsets = self.positions
        for queue, offset in offsets.items():
            if self._committed.get(queue) != offset and queue not in self._unpulled:
                self._client.commit_offset(queue, self._group, offset)
                self._committed[queue] = offset
