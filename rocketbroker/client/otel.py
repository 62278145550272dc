# -*- test-case-name: tests.client.test_otel -*-
"""Spans of OpenTelemetry: one for each send, and one for the handling of each message.

C{connect(observers=[Spans()])}. The span of a handling is a child of the span of its
send, which travels in the properties of the message as W3C's C{traceparent}, as other
clients do it. While a listener runs, its span is the current one.

Names and attributes are those of OpenTelemetry's conventions for messaging and for
RocketMQ, version 1.30. This module needs the extra C{otel}; nothing else imports it.
"""

from __future__ import annotations

from contextvars import Token
from typing import Any, Final, TypeAlias, final
from weakref import WeakKeyDictionary

try:
    from opentelemetry import context as contexts
    from opentelemetry import propagate, trace
    from opentelemetry.context import Context
    from opentelemetry.propagators.textmap import TextMapPropagator
    from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"{error}: pip install 'rocketbroker[otel]'", name=error.name
    ) from None

from rocketbroker.client.observers import Handling, Observer, Outcome, Send
from rocketbroker.config.addresses import split_address
from rocketbroker.files.own_version import own_version
from rocketbroker.records import properties
from rocketbroker.routing.send_requests import DELAYS
from rocketbroker.routing.topic_view import MessageQueue

SCHEMA: Final = "https://opentelemetry.io/schemas/1.30.0"

Attributes: TypeAlias = dict[str, Any]


@final
class Spans(Observer):
    """Makes the spans of all clients that it is given to."""

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        propagator: TextMapPropagator | None = None,
    ) -> None:
        """
        @param tracer_provider: where spans go; unless given, the global one.
        @param propagator: how they travel; unless given, the global one.
        """
        self._tracer = trace.get_tracer(
            "rocketbroker.client", own_version(), tracer_provider, SCHEMA
        )
        self._propagator = propagator or propagate.get_global_textmap()
        self._sends: dict[Send, Span] = {}
        self._handlings: dict[Handling, tuple[Span, Context]] = {}
        # Of a listener that is cancelled nobody tells the end.
        self._tokens: WeakKeyDictionary[Handling, Token[Context]] = WeakKeyDictionary()

    def send_started(self, send: Send) -> None:
        """See L{Observer}."""
        message = send.message
        span = self._tracer.start_span(
            f"send {message.topic}",
            kind=SpanKind.PRODUCER,
            attributes={
                "messaging.operation.name": "send",
                "messaging.operation.type": "send",
                **_of_message(message.topic, message.body, message.properties),
            },
        )
        self._sends[send] = span
        context = trace.set_span_in_context(span)
        self._propagator.inject(message.properties, context)

    def send_ended(self, send: Send) -> None:
        """See L{Observer}."""
        span = self._sends.pop(send, None)
        if span is None:
            return
        if send.address is not None:
            host, port = split_address(send.address)
            span.set_attributes({"server.address": host, "server.port": port})
        if send.queue is not None:
            span.set_attributes(_of_queue(send.queue))
        if send.message_id is not None:
            span.set_attribute("messaging.message.id", send.message_id)
        if send.problem is not None:
            _fail(span, send.problem)
        span.end()

    def handling_started(self, handling: Handling) -> None:
        """See L{Observer}."""
        message = handling.message
        model = "broadcasting" if handling.broadcast else "clustering"
        parent = self._propagator.extract(message.properties)
        span = self._tracer.start_span(
            f"process {handling.topic}",
            context=parent,
            kind=SpanKind.CONSUMER,
            attributes={
                "messaging.operation.name": "process",
                "messaging.operation.type": "process",
                "messaging.consumer.group.name": handling.group,
                "messaging.rocketmq.consumption_model": model,
                "messaging.message.id": message.message_id,
                **_of_queue(handling.queue),
                **_of_message(handling.topic, message.body, message.properties),
            },
        )
        self._handlings[handling] = span, trace.set_span_in_context(span, parent)

    def listener_started(self, handling: Handling) -> None:
        """See L{Observer}."""
        found = self._handlings.get(handling)
        if found is not None:
            self._tokens[handling] = contexts.attach(found[1])

    def listener_ended(self, handling: Handling) -> None:
        """See L{Observer}."""
        token = self._tokens.pop(handling, None)
        if token is not None:
            contexts.detach(token)

    def handling_ended(self, handling: Handling) -> None:
        """See L{Observer}."""
        found = self._handlings.pop(handling, None)
        if found is None:
            return
        span, _ = found
        if handling.problem is not None:
            _fail(span, handling.problem)
        elif handling.outcome is not None and (
            handling.outcome != Outcome.ACKNOWLEDGED
        ):
            span.set_attribute("error.type", handling.outcome.value)
            span.set_status(Status(StatusCode.ERROR, handling.outcome.value))
        span.end()


def _fail(span: Span, problem: BaseException) -> None:
    span.set_attribute("error.type", type(problem).__qualname__)
    span.record_exception(problem)
    span.set_status(Status(StatusCode.ERROR, str(problem)))


def _of_queue(queue: MessageQueue) -> Attributes:
    return {"messaging.destination.partition.id": f"{queue.broker}:{queue.queue_id}"}


def _of_message(topic: str, body: bytes, text: dict[str, str]) -> Attributes:
    """The attributes that both kinds of spans have."""
    found: Attributes = {
        "messaging.system": "rocketmq",
        "messaging.destination.name": topic,
        "messaging.message.body.size": len(body),
        "messaging.rocketmq.message.type": _kind(text),
    }
    if properties.TAGS in text:
        found["messaging.rocketmq.message.tag"] = text[properties.TAGS]
    if properties.KEYS in text:
        found["messaging.rocketmq.message.keys"] = text[properties.KEYS].split()
    if properties.SHARDING_KEY in text:
        found["messaging.rocketmq.message.group"] = text[properties.SHARDING_KEY]
    for name, attribute in (
        (properties.DELAY, "delay_time_level"),
        (properties.TIMER_DELIVER_MS, "delivery_timestamp"),
    ):
        if text.get(name, "").isdecimal():
            found[f"messaging.rocketmq.message.{attribute}"] = int(text[name])
    return found


def _kind(text: dict[str, str]) -> str:
    """The type of a message, as the conventions name it."""
    if text.get(properties.TRANSACTION_PREPARED) == "true":
        return "transaction"
    if any(name in text for name in DELAYS):
        return "delay"
    return "fifo" if properties.SHARDING_KEY in text else "normal"
