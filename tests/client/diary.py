"""An observer that tests ask what it was told."""

from __future__ import annotations

from rocketbroker.client.observers import (
    Handling,
    ObservedConsumer,
    Observer,
    Outcome,
    Send,
    TransactionEnd,
)


class Diary(Observer):
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.sends: list[Send] = []
        self.handled: list[Handling] = []
        self.ends: list[TransactionEnd] = []
        self.consumers: list[ObservedConsumer] = []
        self.addresses: list[str] = []

    def send_started(self, send: Send) -> None:
        """Adds a property."""
        self.begun.append(send.message.topic)
        send.message.properties["seen"] = "yes"

    def send_ended(self, send: Send) -> None:
        """See L{Observer}."""
        self.sends.append(send)

    def transaction_ended(self, end: TransactionEnd) -> None:
        """See L{Observer}."""
        self.ends.append(end)

    def consumer_started(self, consumer: ObservedConsumer) -> None:
        """See L{Observer}."""
        self.consumers.append(consumer)

    def consumer_ended(self, consumer: ObservedConsumer) -> None:
        """See L{Observer}."""
        self.consumers.remove(consumer)

    def handling_started(self, handling: Handling) -> None:
        """See L{Observer}."""
        self.begun.append(handling.topic)

    def handling_ended(self, handling: Handling) -> None:
        """See L{Observer}."""
        self.handled.append(handling)

    def reconnected(self, address: str) -> None:
        """See L{Observer}."""
        self.addresses.append(address)

    @property
    def outcomes(self) -> list[tuple[str, Outcome | None]]:
        """Bodies, and what has become of them."""
        return [(one.message.body.decode(), one.outcome) for one in self.handled]
