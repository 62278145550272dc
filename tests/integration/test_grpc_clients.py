"""The official gRPC clients, unchanged, before our proxy and before RocketMQ's."""

from __future__ import annotations

from collections.abc import Sequence

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from tests.heavy import HEAVY
from tests.integration.grpc_scenarios import SCENARIOS
from tests.integration.grpc_scenes import SCENES, folder_of_its_own
from tests.integration.grpc_table import CONTINUOUS, all_tried, recorded
from tests.integration.official import OFFICIAL


class ClientCase(SynchronousTestCase):
    """What comes of all scenarios is what C{grpc_table.json} has."""

    timeout = 1800

    def tries(self, scene: str, clients: Sequence[str]) -> None:
        """All scenarios of clients; what was not as it should be is printed.

        @raise SkipTest: some of them cannot run here; the others have run.
        """
        table = recorded()
        with folder_of_its_own() as folder, SCENES[scene](folder) as where:
            found = all_tried(clients, where, list(SCENARIOS))
        for client, row in found.rows.items():
            kept = {name: table[client][name][scene] for name in SCENARIOS}
            self.assertEqual(row, kept, client)
        if found.missing:
            raise SkipTest("; ".join(found.missing))


class JavaTests(ClientCase):
    """Java's newest client."""

    def test_scenariosHold(self) -> None:
        """Before C{rocketbroker standalone}."""
        self.tries("ours", CONTINUOUS[:1])


class PythonTests(ClientCase):
    """Python's client, at the same time in a process of its own."""

    def test_scenariosHold(self) -> None:
        """Before C{rocketbroker standalone}."""
        self.tries("ours", CONTINUOUS[1:])


if HEAVY:

    class EveryClientTests(ClientCase):
        """All clients."""

        def test_ours(self) -> None:
            """Our proxy before our broker."""
            self.tries("ours", list(OFFICIAL))

        def test_oursBeforeJava(self) -> None:
            """Our proxy before RocketMQ's broker."""
            self.tries("ours before RocketMQ's broker", list(OFFICIAL))

        def test_java(self) -> None:
            """RocketMQ's Proxy before RocketMQ's broker: the same comes of it."""
            self.tries("RocketMQ's", list(OFFICIAL))
