# -*- test-case-name: tests.cli.cluster.verbs.test_send -*-
"""A run of sends, as C{rocketbroker message send} makes it, by L{rocketbroker.threads}.

The first request finds out whether the servers are there at all: it fails at once if
they are not. After it, servers that are restarted are waited for.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Final, final

from rocketbroker.blocking.answers import PASSING
from rocketbroker.cli.cluster.cluster import Cluster
from rocketbroker.cli.cluster.surroundings import Sender
from rocketbroker.errors import RocketbrokerError
from rocketbroker.records.batches import LEAST_SIZE
from rocketbroker.records.outgoing import Message
from rocketbroker.routing.send_requests import SendResult
from rocketbroker.routing.topic_view import MessageQueue

#: How long servers that are restarted are waited for, in seconds.
PATIENCE: Final = 120.0

#: After so long the first request is not tried again: time for another broker.
FIRST_PATIENCE: Final = 0.4

#: How many bytes of messages one request has with --batch, at most.
BATCH_BYTES: Final = 256 * 1024

#: The unique key of a message among its properties, with what stands between.
_KEY_BYTES: Final = 64

_log: Final = logging.getLogger("rocketbroker.client")


@final
class SendRun:
    """Sends messages of one topic, and counts them.

    @ivar cluster: where to.
    @ivar topic: theirs.
    @ivar sent: how many are stored.
    """

    def __init__(
        self,
        cluster: Cluster,
        mq: Sender,
        topic: str,
        queue: MessageQueue | None,
        batch: bool,
    ) -> None:
        """
        @param queue: where to; None: to all in turn.
        @param batch: many in one request.
        """
        self.cluster = cluster
        self.topic = topic
        self.sent = 0
        self._mq = mq
        self._queue = queue
        self._batch = batch

    def send(self, messages: Iterable[Message]) -> Iterator[SendResult]:
        """Send messages in their order; the result of each request.

        @raise RocketbrokerError: one could not be sent; those before it are counted.
        """
        way = self._in_batches if self._batch else self._one_by_one
        try:
            for result in way(iter(messages)):
                self.sent += len(result.message_ids)
                yield result
        except PASSING:
            self._learn_names()
            raise

    def _learn_names(self) -> None:
        """Ask for the names of the brokers, by which the error is told."""
        with suppress(RocketbrokerError):
            self.cluster.route(self.topic)

    def _in_batches(self, source: Iterator[Message]) -> Iterator[SendResult]:
        for chunk in _chunks(source):
            if self.sent:
                yield from self._mq.send_batch(chunk, queue=self._queue)
                continue
            with _quiet():
                first = self._mq.send_batch(
                    chunk, queue=self._queue, patience=FIRST_PATIENCE
                )
            yield from first

    def _one_by_one(self, source: Iterator[Message]) -> Iterator[SendResult]:
        if not self.sent:
            with _quiet():
                first = [
                    *self._mq.send_all(
                        islice(source, 1), queue=self._queue, patience=FIRST_PATIENCE
                    )
                ]
            yield from first
        yield from self._mq.send_all(source, queue=self._queue)


def _chunks(messages: Iterator[Message]) -> Iterator[list[Message]]:
    """Messages for one request each: so it is known how many are stored."""
    chunk: list[Message] = []
    size = 0
    try:
        for message in messages:
            # A character has at most four bytes.
            texts = sum(len(k) + len(v) + 2 for k, v in message.properties.items())
            part = LEAST_SIZE + len(message.body) + 4 * texts + _KEY_BYTES
            if chunk and size + part > BATCH_BYTES:
                yield chunk
                chunk, size = [], 0
            chunk.append(message)
            size += part
    except RocketbrokerError:
        if chunk:
            yield chunk
        raise
    if chunk:
        yield chunk


@contextmanager
def _quiet() -> Iterator[None]:
    """Let the client not say that it tries again: the error does, if it is one."""
    level = _log.level
    _log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        _log.setLevel(level)
