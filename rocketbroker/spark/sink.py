# -*- test-case-name: tests.spark.test_sink -*-
"""Writing to RocketMQ from Spark, in batches and in streams: at least once.

How it is called::

    frame.write.format("rocketmq").mode("append") \\
        .option("nameServer", "127.0.0.1:9876").option("topic", "orders").save()

Each task sends the rows of its partition and ends only when the result of each send is
there: what its commit message counts is stored, and what could not be stored fails the
task. A task that is tried again, or a batch of a stream that comes again after a crash,
sends its rows again. With C{idempotent} each message has a property that is the same
then (L{STAMP}), by which consumers can drop doubles.

What Spark calls where, and on which releases: docs/facts/spark.md 3.
"""

from __future__ import annotations

import datetime
import logging
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

import attrs
import pyspark.sql.datasource as api

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.messages import Message, SendResult
from rocketbroker.blocking.pipeline import Pipeline
from rocketbroker.blocking.producer import Producer
from rocketbroker.blocking.routes import MessageQueue
from rocketbroker.errors import (
    ConfigurationError,
    MessageIllegal,
    TopicNotExist,
)
from rocketbroker.records.hashing import java_hash
from rocketbroker.records.properties import RESERVED
from rocketbroker.spark.write_options import WriteOptions, check_columns, write_options

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

#: The property that says which row a message is: query, batch, partition and number of
#: the row in it, with slashes between them. A batch write has no query and no batch: it
#: has an id of its own, and C{-}.
STAMP: Final = "sparkRow"

#: How many rows are turned into columns at a time, where Spark gives rows.
ROWS: Final = 1000

#: Whether Spark gives a stream's rows as Arrow record batches: from PySpark 4.1 on.
STREAMS_ARROW: Final = hasattr(api, "DataSourceStreamArrowWriter")

EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

_log = logging.getLogger(__name__)

#: The values of some rows, by column.
Chunk = Mapping[str, list[Any]]


class QueueCount(NamedTuple):
    """What a task stored in one queue.

    @ivar rows: how many messages.
    @ivar first_offset: the queue offset of the first.
    @ivar last_offset: the queue offset of the last; others may lie between.
    @ivar first_id: the message id of the first.
    @ivar last_id: the message id of the last.
    """

    topic: str
    broker: str
    queue_id: int
    rows: int
    first_offset: int
    last_offset: int
    first_id: str
    last_id: str


@attrs.frozen
class TaskCommit(api.WriterCommitMessage):
    """What one task stored.

    @ivar retries: how many requests were sent more than once.
    """

    partition: int
    rows: int
    retries: int
    queues: tuple[QueueCount, ...]


@final
class Tally:
    """Counts results."""

    def __init__(self) -> None:
        self.rows = 0
        self._queues: dict[MessageQueue, QueueCount] = {}

    def add(self, result: SendResult) -> None:
        """Count one result."""
        count = len(result.message_ids)
        self.rows += count
        start, end = result.queue_offset, result.queue_offset + count - 1
        first, last = result.message_ids[0], result.message_ids[-1]
        old = self._queues.get(result.queue)
        if old is not None:
            count += old.rows
            if old.first_offset < start:
                start, first = old.first_offset, old.first_id
            if old.last_offset > end:
                end, last = old.last_offset, old.last_id
        self._queues[result.queue] = QueueCount(
            *result.queue, count, start, end, first, last
        )

    def stored(self, partition: int, retries: int) -> TaskCommit:
        """The commit message."""
        counts = tuple(self._queues[queue] for queue in sorted(self._queues))
        return TaskCommit(partition, self.rows, retries, counts)


@final
class Messages:
    """Makes messages of rows."""

    def __init__(
        self,
        topic: str,
        stamp: str | None,
        queues: Callable[[str], Sequence[MessageQueue]],
    ) -> None:
        """
        @param topic: for all, or empty if rows say it.
        @param stamp: what each message is stamped with, before the row's number.
        @param queues: the queues of a topic.
        """
        self._topic = topic
        self._stamp = stamp
        self._queues = queues
        self._row = 0

    def of(self, chunk: Chunk) -> Iterator[tuple[Message, MessageQueue | None]]:
        """The messages of some rows, and where each has to go, if anywhere.

        @raise MessageIllegal: a row is no message; the text names the row.
        """
        names = list(chunk)
        for values in zip(*chunk.values(), strict=True):
            row = dict(zip(names, values, strict=True))
            try:
                message = self._message(row)
                yield message, self._queue(row, message.topic)
            except MessageIllegal as problem:
                raise MessageIllegal(
                    f"row {self._row} of a partition is no message: {problem}"
                ) from None
            self._row += 1

    def _message(self, row: Mapping[str, Any]) -> Message:
        body = row["body"]
        if body is None:
            raise MessageIllegal("its body is null")
        topic = self._topic or row["topic"]
        if topic is None:
            raise MessageIllegal("its topic is null")
        own: dict[str, str] = {}
        given = row.get("properties")
        if given:
            pairs = dict(given).items()
            own = {
                name: value
                for name, value in pairs
                if value is not None and name not in RESERVED
            }
        if self._stamp is not None:
            own[STAMP] = f"{self._stamp}{self._row}"
        return Message(
            topic,
            body,
            row.get("tags"),
            row.get("keys") or (),
            own,
            sharding_key=row.get("shardingKey"),
            delay_level=row.get("delayLevel") or 0,
            deliver_at_ms=milliseconds(row.get("deliverAt")),
        )

    def _queue(self, row: Mapping[str, Any], topic: str) -> MessageQueue | None:
        queue_id, broker = row.get("queueId"), row.get("brokerName")
        if (queue_id is None) != (broker is None):
            raise MessageIllegal("only one of queueId and brokerName is null")
        if broker is not None and queue_id is not None:
            return MessageQueue(topic, broker, queue_id)
        key = row.get("shardingKey")
        if not key:
            return None
        queues = self._queues(topic)
        return queues[abs(java_hash(key)) % len(queues)]


def milliseconds(time: datetime.datetime | int | None) -> int:
    """A time of delivery in ms since 1970; 0 for none.

    Arrow's times have a zone, those of rows are local.
    """
    if time is None:
        return 0
    if isinstance(time, int):
        return time
    return (time.astimezone(datetime.UTC) - EPOCH) // datetime.timedelta(milliseconds=1)


def arrow_chunks(batches: Iterable[Any]) -> Iterator[Chunk]:
    """Chunks of Arrow record batches."""
    for batch in batches:
        for start in range(0, batch.num_rows, ROWS):
            yield batch.slice(start, ROWS).to_pydict()


def row_chunks(rows: Iterable[Any], names: tuple[str, ...]) -> Iterator[Chunk]:
    """Chunks of rows."""
    rows = iter(rows)
    while some := list(islice(rows, ROWS)):
        columns = zip(*some, strict=True)
        yield {name: [*column] for name, column in zip(names, columns, strict=True)}


def send_chunks(
    chunks: Iterable[Chunk],
    options: WriteOptions,
    client: Client,
    partition: int,
    stamp: str | None,
) -> TaskCommit:
    """Send rows, and wait until all of them are stored.

    @param stamp: see L{Messages}.
    @raise MessageIllegal: a row is no message.
    @raise SendFailed: messages could not be stored.
    """
    tally = Tally()
    pipeline = Pipeline(Producer(client), options.limits, tally.add)
    messages = Messages(options.topic, stamp, pipeline.queues)
    try:
        for chunk in chunks:
            for message, queue in messages.of(chunk):
                pipeline.add(message, queue)
        pipeline.finish()
    finally:
        pipeline.abandon()
    return tally.stored(partition, pipeline.retries)


class Sink:
    """What batch writers and stream writers have in common; it is pickled.

    @ivar names: of the columns.
    @ivar run: tells the writes of a batch apart from others.
    """

    def __init__(self, options: WriteOptions, names: tuple[str, ...]) -> None:
        self.options = options
        self.names = names
        self.run = uuid.uuid4().hex

    def send(self, chunks: Iterable[Chunk]) -> TaskCommit:
        """Carry out one task."""
        from pyspark import TaskContext

        task = TaskContext.get()
        partition = task.partitionId() if task is not None else 0
        stamp = None
        if self.options.idempotent:
            query = batch = None
            if task is not None:
                query = task.getLocalProperty("sql.streaming.queryId")
                batch = task.getLocalProperty("streaming.sql.batchId")
            stamp = f"{query or self.run}/{batch or '-'}/{partition}/"
        with self.options.client() as client:
            return send_chunks(chunks, self.options, client, partition, stamp)

    def tell(self, messages: Iterable[Any], what: str) -> None:
        """Log what a job stored."""
        told = [each for each in messages if each is not None]
        _log.info(
            "%s: %d rows, %d requests sent again, queues %s",
            what,
            sum(each.rows for each in told),
            sum(each.retries for each in told),
            [tuple(queue) for each in told for queue in each.queues],
        )


class BatchWriter(Sink, api.DataSourceArrowWriter):
    """Writes a frame."""

    def write(self, iterator: Iterator[Any]) -> TaskCommit:
        """See C{DataSourceArrowWriter.write}."""
        return self.send(arrow_chunks(iterator))

    def commit(self, messages: list[Any]) -> None:
        """See C{DataSourceWriter.commit}: all is stored already."""
        self.tell(messages, "written")

    def abort(self, messages: list[Any]) -> None:
        """See C{DataSourceWriter.abort}: what is stored stays."""
        self.tell(messages, "written in part")


class _StreamWriter(Sink):
    def commit(self, messages: list[Any], batchId: int) -> None:
        """See C{DataSourceStreamWriter.commit}: all is stored already."""
        self.tell(messages, f"batch {batchId}")

    def abort(self, messages: list[Any], batchId: int) -> None:
        """See C{DataSourceStreamWriter.abort}: what is stored stays."""
        self.tell(messages, f"batch {batchId} in part")


if STREAMS_ARROW:

    class ArrowStreamWriter(_StreamWriter, api.DataSourceStreamArrowWriter):
        """Writes a stream."""

        def write(self, iterator: Iterator[Any]) -> TaskCommit:
            """See C{DataSourceStreamArrowWriter.write}."""
            return self.send(arrow_chunks(iterator))


class RowStreamWriter(_StreamWriter, api.DataSourceStreamWriter):
    """Writes a stream where Spark gives rows: PySpark 4.0."""

    def write(self, iterator: Iterator[Any]) -> TaskCommit:
        """See C{DataSourceStreamWriter.write}."""
        return self.send(row_chunks(iterator, self.names))


def make_sink(
    given: Mapping[str, str], schema: StructType, overwrite: bool, stream: bool
) -> Any:
    """The writer for a frame or a stream, on this release of PySpark.

    @raise ConfigurationError: options or columns make no sense, or what is there is
        to be overwritten.
    @raise TopicNotExist: the topic that the option names.
    """
    if overwrite:
        raise ConfigurationError(
            "messages cannot be overwritten: write with outputMode append or update"
            if stream
            else 'messages cannot be overwritten: write with .mode("append")'
        )
    options = write_options(given)
    columns = [(field.name, field.dataType.simpleString()) for field in schema]
    check_columns(columns, options)
    if options.topic:
        check_topic(options)
    names = tuple(name for name, _ in columns)
    if not stream:
        return BatchWriter(options, names)
    writer = ArrowStreamWriter if STREAMS_ARROW else RowStreamWriter
    return writer(options, names)


def check_topic(options: WriteOptions) -> None:
    """See that there is a topic to write to, before tasks wait for it.

    @raise TopicNotExist: there is none, and nobody creates it.
    """
    with options.client() as client:
        try:
            client.routes.to_write(options.topic)
        except TopicNotExist as problem:
            raise TopicNotExist(
                f"cannot write to topic {options.topic}: {problem}"
            ) from None
