"""The sink as Spark's processes call it, without Spark."""

from __future__ import annotations

import datetime
import pickle
from collections.abc import Callable

import pyarrow as pa
from pyspark.sql.types import LongType, StringType, StructType
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.auth.signatures import Credentials
from rocketbroker.blocking.pipeline import SendFailed
from rocketbroker.config.certificates import ClientTls
from rocketbroker.errors import ConfigurationError, MessageIllegal
from rocketbroker.records.hashing import java_hash
from rocketbroker.records.record import StoredMessage, decode
from rocketbroker.spark.sink import (
    BatchWriter,
    Chunk,
    TaskCommit,
    arrow_chunks,
    make_sink,
    row_chunks,
    send_chunks,
)
from rocketbroker.spark.source import RocketMQDataSource
from rocketbroker.spark.write_options import (
    WriteOptions,
    check_columns,
    write_options,
)
from rocketbroker.testing.scripted import answer
from tests.blocking.cluster import MemoryCluster

LEAST = {"nameServer": "127.0.0.1:1"}


class OptionTests(SynchronousTestCase):
    """L{write_options}."""

    def test_values(self) -> None:
        """Names are case-insensitive, and values have units."""
        words = {
            "NameServer": "a:1",
            "TOPIC": "T",
            "batchbytes": "64k",
            "linger": "1s",
            "maxInFlight": "2",
            "idempotent": "true",
            "patience": "5m",
            "deliveryGuarantee": "atLeastOnce",
            "checkpointLocation": "/somewhere",
        }
        expected = WriteOptions(
            "a:1", "T", 65536, 1000, 2, idempotent=True, patience_ms=300_000
        )
        self.assertEqual(write_options(words), expected)

    def test_access(self) -> None:
        """TLS and keys are those of reads, and the client has them."""
        words = {
            "tls": "true",
            "tls.ca": "/ca",
            "accessKey": "k",
            "secretKey": "hidden",
        }
        options = write_options({**LEAST, **words})
        self.assertNotIn("hidden", repr(options))
        with options.client() as client:
            self.assertEqual(client.settings.tls, ClientTls(ca_path="/ca"))
            self.assertEqual(client.settings.credentials, Credentials("k", "hidden"))
        error = self.assertRaises(
            ConfigurationError, write_options, {**LEAST, "secretKey": "hidden"}
        )
        self.assertEqual(str(error), "accessKey and secretKey go together")

    def test_refused(self) -> None:
        """What makes no sense is refused in one sentence."""
        for words, sentence in (
            ({}, "nameServer is needed to write"),
            ({"nameServer": "a"}, "'a' is not an address"),
            (LEAST | {"tpoic": "T"}, "unknown option 'tpoic' of a write; known are"),
            (LEAST | {"topic": "no such"}, "topic='no such': The specified topic"),
            (LEAST | {"maxInFlight": "0"}, "maxInFlight='0': must be 1 or more"),
            (LEAST | {"deliveryGuarantee": "exactlyOnce"}, "atLeastOnce is what"),
        ):
            error = self.assertRaises(ConfigurationError, write_options, words)
            self.assertIn(sentence, str(error))

    def test_columns(self) -> None:
        """So are columns that are unknown, have the wrong type or are missing."""
        body = ("body", "binary")
        for columns, sentence in (
            ([("body", "int")], "body has to be binary or string, not int"),
            ([body, ("tag", "string")], "there is no column 'tag' to write"),
            ([("tags", "string")], "a column body is needed"),
            ([body], "an option or a column topic is needed"),
            ([body, ("topic", "string"), ("queueId", "int")], "only go together"),
            (
                [
                    body,
                    ("topic", "string"),
                    ("queueId", "int"),
                    ("brokerName", "string"),
                    ("shardingKey", "string"),
                ],
                "queueId or shardingKey",
            ),
        ):
            error = self.assertRaises(
                ConfigurationError, check_columns, columns, WriteOptions("a:1")
            )
            self.assertIn(sentence, str(error))
        check_columns([body], WriteOptions("a:1", "T"))


class MakeTests(SynchronousTestCase):
    """L{make_sink}."""

    SCHEMA = StructType().add("body", StringType()).add("topic", StringType())

    def test_kinds(self) -> None:
        """There is a writer for frames and one for streams, and they travel."""
        source = RocketMQDataSource(LEAST)
        for writer in (
            source.writer(self.SCHEMA, False),
            source.streamWriter(self.SCHEMA, False),
        ):
            again = pickle.loads(pickle.dumps(writer))
            self.assertEqual(again.options, writer.options)
            self.assertEqual(again.names, ("body", "topic"))
            self.assertEqual(again.run, writer.run)

    def test_overwrite(self) -> None:
        """Nothing is overwritten."""
        for stream, mode in ((False, "append"), (True, "outputMode")):
            error = self.assertRaises(
                ConfigurationError, make_sink, LEAST, self.SCHEMA, True, stream
            )
            self.assertIn(mode, str(error))

    def test_type(self) -> None:
        """A column of the wrong type is refused when the writer is made."""
        schema = StructType().add("body", LongType())
        error = self.assertRaises(
            ConfigurationError, make_sink, {**LEAST, "topic": "T"}, schema, False, False
        )
        self.assertIn("not bigint", str(error))

    def test_told(self) -> None:
        """What was stored is counted in the log, failed tasks apart."""
        writer = make_sink(LEAST, self.SCHEMA, False, False)
        assert isinstance(writer, BatchWriter)
        with self.assertLogs("rocketbroker.spark.sink", "INFO") as logs:
            writer.commit([TaskCommit(0, 5, 1, ()), TaskCommit(1, 7, 0, ())])
            writer.abort([TaskCommit(0, 5, 1, ()), None])
        self.assertIn("written: 12 rows, 1 requests sent again", logs.output[0])
        self.assertIn("written in part: 5 rows", logs.output[1])


class SendTests(SynchronousTestCase):
    """L{send_chunks}, to a cluster in memory."""

    def setUp(self) -> None:
        self.cluster = MemoryCluster()

    def send(
        self, *chunks: Chunk, stamp: str | None = None, options: WriteOptions
    ) -> TaskCommit:
        """One task's work."""
        return send_chunks(chunks, options, self.cluster.client, 3, stamp)

    def stored(self) -> list[StoredMessage]:
        """All messages, by body."""
        found = [
            decode(data)
            for broker in self.cluster.brokers.values()
            for queue in broker.queues.values()
            for data in queue
        ]
        return sorted(found, key=lambda message: message.body)

    def test_columns(self) -> None:
        """Each column becomes what it says."""
        at = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
        chunk: Chunk = {
            "body": [b"1", "2", b"3"],
            "topic": ["T", "T", "T"],
            "tags": ["a", None, ""],
            "keys": [["k1", "k2"], "k3", None],
            "properties": [[("u", "v"), ("x", None)], {"TAGS": "b"}, None],
            "queueId": [1, None, None],
            "brokerName": ["b2", None, None],
            "delayLevel": [None, 3, 0],
            "deliverAt": [None, None, at],
        }
        self.send(chunk, options=WriteOptions())
        first, second, third = self.stored()
        self.assertEqual((first.tags, first.keys), ("a", ["k1", "k2"]))
        self.assertEqual((first.queue_id, first.properties["u"]), (1, "v"))
        self.assertNotIn("x", first.properties)
        self.assertEqual((second.tags, second.keys), (None, ["k3"]))
        self.assertEqual(second.properties["DELAY"], "3")
        self.assertEqual(third.properties["TIMER_DELIVER_MS"], "1767225600000")

    def test_shards(self) -> None:
        """Messages with one sharding key go to one queue, as Java's clients choose."""
        keys = ["a", "b", "c", None] * 5
        chunk: Chunk = {"body": [b"x"] * 20, "shardingKey": keys}
        self.send(chunk, options=WriteOptions(topic="T"))
        queues = self.cluster.client.routes.to_write("T")
        for key in "abc":
            queue = queues[abs(java_hash(key)) % 4]
            broker = self.cluster.brokers[queue.broker]
            found = [
                message
                for data in broker.queues["T", queue.queue_id]
                if (message := decode(data)).properties.get("__SHARDINGKEY") == key
            ]
            self.assertEqual(len(found), 5)

    def test_commit(self) -> None:
        """The commit message tells counts, offsets and ids of each queue."""
        options = WriteOptions(topic="T", batch_bytes=1000)
        stored = self.send({"body": [bytes(200)] * 25}, options=options)
        self.assertEqual((stored.rows, stored.partition, stored.retries), (25, 3, 0))
        self.assertEqual(sum(queue.rows for queue in stored.queues), 25)
        ids = {
            (message.queue_id, message.queue_offset, message.unique_key)
            for message in self.stored()
        }
        for queue in stored.queues:
            self.assertEqual(queue.last_offset - queue.first_offset + 1, queue.rows)
            self.assertIn((queue.queue_id, queue.first_offset, queue.first_id), ids)
            self.assertIn((queue.queue_id, queue.last_offset, queue.last_id), ids)
        self.assertEqual(pickle.loads(pickle.dumps(stored)), stored)

    def test_stamps(self) -> None:
        """Each message says its row, the same when rows come again."""
        chunks: tuple[Chunk, ...] = ({"body": ["a", "b"]}, {"body": ["c"]})
        for _ in range(2):
            self.send(*chunks, stamp="q/7/3/", options=WriteOptions(topic="T"))
        stamps = [message.properties["sparkRow"] for message in self.stored()]
        self.assertEqual(
            stamps,
            [f"q/7/3/{n}" for n in (0, 0, 1, 1, 2, 2)],
        )

    def test_illegal(self) -> None:
        """A row that is no message is named."""
        chunks: tuple[tuple[Chunk, str], ...] = (
            ({"body": ["a", None]}, "row 1 of a partition is no message: its body"),
            ({"body": ["a", "b"], "tags": ["a", 5]}, "TAGS is one string"),
            ({"body": ["a"], "topic": [None]}, "its topic is null"),
            (
                {"body": ["a"], "topic": ["T"], "queueId": [1], "brokerName": [None]},
                "only one of queueId and brokerName is null",
            ),
        )
        for chunk, sentence in chunks:
            topic = "" if "topic" in chunk else "T"
            with self.assertRaisesRegex(MessageIllegal, sentence):
                self.send(chunk, options=WriteOptions(topic=topic))

    def test_failure(self) -> None:
        """What cannot be stored fails the task, with broker, code and remark."""
        for broker in self.cluster.brokers.values():
            broker.faults = [lambda command: answer(16, remark="no")] * 99
        with self.assertRaisesRegex(SendFailed, "by broker b[12] in 3 tries: code 16"):
            self.send({"body": ["a"] * 9}, options=WriteOptions(topic="T"))

    def test_forms(self) -> None:
        """Arrow record batches and rows give the same chunks."""
        batch = pa.record_batch({"body": [b"1", b"2"], "tags": ["a", None]})
        rows = [(b"1", "a"), (b"2", None)]
        expected = [{"body": [b"1", b"2"], "tags": ["a", None]}]
        makers: tuple[Callable[[], object], ...] = (
            lambda: [*arrow_chunks([batch])],
            lambda: [*row_chunks(rows, ("body", "tags"))],
        )
        for make in makers:
            self.assertEqual(make(), expected)
