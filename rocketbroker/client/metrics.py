# -*- test-case-name: tests.client.test_metrics -*-
"""Metrics of clients for Prometheus, in the user's registry.

C{connect(metrics=registry)} registers them; all clients with the same registry share
them. C{docs/clients.rst} has the list.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator
from typing import Final, final
from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric

from rocketbroker.client.observers import (
    Handling,
    ObservedConsumer,
    Observer,
    Send,
)
from rocketbroker.errors import ConfigurationError

#: Upper ends of the histograms' buckets, in seconds: a send takes a millisecond, or as
#: long as a broker is away.
SEND_BUCKETS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 120)
HANDLING_BUCKETS: Final = (0.001, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300, 900)

_known: Final[WeakKeyDictionary[CollectorRegistry, ClientMetrics]] = WeakKeyDictionary()


@final
class ClientMetrics(Observer):
    """The metrics of all clients with one registry. It is a collector, too: of what is
    read when Prometheus asks."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """
        @param registry: gets them.
        """
        topic, group = ("topic",), ("topic", "group")

        def counter(name: str, words: str, labels: tuple[str, ...]) -> Counter:
            name = f"rocketbroker_client_{name}"
            return Counter(name, words, labels, registry=registry)

        self._sent = counter("messages_sent", "Messages stored.", topic)
        self._failed = counter("sends_failed", "Messages not stored.", topic)
        self._retried = counter("send_retries", "Further tries of sends.", topic)
        self._received = counter("messages_received", "Messages given out.", group)
        self._handled = counter(
            "messages_handled",
            "Messages of which something has become.",
            (*group, "outcome"),
        )
        self._reconnections = counter(
            "reconnections", "Connections made again.", ("address",)
        )
        self._send_seconds = Histogram(
            "rocketbroker_client_send_seconds",
            "From a send's start until it is stored or has failed.",
            topic,
            buckets=SEND_BUCKETS,
            registry=registry,
        )
        self._handling_seconds = Histogram(
            "rocketbroker_client_handling_seconds",
            "From when a message is given out until something has become of it.",
            group,
            buckets=HANDLING_BUCKETS,
            registry=registry,
        )
        self._consumers: set[ObservedConsumer] = set()
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """What is read now, for the registry."""
        waiting: Tally[tuple[str, str]] = Tally()
        for consumer in [*self._consumers]:
            for topic, count in consumer.prefetched().items():
                waiting[topic, consumer.group] += count
        family = GaugeMetricFamily(
            "rocketbroker_client_prefetched_messages",
            "Messages that wait here for a reader.",
            labels=("topic", "group"),
        )
        for labels, count in waiting.items():
            family.add_metric(labels, count)
        yield family

    def send_ended(self, send: Send) -> None:
        """See L{Observer}."""
        topic = send.message.topic
        if send.problem is None:
            self._sent.labels(topic).inc()
        else:
            self._failed.labels(topic).inc()
        if send.tries > 1:
            self._retried.labels(topic).inc(send.tries - 1)
        self._send_seconds.labels(topic).observe(send.seconds)

    def consumer_started(self, consumer: ObservedConsumer) -> None:
        """See L{Observer}."""
        self._consumers.add(consumer)

    def consumer_ended(self, consumer: ObservedConsumer) -> None:
        """See L{Observer}."""
        self._consumers.discard(consumer)

    def handling_started(self, handling: Handling) -> None:
        """See L{Observer}."""
        self._received.labels(handling.topic, handling.group).inc()

    def handling_ended(self, handling: Handling) -> None:
        """See L{Observer}."""
        topic, group = handling.topic, handling.group
        self._handled.labels(topic, group, handling.outcome).inc()
        self._handling_seconds.labels(topic, group).observe(handling.seconds)

    def reconnected(self, address: str) -> None:
        """See L{Observer}."""
        self._reconnections.labels(address).inc()


def metrics_in(registry: object) -> ClientMetrics:
    """The metrics in a registry, which gets them unless it has them.

    @raise ConfigurationError: it is none.
    """
    if not isinstance(registry, CollectorRegistry):
        raise ConfigurationError(
            f"metrics are put into a prometheus_client.CollectorRegistry, not into "
            f"{registry!r}"
        )
    found = _known.get(registry)
    if found is None:
        found = _known[registry] = ClientMetrics(registry)
    return found
