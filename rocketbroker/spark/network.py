# -*- test-case-name: tests.spark.test_network -*-
"""Messages from brokers, found through name servers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.puller import Puller
from rocketbroker.blocking.routes import MessageQueue
from rocketbroker.blocking.settings import Settings
from rocketbroker.errors import PullOffsetMoved
from rocketbroker.spark.options import ReadOptions
from rocketbroker.spark.origins import Piece
from rocketbroker.spark.ranges import Queue, Range


@final
class NetworkOrigin:
    """Provides L{rocketbroker.spark.origins.Origin} over a blocking client."""

    def __init__(self, options: ReadOptions, client: Client | None = None) -> None:
        """
        @param client: the client to use, if not a new one.
        @raise ConfigurationError: the name servers are no addresses.
        """
        if client is None:
            seconds = options.pull_timeout_ms / 1000
            client = Client(Settings(options.name_server, seconds=seconds))
        self._client = client
        self._options = options

    def queues(self, topic: str) -> list[Queue]:
        """See L{Origin.queues}."""
        return sorted(Queue(*queue) for queue in self._client.queues(topic))

    def bounds(self, queue: Queue) -> tuple[int, int]:
        """See L{Origin.bounds}; a queue that has never had a message is [0, 0)."""
        asked = MessageQueue(*queue)
        first = max(0, self._client.min_offset(asked))
        return first, max(first, self._client.max_offset(asked))

    def offset_at(self, queue: Queue, ms: int) -> int:
        """See L{Origin.offset_at}."""
        found = self._client.offset_by_time(MessageQueue(*queue), ms)
        first, end = self.bounds(queue)
        return min(max(found, first), end)

    def pieces(self, wanted: Range, tags: str) -> Iterator[Piece]:
        """See L{Origin.pieces}: several pulls are in flight."""
        options = self._options
        queue = MessageQueue(*wanted.queue)
        puller = Puller(
            self._client,
            expression=tags,
            max_messages=options.pull_batch_size,
            max_bytes=options.pull_bytes,
            in_flight=options.pull_concurrency,
        )
        position = wanted.start
        while position < wanted.until:
            try:
                for chunk in puller.read(queue, position, wanted.until):
                    yield Piece(chunk.data, chunk.start, chunk.until, "")
                    position = chunk.until
            except PullOffsetMoved:
                first, end = self.bounds(wanted.queue)
                if position < first:
                    until = min(first, wanted.until)
                    yield Piece(b"", position, until, f"{queue} begins at {first}")
                    position = until
                elif end < wanted.until:
                    until = wanted.until
                    yield Piece(b"", position, until, f"{queue} ends at {end}")
                    position = until
                else:
                    raise

    def close(self) -> None:
        """See L{Origin.close}."""
        self._client.close()
