"""The scenarios of the official client, with ours.

In the large form every face plays them, with our broker and with Java's.
"""

from __future__ import annotations

import asyncio

from twisted.trial.unittest import SynchronousTestCase

from scripts.lab.servers import Cluster
from tests.heavy import HEAVY
from tests.integration.client_scenarios import failures
from tests.integration.proxied import JavaCluster

#: Settings of the brokers: transactions are checked soon, and Java's notes the ends of
#: transactions so soon that it does not ask about them.
SETTINGS: dict[str, object] = {
    "transactionTimeOut": 1000,
    "transactionCheckInterval": 1500,
    "transactionOpBatchInterval": 100,
}

#: What a broker of RocketMQ 4.9 cannot do: it has no timers, and its search by time
#: finds the message before.
NOT_WITH_4_9 = frozenset({"timer", "offsets"})


class ScenarioTests(SynchronousTestCase):
    """L{tests.integration.client_scenarios}."""

    timeout = 600

    def play(
        self,
        cluster: Cluster | JavaCluster,
        face: str,
        without: frozenset[str] = frozenset(),
    ) -> None:
        """All at once, on one broker."""
        self.addCleanup(cluster.stop)
        cluster.start()
        found = asyncio.run(failures(cluster.names, without, face))
        self.assertEqual(found, {})

    def test_scenariosHoldWithOurBroker(self) -> None:
        """With C{rocketbroker.aio}."""
        self.play(Cluster(**SETTINGS), "aio")

    if HEAVY:

        def test_threadsHoldWithOurBroker(self) -> None:
            """With C{rocketbroker.threads}."""
            self.play(Cluster(**SETTINGS), "threads")

        def test_deferredHoldsWithOurBroker(self) -> None:
            """With C{rocketbroker.deferred}."""
            self.play(Cluster(**SETTINGS), "deferred")

        def test_aioHoldsWith533(self) -> None:
            """With Java's broker."""
            self.play(JavaCluster("5.3.3", **SETTINGS), "aio")

        def test_threadsHoldWith533(self) -> None:
            """With Java's broker."""
            self.play(JavaCluster("5.3.3", **SETTINGS), "threads")

        def test_deferredHoldsWith533(self) -> None:
            """With Java's broker."""
            self.play(JavaCluster("5.3.3", **SETTINGS), "deferred")

        def test_aioHoldsWith497(self) -> None:
            """Without what that broker cannot do."""
            self.play(JavaCluster("4.9.7", **SETTINGS), "aio", NOT_WITH_4_9)

        def test_threadsHoldWith497(self) -> None:
            """Without what that broker cannot do."""
            self.play(JavaCluster("4.9.7", **SETTINGS), "threads", NOT_WITH_4_9)

        def test_deferredHoldsWith497(self) -> None:
            """Without what that broker cannot do."""
            self.play(JavaCluster("4.9.7", **SETTINGS), "deferred", NOT_WITH_4_9)
