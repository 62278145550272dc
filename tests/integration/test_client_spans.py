"""Spans of our client in each of its faces: what is current in a listener."""

from __future__ import annotations

import asyncio
from typing import Any

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace.propagation.tracecontext import (
    TraceContextTextMapPropagator,
)
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.trial.unittest import TestCase

from rocketbroker import aio, deferred, threads
from rocketbroker.client.otel import Spans
from rocketbroker.testing import Broker


class SpanTests(TestCase):
    """A request sends a message, whose listener sends another one."""

    timeout = 60

    def setUp(self) -> None:
        broker = Broker()
        broker.__enter__()
        self.addCleanup(broker.__exit__, None, None, None)
        self.names = broker.name_server
        self.first, self.second = broker.topic("first"), broker.topic("second")
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.request = provider.get_tracer("tests").start_as_current_span("request")
        observers = [Spans(provider, TraceContextTextMapPropagator())]
        self.options: Any = {"observers": observers, "patience": 30.0}
        self.wanted: Any = {
            "group": broker.group("readers"),
            "start": "earliest",
            "concurrency": 3,
        }

    def check(self) -> None:
        """The span of the listener was the current one where it sent."""
        spans = self.exporter.get_finished_spans()
        names = {one.context.span_id: one.name for one in spans if one.context}
        parents = {
            one.name: names[one.parent.span_id] if one.parent else None for one in spans
        }
        first, second = self.first, self.second
        self.assertEqual(
            parents,
            {
                f"send {first}": "request",
                f"process {first}": f"send {first}",
                f"send {second}": f"process {first}",
                "request": None,
            },
        )

    def test_asyncio(self) -> None:
        """Each listener's task has a context of its own."""

        async def main() -> None:
            mq = aio.connect(self.names, **self.options)

            @mq.on(self.first, **self.wanted)
            async def listen(message: aio.ReceivedMessage) -> None:
                await mq.send(self.second, "2")
                mq.stop()

            async with mq:
                with self.request:
                    await mq.send(self.first, "1")
                await mq.run()

        asyncio.run(main())
        self.check()

    def test_threads(self) -> None:
        """The listener is called in a thread of a pool."""
        with threads.connect(self.names, **self.options) as mq:

            @mq.on(self.first, **self.wanted)
            def listen(message: threads.ReceivedMessage) -> None:
                mq.send(self.second, "2")
                mq.stop()

            with self.request:
                mq.send(self.first, "1")
            mq.run()
        self.check()

    def test_deferred(self) -> Deferred[None]:
        """The listener gives a Deferred."""

        async def main() -> None:
            mq = deferred.connect(reactor, self.names, **self.options)

            @mq.on(self.first, **self.wanted)
            def listen(message: deferred.ReceivedMessage) -> Deferred[None]:
                return mq.send(self.second, "2").addCallback(lambda _: mq.stop())

            async with mq:
                with self.request:
                    await mq.send(self.first, "1")
                await mq.run()
            self.check()

        return Deferred.fromCoroutine(main())
