"""RocketMQ's Proxy, unmodified, in cluster mode before our name server and broker, as
the official gRPC clients for Java and Node.js see it."""

from __future__ import annotations

from tests.integration import grpc_scenarios as scenarios
from tests.integration.proxied import ProxyCase


class ProxyTests(ProxyCase):
    """Producers of all message types, push and simple consumers.

    Each is a scenario of L{tests.integration.grpc_scenarios}, which says what holds.
    """

    def test_normal(self) -> None:
        """Messages of the normal type."""
        self.each(scenarios.normal)

    def test_push(self) -> None:
        """Push consumers."""
        self.each(scenarios.push)

    def test_refused(self) -> None:
        """Messages that cannot be sent."""
        self.each(scenarios.refusals)

    def test_shared(self) -> None:
        """Two members of a group, then one."""
        self.each(scenarios.sharing)

    def test_filters(self) -> None:
        """Tags and SQL."""
        self.each(scenarios.filters)

    def test_fifo(self) -> None:
        """Order within message groups."""
        self.each(scenarios.ordered)

    def test_fifoFailure(self) -> None:
        """A push consumer that fails, where order is kept."""
        self.each(scenarios.ordered_failure)

    def test_delay(self) -> None:
        """Messages with a time of delivery."""
        self.each(scenarios.delay)

    def test_recall(self) -> None:
        """Messages that are recalled before it."""
        self.each(scenarios.recall)

    def test_transactions(self) -> None:
        """Transactions that their producer ends."""
        self.each(scenarios.transactions)

    def test_checkBack(self) -> None:
        """Transactions that it is asked about."""
        self.each(scenarios.check_back)

    def test_retry(self) -> None:
        """Messages that fail and come back."""
        self.each(scenarios.retry)

    def test_deadLetters(self) -> None:
        """Messages that fail too often."""
        self.each(scenarios.dead_letters)

    def test_fifoDeadLetters(self) -> None:
        """Those too, where order is kept."""
        self.each(scenarios.ordered_dead_letters)

    def test_simple(self) -> None:
        """Messages that nobody acknowledges."""
        self.each(scenarios.unacknowledged)

    def test_invisibleTime(self) -> None:
        """The change of the time after which they come back."""
        self.each(scenarios.change)
