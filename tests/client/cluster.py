"""A cluster of puppets, with clients of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rocketbroker.client.consumer import Consumer
from rocketbroker.client.instance import Instance
from rocketbroker.client.local_offsets import OffsetFolder
from rocketbroker.client.producer import Producer
from rocketbroker.client.received import ReceivedMessage
from rocketbroker.client.session import Session
from rocketbroker.client.settings import (
    ClientSettings,
    ConsumerSettings,
    ProducerSettings,
)
from rocketbroker.client.subscription import subscription
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.puppet_cluster import PuppetBroker, PuppetCluster
from rocketbroker.testing.runtime import MemoryRuntime, Outcome


class ClientCluster:
    """Two brokers with a topic of four queues, and clients."""

    def __init__(self, *brokers: str, **settings: Any) -> None:
        self.runtime = MemoryRuntime()
        self.cluster = PuppetCluster(self.runtime, *brokers or ("b1", "b2"))
        self.disk = MemoryDisk()
        self.cluster.topics["T"] = dict.fromkeys(self.cluster.brokers, 2)
        self.settings = ClientSettings(**{"name_servers": ("ns:9876",), **settings})

    def broker(self, name: str = "b1") -> PuppetBroker:
        """One of the brokers."""
        return self.cluster.brokers[name]

    def instance(self) -> Instance:
        """A client."""
        return Instance(self.runtime, self.settings)

    def producer(self, **settings: Any) -> Producer:
        """A producer, with a client of its own."""
        producer = Producer(self.instance(), ProducerSettings(**settings))
        producer.start()
        self.runtime.settle()
        return producer

    def session(self, **settings: Any) -> Session:
        """The simple face, with settings of its producer."""
        folder = OffsetFolder(self.disk, "/home")
        given = ProducerSettings(**settings)
        return Session(self.runtime, self.settings, given, lambda: folder)

    def consumer(self, tags: str | None = None, **settings: Any) -> Consumer:
        """A member of group G that reads topic T, not started."""
        given = ConsumerSettings(**{"group": "G", "start": "earliest", **settings})
        return Consumer(self.instance(), given, [subscription("T", tags)])

    def started(self, tags: str | None = None, **settings: Any) -> Consumer:
        """The same, started."""
        consumer = self.consumer(tags, **settings)
        self.runtime.finish(consumer.start())
        return consumer

    def put(self, *bodies: str, queue: int = 0, broker: str = "b1") -> None:
        """Store messages in a queue of topic T."""
        for body in bodies:
            self.broker(broker).put("T", queue, body.encode(), {"UNIQ_KEY": body})

    def take(self, consumer: Consumer) -> ReceivedMessage:
        """The next message, which has to be there."""
        self.runtime.settle()
        message = self.runtime.finish(consumer.next(0.0))
        assert message is not None, "there is none"
        return message

    def all_of(self, consumer: Consumer) -> list[ReceivedMessage]:
        """All messages that are there now."""
        self.runtime.settle()
        found: list[ReceivedMessage] = []
        while (message := self.runtime.finish(consumer.next(0.0))) is not None:
            found.append(message)
        return found

    def texts(self, consumer: Consumer) -> list[str]:
        """The bodies of all messages that are there now, sorted."""
        return sorted(message.text for message in self.all_of(consumer))

    def until(self, outcome: Outcome[Any], seconds: float = 300.0) -> Any:
        """The result of something that takes time."""
        self.wait(lambda: outcome.ended, seconds)
        return outcome.value()

    def wait(self, condition: Callable[[], bool], seconds: float = 300.0) -> float:
        """Let time pass until something is so; how much has passed."""
        begin = self.runtime.monotonic()
        self.runtime.settle()
        while not condition():
            passed = self.runtime.monotonic() - begin
            assert passed < seconds, "it does not come to that"
            self.runtime.advance(0.05)
        return self.runtime.monotonic() - begin
