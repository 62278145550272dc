"""Tests of L{rocketbroker.workers.relayed_client}: order and reading of a client."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.remoting.connection_group import ConnectionLimits
from rocketbroker.remoting.hubconnection import HubConnection
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.workers import relayed_client
from rocketbroker.workers.relayed_client import (
    BROKEN,
    NO_ROOM,
    PAUSED,
    OrderInput,
    RelayedClient,
    SendOrder,
)
from tests.machines import MachineContract
from tests.workers.relaywire import RelayWire


class SendOrderTests(MachineContract, SynchronousTestCase):
    """Who may store the sends of a connection, and when it is read."""

    MODULE, TABLE = "rocketbroker.workers.relayed_client", relayed_client.TRANSITIONS
    STATES, INPUTS = SendOrder, OrderInput

    def setUp(self) -> None:
        """A connection in a worker."""
        wire = RelayWire(ResponderTable(), ConnectionLimits())
        self.addCleanup(wire.end)
        wire.step()
        (connection,) = wire.worker_group.connections
        assert isinstance(connection, HubConnection)
        self.connection = connection

    def machine(self, state: SendOrder) -> RelayedClient:
        """One that has come there."""
        client = RelayedClient(1, self.connection)
        client.order = state
        return client

    def state(self, machine: RelayedClient) -> SendOrder:
        """Where it is."""
        return machine.order

    def test_oneFenceGoesBehindAllSendsOfATurn(self) -> None:
        """The first that is relayed asks for it, the others do not."""
        client = self.machine(SendOrder.OWN)
        self.assertEqual([client.relayed() for _ in range(3)], [True, False, False])
        client.fenced()
        self.assertTrue(client.relayed())

    def test_ownAgainWhenAllFencesAreBack(self) -> None:
        """Not before, and not if another send was relayed meanwhile."""
        client = self.machine(SendOrder.OWN)
        for _ in range(2):
            client.relayed()
            client.fenced()
        client.fence_back()
        self.assertIs(client.order, SendOrder.FENCED)
        client.relayed()
        client.fence_back()
        self.assertIs(client.order, SendOrder.UNFENCED)
        client.fenced()
        client.fence_back()
        self.assertIs(client.order, SendOrder.OWN)

    def test_fenceThatNobodySentIsAMistake(self) -> None:
        """It does not count."""
        client = self.machine(SendOrder.OWN)
        self.assertRaises(KeyError, client.fence_back)
        self.assertEqual(client.fences, 0)

    def test_readWhenNoReasonIsLeft(self) -> None:
        """Each reason not to read comes and goes without the others."""
        client = self.machine(SendOrder.OWN)
        for reason in (PAUSED, NO_ROOM, PAUSED):
            client.hold(reason)
            self.assertTrue(self.connection.held)
        client.free(PAUSED)
        self.assertTrue(self.connection.held)
        client.free(NO_ROOM)
        self.assertFalse(self.connection.held)
        client.hold(BROKEN)
        client.free(PAUSED)
        self.assertTrue(self.connection.held)
