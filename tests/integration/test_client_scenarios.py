"""The scenarios of the official client, with ours."""

from __future__ import annotations

import asyncio

from twisted.trial.unittest import SynchronousTestCase

from scripts.lab.servers import Cluster
from tests.integration.client_scenarios import failures


class ScenarioTests(SynchronousTestCase):
    """L{tests.integration.client_scenarios}."""

    timeout = 300

    def test_scenariosHoldWithOurBroker(self) -> None:
        """All at once, on one broker."""
        cluster = Cluster(transactionTimeOut=1000, transactionCheckInterval=1500)
        self.addCleanup(cluster.stop)
        cluster.start()
        self.assertEqual(asyncio.run(failures(cluster.names)), {})
