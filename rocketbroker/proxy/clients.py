# -*- test-case-name: tests.proxy.test_clients -*-
"""Clients of the proxy: their settings, their streams, and since when they are silent.

A client is known by its id, which every call names. Its settings come over its stream
of telemetry, and the answer says what it has to go by. A client without settings, as
all are after a restart of the proxy, is served all the same, by those of its group.
C{docs/facts/proxy.md} 4, 8.2, 8.3 and 10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, final

from google.protobuf.duration_pb2 import Duration

from rocketbroker.proxy.messages_pb2 import (
    ClientType,
    CustomizedBackoff,
    ExponentialBackoff,
    Metric,
    RetryPolicy,
    Settings,
    TelemetryCommand,
)
from rocketbroker.proxy.settings import ProxySettings
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig

#: Sends a command to a client.
Stream = Callable[[TelemetryCommand], None]

#: Pauses, in seconds, after the first, second, ... failure: RocketMQ's policy.
CUSTOMIZED: Final = (
    *(1, 5, 10, 30),
    *(60 * minutes for minutes in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30, 60, 120)),
)

#: The exponential policy of a group that gives none: milliseconds, and the factor.
EXPONENTIAL: Final = (5000, 7_200_000, 2)

#: A client that has not called for so long has gone, or has gone to another proxy: each
#: sends a heartbeat every ten seconds.
HERE_SECONDS: Final = 30.0


def duration(milliseconds: int) -> Duration:
    """A time span."""
    seconds, rest = divmod(milliseconds, 1000)
    return Duration(seconds=seconds, nanos=rest * 1_000_000)


def span_ms(span: Duration) -> int:
    """A time span in milliseconds."""
    return span.seconds * 1000 + span.nanos // 1_000_000


def backoff_of(config: SubscriptionGroupConfig | None) -> RetryPolicy:
    """When a message that failed is given out again, as a group's settings say."""
    times = 16 if config is None else config.retry_max_times
    policy = RetryPolicy(max_attempts=times + 1)
    given = {} if config is None else config.group_retry_policy
    if given.get("type") == "EXPONENTIAL":
        first, most, factor = EXPONENTIAL
        chosen = given.get("exponentialRetryPolicy")
        if isinstance(chosen, dict):
            first = int(chosen.get("initial", first))
            most = int(chosen.get("max", most))
            factor = int(chosen.get("multiplier", factor))
        policy.exponential_backoff.CopyFrom(
            ExponentialBackoff(
                initial=duration(first), max=duration(most), multiplier=factor
            )
        )
        return policy
    pauses = [seconds * 1000 for seconds in CUSTOMIZED]
    chosen = given.get("customizedRetryPolicy")
    if isinstance(chosen, dict) and isinstance(chosen.get("next"), list):
        pauses = [int(one) for one in chosen["next"]]
    following = [duration(one) for one in pauses]
    policy.customized_backoff.CopyFrom(CustomizedBackoff(next=following))
    return policy


def answer_to(
    given: Settings, config: SubscriptionGroupConfig | None, settings: ProxySettings
) -> Settings:
    """The settings that a client has to go by.

    @param config: the settings of its group; None also for producers.
    """
    answer = Settings()
    answer.CopyFrom(given)
    answer.metric.CopyFrom(Metric(on=False))
    if given.HasField("publishing"):
        answer.publishing.max_body_size = settings.max_message_size
        check = settings.enable_topic_message_type_check
        answer.publishing.validate_message_type = check
        answer.backoff_policy.CopyFrom(
            RetryPolicy(
                max_attempts=settings.grpc_client_producer_max_attempts,
                exponential_backoff=ExponentialBackoff(
                    initial=duration(
                        settings.grpc_client_producer_backoff_initial_millis
                    ),
                    max=duration(settings.grpc_client_producer_backoff_max_millis),
                    multiplier=settings.grpc_client_producer_backoff_multiplier,
                ),
            )
        )
        return answer
    reads = answer.subscription
    reads.receive_batch_size = settings.grpc_client_consumer_long_polling_batch_size
    reads.long_polling_timeout.CopyFrom(
        duration(settings.grpc_client_consumer_max_long_polling_timeout_millis)
    )
    reads.fifo = config is not None and config.consume_message_orderly
    answer.backoff_policy.CopyFrom(backoff_of(config))
    return answer


@final
class Client:
    """One client.

    @ivar settings: as it gave them; None if it has not yet.
    @ivar stream: its latest stream, None if that has ended.
    @ivar heard_at: when it was last heard of.
    """

    __slots__ = ("client_id", "heard_at", "settings", "stream")

    def __init__(self, client_id: str, now: float) -> None:
        self.client_id = client_id
        self.settings: Settings | None = None
        self.stream: Stream | None = None
        self.heard_at = now

    @property
    def topics(self) -> list[str]:
        """The topics that it sends to."""
        given = self.settings
        if given is None or not given.HasField("publishing"):
            return []
        return [topic.name for topic in given.publishing.topics]

    @property
    def is_consumer(self) -> bool:
        """Whether it reads."""
        given = self.settings
        kinds = (ClientType.PUSH_CONSUMER, ClientType.SIMPLE_CONSUMER)
        return given is not None and given.client_type in kinds


@final
class Clients:
    """All clients that were heard of lately."""

    def __init__(self, silence_ms: int) -> None:
        """
        @param silence_ms: who is silent for longer is forgotten.
        """
        self._silence = silence_ms / 1000
        self._known: dict[str, Client] = {}
        self._called: dict[str, float] = {}
        self._turn = 0

    def __len__(self) -> int:
        return len(self._known)

    def heard(self, client_id: str, now: float) -> Client:
        """The client of that id, which is there now."""
        found = self._known.get(client_id)
        if found is None:
            found = self._known[client_id] = Client(client_id, now)
        found.heard_at = now
        return found

    def called(self, client_id: str, now: float) -> None:
        """A client has called, known or not."""
        self._called[client_id] = now

    def is_here(self, client_id: str, now: float) -> bool:
        """Whether a client has called lately."""
        at = self._called.get(client_id)
        return at is not None and now - at < HERE_SECONDS

    def get(self, client_id: str) -> Client | None:
        """The client of that id, if it is known."""
        return self._known.get(client_id)

    def forget(self, client_id: str) -> Client | None:
        """The client of that id leaves."""
        return self._known.pop(client_id, None)

    def silent(self, now: float) -> Iterator[Client]:
        """Forget those that are silent, and tell which; whose stream is open is not."""
        for client_id, at in [*self._called.items()]:
            if now - at >= self._silence:
                del self._called[client_id]
        for client in [*self._known.values()]:
            if client.stream is None and now - client.heard_at >= self._silence:
                del self._known[client.client_id]
                yield client

    def producer_of(self, topic: str) -> Client | None:
        """A client that sends to a topic and has a stream: another one each time."""
        found = [
            client
            for client in self._known.values()
            if client.stream is not None and topic in client.topics
        ]
        if not found:
            return None
        self._turn += 1
        return found[self._turn % len(found)]

    def topics(self) -> set[str]:
        """All topics that clients send to."""
        return {topic for client in self._known.values() for topic in client.topics}
