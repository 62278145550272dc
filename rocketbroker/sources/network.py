# -*- test-case-name: tests.sources.test_network -*-
"""Messages from brokers, found through name servers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeVar, final

from rocketbroker.blocking.answers import may_pass
from rocketbroker.blocking.client import Client
from rocketbroker.blocking.puller import Puller
from rocketbroker.blocking.routes import MessageQueue
from rocketbroker.blocking.settings import Settings
from rocketbroker.errors import (
    BrokerError,
    PullOffsetMoved,
    RocketbrokerError,
    TopicNotExist,
)
from rocketbroker.records.names import is_system_topic, reply_topic
from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.ranges import Queue, Range
from rocketbroker.sources.retry import Patience
from rocketbroker.sources.source import Filter, Piece
from rocketbroker.wire import fastjson
from rocketbroker.wire.bodies.statistics import TopicStatsTable
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.headers.admin import GetTopicStatsInfoRequestHeader

Answer = TypeVar("Answer")


class UnknownTopic(TopicNotExist):
    """There are brokers, and none has the topic: it will not come by waiting."""

    retriable = False


@final
class NetworkOrigin:
    """Provides L{rocketbroker.sources.source.StreamOrigin} over a blocking client.

    Brokers that do not answer are asked again for as long as C{retryTimeout} says.
    Name servers, too, but only when one has answered before: an address that is wrong
    should not take minutes to be said so.

    @ivar asked: see L{StreamOrigin}.
    """

    def __init__(self, options: ReadOptions, client: Client | None = None) -> None:
        """
        @param client: the client to use, if not a new one.
        @raise ConfigurationError: the name servers are no addresses.
        """
        if client is None:
            settings = Settings(
                options.name_server,
                seconds=options.pull_timeout_ms / 1000,
                attempts=1,
                tls=options.tls_terms(),
                credentials=options.credentials(),
            )
            client = Client(settings)
        self._client = client
        self._options = options
        self._has_name_server = False
        self._without_statistics: set[tuple[str, str]] = set()
        self.asked = 0

    def topics(self) -> list[str]:
        """See L{Origin.topics}; some are named after clusters and brokers."""
        return self._ask_name_server(self._topics)

    def queues(self, topic: str) -> list[Queue]:
        """See L{Origin.queues}."""
        return self._ask_name_server(lambda: self._queues(topic))

    def hidden_queues(self, topic: str) -> list[Queue]:
        """See L{Origin.hidden_queues}; by permission, or beyond its read queues."""
        readable = {*self.queues(topic)}
        route = self._client.routes.view(topic).route
        found = {
            Queue(topic, each.broker_name, number)
            for each in route.queue_datas
            for number in range(max(each.read_queue_nums, each.write_queue_nums))
        }
        return sorted(found - readable)

    def clusters(self, topic: str) -> list[str]:
        """See L{Origin.clusters}."""
        self.queues(topic)
        route = self._client.routes.view(topic).route
        return sorted({each.cluster for each in route.broker_datas if each.cluster})

    def bounds(self, queue: Queue) -> tuple[int, int]:
        """See L{Origin.bounds}; a queue that has never had a message is [0, 0)."""
        asked = MessageQueue(*queue)
        first = max(0, self._ask(lambda: self._client.min_offset(asked)))
        return first, max(first, self._ask(lambda: self._client.max_offset(asked)))

    def all_bounds(self, queues: Iterable[Queue]) -> dict[Queue, tuple[int, int]]:
        """See L{StreamOrigin.all_bounds}.

        One request for all queues of a topic on a broker. Where that is refused (it
        may need a permission of its own), and for queues that the answer leaves out,
        two for each queue.
        """
        wanted = [*queues]
        found: dict[Queue, tuple[int, int]] = {}
        for pair, queue in {queue[:2]: queue for queue in wanted}.items():
            if pair in self._without_statistics:
                continue
            try:
                found.update(self._ask(partial(self._statistics, queue)))
            except BrokerError as problem:
                if may_pass(problem):
                    raise
                self._without_statistics.add(pair)
        for queue in wanted:
            if queue not in found:
                self.asked += 2
                found[queue] = self.bounds(queue)
        return {queue: found[queue] for queue in wanted}

    def commit_offset(self, queue: Queue, group: str, offset: int) -> None:
        """See L{StreamOrigin.commit_offset}."""
        asked = MessageQueue(*queue)
        self._ask(lambda: self._client.commit_offset(asked, group, offset))

    def offset_at(self, queue: Queue, ms: int) -> int:
        """See L{Origin.offset_at}."""
        asked = MessageQueue(*queue)
        found = self._ask(lambda: self._client.offset_by_time(asked, ms))
        first, end = self.bounds(queue)
        return min(max(found, first), end)

    def group_offset(self, queue: Queue, group: str) -> int | None:
        """See L{Origin.group_offset}."""
        asked = MessageQueue(*queue)
        return self._ask(lambda: self._client.committed_offset(asked, group))

    def pieces(self, wanted: Range, chosen: Filter) -> Iterator[Piece]:
        """See L{Origin.pieces}: several pulls are in flight."""
        options = self._options
        queue = MessageQueue(*wanted.queue)
        puller = Puller(
            self._client,
            expression=chosen.expression,
            expression_type=chosen.kind,
            max_messages=options.pull_batch_size,
            max_bytes=options.pull_bytes,
            in_flight=options.pull_concurrency,
        )
        patience = self._patience()
        position = wanted.start
        while position < wanted.until:
            try:
                for chunk in puller.read(queue, position, wanted.until):
                    yield Piece(chunk.data, chunk.start, chunk.until, "")
                    position = chunk.until
                    patience.worked()
            except PullOffsetMoved as problem:
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
                    patience.failed(problem)
            except RocketbrokerError as problem:
                patience.failed(problem)
                self._client.routes.forget(queue.topic)

    def close(self) -> None:
        """See L{Origin.close}."""
        self._client.close()

    def _patience(self) -> Patience:
        seconds = self._options.retry_timeout_ms / 1000
        return Patience(self._client.settings.machine, seconds)

    def _ask(self, question: Callable[[], Answer]) -> Answer:
        return self._patience().ask(question)

    def _ask_name_server(self, question: Callable[[], Answer]) -> Answer:
        if not self._has_name_server:
            self._client.masters()
            self._has_name_server = True
        return self._ask(question)

    def _statistics(self, queue: Queue) -> dict[Queue, tuple[int, int]]:
        """The bounds of all queues of a topic on a broker."""
        self.asked += 1
        header = GetTopicStatsInfoRequestHeader(topic=queue.topic)
        asked = MessageQueue(*queue)
        answer = self._client.ask(asked, RequestCode.GET_TOPIC_STATS_INFO, header)
        table = TopicStatsTable.from_json(fastjson.loads(answer.body))
        return {
            Queue(queue.topic, queue.broker, each.queue_id): (
                max(0, bounds.min_offset),
                max(0, bounds.min_offset, bounds.max_offset),
            )
            for each, bounds in table.offset_table.items()
        }

    def _topics(self) -> list[str]:
        info = self._client.routes.clusters()
        clusters = info.cluster_addr_table
        named = {*info.broker_addr_table, *clusters, *map(reply_topic, clusters)}
        return [
            topic
            for topic in self._client.topics()
            if topic not in named and not is_system_topic(topic)
        ]

    def _queues(self, topic: str) -> list[Queue]:
        try:
            return sorted(Queue(*queue) for queue in self._client.queues(topic))
        except TopicNotExist:
            # The name server's own words go on with a link.
            if self._client.masters():
                raise UnknownTopic(f"there is no topic {topic}") from None
            raise TopicNotExist("the name servers know of no broker") from None
