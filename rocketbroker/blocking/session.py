# -*- test-case-name: tests.blocking.test_session -*-
"""Sending and receiving for scripts: C{connect}, C{send}, C{receive}, C{ack}.

A group receives each message at least once. The offset that is committed for a queue is
that of its first message without an acknowledgement, so nothing behind it is passed
over:

  - While a C{receive} runs, a message is given once, acknowledged or not.
  - The next C{receive} of the same session gives again what was not acknowledged.
  - After a restart the group goes on at the first message without an acknowledgement
    in each queue, and gets what is behind it again, acknowledged or not.

There are no retry topics or dead letters here: a message that is never acknowledged
comes again for ever.

A session does not register with the broker, so it takes no part in a rebalance. Two
sessions of one group both receive every message, unless each is given queues of its
own. Several processes that share the work of a group need one of RocketMQ's clients.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, final

from rocketbroker.blocking.answers import may_pass
from rocketbroker.blocking.client import Client
from rocketbroker.blocking.consumer import EARLIEST, Consumer, FromQueue
from rocketbroker.blocking.messages import Message, SendResult
from rocketbroker.blocking.producer import Producer
from rocketbroker.blocking.routes import MessageQueue
from rocketbroker.blocking.settings import Settings
from rocketbroker.errors import ConfigurationError, RocketbrokerError
from rocketbroker.records import names
from rocketbroker.records.record import StoredMessage

#: How long to wait before a server that is away is asked again.
AWAY_SECONDS: Final = 1.0

#: Acknowledgements are committed after at most so long, and when a session waits for
#: messages or is closed.
COMMIT_SECONDS: Final = 1.0


def connect(name_servers: str, **settings: Any) -> Session:
    """A session with the brokers that name servers know.

    Nothing is opened before the first send or receive.

    @param name_servers: C{host:port}, separated by semicolons.
    @param settings: see L{Settings}.
    @raise ConfigurationError: that is no address.
    """
    return Session(Client(Settings(name_servers, **settings)))


@final
class Session:
    """Sends and receives messages.

    Threads may share it to send. What one C{receive} gives belongs to one thread.

    @ivar client: for questions about topics, queues and offsets.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self._producer = Producer(client)
        self._groups: dict[tuple[str, str], _GroupProgress] = {}

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def close(self) -> None:
        """Commit what has been acknowledged, and close the connections."""
        try:
            for group in self._groups.values():
                group.commit()
        finally:
            self.client.close()

    def send(
        self,
        topic: str,
        body: bytes | str,
        tag: str | None = None,
        keys: str | Iterable[str] = (),
        properties: Mapping[str, str] | None = None,
        delay_level: int = 0,
        sharding_key: str | None = None,
        queue: MessageQueue | None = None,
    ) -> SendResult:
        """Send a message and wait until it is stored.

        @param body: a string is sent as UTF-8.
        @param keys: see L{Message}; so are the others.
        @param queue: where to; unless given, each queue of the topic in turn.
        @raise MessageIllegal: it cannot be sent, or the broker refuses it.
        @raise BrokerError: the broker refuses the request.
        @raise ConnectionLost: no broker could be reached, or the connection broke: the
            message may be stored.
        @raise RequestTimeout: no broker answered: the same.
        """
        message = Message(
            topic,
            body,
            tags=tag,
            keys=keys,
            properties=properties,
            sharding_key=sharding_key,
            delay_level=delay_level,
        )
        return self._producer.send(message, queue)

    def receive(
        self,
        topic: str,
        group: str,
        tags: str = "*",
        wait: float = 5.0,
        begin: str = EARLIEST,
        queues: Sequence[MessageQueue] | None = None,
    ) -> Receiver:
        """The messages of a topic from where the group goes on, in order by queue.

        Of a topic and group one C{receive} at a time runs: a new one ends the last.

        @param tags: which messages, as in C{"a || b"}.
        @param wait: it ends when no message has come for so many seconds. A broker that
            is restarted meanwhile is waited for as long.
        @param begin: C{"earliest"} or C{"latest"}: where a new group begins.
        @param queues: which; unless given, all that the topic has now.
        @raise ConfigurationError: something cannot be as it is given.
        @raise TopicNotExist: there is no such topic.
        """
        problem = names.group_problem(group) if group else "A group needs a name."
        if problem is not None:
            raise ConfigurationError(problem)
        consumer = Consumer(self.client, group, topic, tags, begin, queues)
        progress = self._groups.get((topic, group))
        if progress is None:
            progress = self._groups[topic, group] = _GroupProgress(self.client)
        progress.go_on(consumer)
        return Receiver(progress, consumer, wait)


@final
class Received:
    """A message that was received.

    @ivar message: as it was stored, but decompressed.
    @ivar queue: where it was.
    """

    __slots__ = ("_progress", "message", "queue")

    def __init__(
        self, message: StoredMessage, queue: MessageQueue, progress: _GroupProgress
    ) -> None:
        self.message = message
        self.queue = queue
        self._progress = progress

    def __repr__(self) -> str:
        return f"<message {self.offset} of {self.queue}: {len(self.body)} bytes>"

    @property
    def body(self) -> bytes:
        """The body."""
        return self.message.body

    @property
    def text(self) -> str:
        """The body as UTF-8.

        @raise UnicodeDecodeError: it is none.
        """
        return self.message.body.decode("utf-8")

    @property
    def tag(self) -> str | None:
        """The tag."""
        return self.message.tags

    @property
    def keys(self) -> list[str]:
        """The keys."""
        return self.message.keys

    @property
    def properties(self) -> dict[str, str]:
        """All properties, the system's and the user's."""
        return self.message.properties

    @property
    def message_id(self) -> str | None:
        """The unique key, which C{send} returned as C{message_id}."""
        return self.message.unique_key

    @property
    def offset(self) -> int:
        """The place in its queue."""
        return self.message.queue_offset

    def ack(self) -> None:
        """It is done: the group does not need it again.

        @raise BrokerError: the offset could not be committed; so for L{ConnectionLost}
            and L{RequestTimeout}. The next commit takes it along.
        """
        self._progress.acknowledge(self.queue, self.message.queue_offset)


@final
class Receiver:
    """The messages of one C{receive}, as an iterator."""

    def __init__(
        self, progress: _GroupProgress, consumer: Consumer, wait: float
    ) -> None:
        self._progress = progress
        self._consumer = consumer
        self._wait = wait
        self._ready: deque[Received] = deque()

    def __iter__(self) -> Receiver:
        return self

    def __next__(self) -> Received:
        progress = self._progress
        if progress.consumer is not self._consumer:
            raise StopIteration
        while not self._ready:
            found = self._look()
            if not found:
                raise StopIteration
            for queue, messages in found:
                wanted = progress.enter(queue, messages)
                self._ready += [Received(one, queue, progress) for one in wanted]
        return self._ready.popleft()

    def _look(self) -> list[FromQueue]:
        """Wait for messages, and for brokers and name servers that are restarted.

        @raise RocketbrokerError: one is still away when the time is over, or it is
            something else.
        """
        machine = self._progress.machine
        deadline = machine.monotonic() + self._wait
        while True:
            left = deadline - machine.monotonic()
            try:
                self._progress.commit()
                return self._consumer.poll_queues(max(left, 0.0))
            except RocketbrokerError as problem:
                if left <= 0 or not may_pass(problem):
                    raise
            machine.sleep(min(AWAY_SECONDS, left))


@final
class _GroupProgress:
    """What a group has acknowledged of a topic, in one session.

    What is acknowledged behind a message that is not stays in memory until that one is.

    @ivar machine: where we run.
    @ivar consumer: the one that receives now.
    """

    def __init__(self, client: Client) -> None:
        self.machine = client.settings.machine
        self._unacknowledged: dict[MessageQueue, set[int]] = {}
        self._acknowledged: dict[MessageQueue, set[int]] = {}
        self._commit_at = 0.0
        self.consumer: Consumer | None = None

    def go_on(self, consumer: Consumer) -> None:
        """Commit, and begin again at what is not acknowledged."""
        self.commit()
        consumer.start()
        self._unacknowledged.clear()
        self.consumer = consumer

    def enter(
        self, queue: MessageQueue, messages: list[StoredMessage]
    ) -> list[StoredMessage]:
        """Wait for acknowledgements of messages; those that have none yet."""
        done = self._acknowledged.get(queue)
        if done:
            messages = [one for one in messages if one.queue_offset not in done]
        offsets = (one.queue_offset for one in messages)
        self._unacknowledged.setdefault(queue, set()).update(offsets)
        return messages

    def acknowledge(self, queue: MessageQueue, offset: int) -> None:
        """A message is done."""
        self._unacknowledged.setdefault(queue, set()).discard(offset)
        self._acknowledged.setdefault(queue, set()).add(offset)
        if self.machine.monotonic() >= self._commit_at:
            self.commit()

    def commit(self) -> None:
        """Commit the first offset of each queue that is not acknowledged."""
        self._commit_at = self.machine.monotonic() + COMMIT_SECONDS
        if self.consumer is None:
            return
        offsets = {
            queue: min(self._unacknowledged.get(queue) or {position})
            for queue, position in self.consumer.positions.items()
        }
        self.consumer.commit(offsets)
        for queue, offset in offsets.items():
            done = self._acknowledged.get(queue)
            if done:
                self._acknowledged[queue] = {one for one in done if one >= offset}
