"""Spans of OpenTelemetry."""

from __future__ import annotations

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import (
    TraceContextTextMapPropagator,
)
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.otel import Spans
from rocketbroker.client.received import ReceivedMessage
from rocketbroker.client.served import Listener
from rocketbroker.errors import NoPermission
from rocketbroker.records.outgoing import Message
from rocketbroker.testing.puppet_cluster import refuse
from rocketbroker.wire.codes import RequestCode
from tests.client.cluster import ClientCluster


class SpanCase(SynchronousTestCase):
    """A cluster, of whose clients spans are kept in memory."""

    def setUp(self) -> None:
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = provider.get_tracer("tests")
        spans = Spans(provider, TraceContextTextMapPropagator())
        self.here = ClientCluster(observers=[spans])
        self.here.cluster.topics["T"] = {"b1": 1}
        self.runtime = self.here.runtime

    def spans(self) -> list[ReadableSpan]:
        """Those that have ended, in that order."""
        return list(self.exporter.get_finished_spans())


class SendTests(SpanCase):
    """Sends."""

    def test_sendHasASpan(self) -> None:
        """With the attributes of the conventions; a child of the current one."""
        producer = self.here.producer()
        message = Message("T", "body", tags="a", keys=["k1", "k2"])
        with self.tracer.start_as_current_span("around") as around:
            result = self.runtime.finish(producer.send(message))
        span = self.spans()[0]
        self.assertEqual((span.name, span.kind), ("send T", SpanKind.PRODUCER))
        assert span.parent is not None
        self.assertEqual(span.parent.span_id, around.get_span_context().span_id)
        self.assertEqual(
            dict(span.attributes or {}),
            {
                "messaging.system": "rocketmq",
                "messaging.operation.name": "send",
                "messaging.operation.type": "send",
                "messaging.destination.name": "T",
                "messaging.destination.partition.id": "b1:0",
                "messaging.message.id": result.message_id,
                "messaging.message.body.size": 4,
                "messaging.rocketmq.message.type": "normal",
                "messaging.rocketmq.message.tag": "a",
                "messaging.rocketmq.message.keys": ("k1", "k2"),
                "server.address": "b1",
                "server.port": 10911,
            },
        )
        self.assertEqual(span.status.status_code, StatusCode.UNSET)

    def test_spanOfAFailedSendSaysWhy(self) -> None:
        """With the exception as an event."""
        faults = self.here.broker().faults
        faults[RequestCode.SEND_MESSAGE_V2] = [refuse(16)] * 3
        sending = self.here.producer().send(Message("T", "1"))
        running = self.runtime.start(sending)
        with self.assertRaises(NoPermission):
            self.here.until(running)
        (span,) = self.spans()
        self.assertEqual(span.status.status_code, StatusCode.ERROR)
        self.assertEqual((span.attributes or {})["error.type"], "NoPermission")
        self.assertEqual([one.name for one in span.events], ["exception"])

    def test_kindsOfMessages(self) -> None:
        """Ordered, delayed, of a transaction; and what belongs to the kind."""
        producer = self.here.producer()
        half = Message("T", "1")
        half.properties["TRAN_MSG"] = "true"
        for message in (
            Message("T", "1", sharding_key="o"),
            Message("T", "1", delay_level=3),
            Message("T", "1", deliver_at_ms=5),
            half,
        ):
            self.runtime.finish(producer.send(message))
        start = "messaging.rocketmq.message."
        found = [
            {
                name.removeprefix(start): value
                for name, value in (span.attributes or {}).items()
                if name.startswith(start)
            }
            for span in self.spans()
        ]
        self.assertEqual(
            found,
            [
                {"type": "fifo", "group": "o"},
                {"type": "delay", "delay_time_level": 3},
                {"type": "delay", "delivery_timestamp": 5},
                {"type": "transaction"},
            ],
        )


class HandlingTests(SpanCase):
    """Messages that are handled."""

    def send(self) -> None:
        """Store a message."""
        self.runtime.finish(self.here.producer().send(Message("T", "1")))

    def listen(self, listener: Listener) -> None:
        """Let a listener handle one message."""
        session = self.here.session()
        session.on("T", group="G", start="earliest", concurrency=1)(listener)
        running = self.runtime.start(session.run())
        self.runtime.advance(1.0)
        session.stop()
        self.here.until(running)
        self.runtime.finish(session.close())

    def test_handlingIsAChildOfTheSend(self) -> None:
        """By what stands in the message."""
        self.send()
        received = self.here.take(self.here.started())
        self.runtime.finish(received.ack())
        send, process = self.spans()
        self.assertEqual((process.name, process.kind), ("process T", SpanKind.CONSUMER))
        assert process.parent is not None and send.context is not None
        self.assertEqual(process.parent.span_id, send.context.span_id)
        self.assertEqual(process.parent.trace_id, send.context.trace_id)
        self.assertIn("traceparent", received.properties)
        self.assertEqual(
            dict(process.attributes or {}),
            {
                "messaging.system": "rocketmq",
                "messaging.operation.name": "process",
                "messaging.operation.type": "process",
                "messaging.consumer.group.name": "G",
                "messaging.destination.name": "T",
                "messaging.destination.partition.id": "b1:0",
                "messaging.message.id": received.message_id,
                "messaging.message.body.size": 1,
                "messaging.rocketmq.consumption_model": "clustering",
                "messaging.rocketmq.message.type": "normal",
            },
        )

    def test_messageWithoutASpanBeginsATrace(self) -> None:
        """And what is sent back is an error."""
        self.here.put("1")
        self.runtime.finish(self.here.take(self.here.started()).retry())
        (process,) = self.spans()
        self.assertIsNone(process.parent)
        self.assertEqual(process.status.status_code, StatusCode.ERROR)
        self.assertEqual((process.attributes or {})["error.type"], "retried")

    def test_spanIsCurrentWhileTheListenerRuns(self) -> None:
        """What it sends is a child; behind it no span is current."""
        self.send()

        async def listen(message: ReceivedMessage) -> None:
            """Sends another message."""
            await producer.send(Message("U", "2"))

        producer = self.here.producer()
        self.here.cluster.topics["U"] = {"b1": 1}
        self.listen(listen)
        _, inner, process = self.spans()
        self.assertEqual((inner.name, process.name), ("send U", "process T"))
        assert inner.parent is not None and process.context is not None
        self.assertEqual(inner.parent.span_id, process.context.span_id)
        self.assertFalse(trace.get_current_span().get_span_context().is_valid)

    def test_errorOfAListenerIsInItsSpan(self) -> None:
        """As an event."""
        self.send()

        def listen(message: ReceivedMessage) -> None:
            """Fails."""
            raise KeyError("a fault of the user")

        with self.assertLogs("rocketbroker.client", "ERROR"):
            self.listen(listen)
        process = self.spans()[1]
        self.assertEqual((process.attributes or {})["error.type"], "KeyError")
        self.assertEqual([one.name for one in process.events], ["exception"])
