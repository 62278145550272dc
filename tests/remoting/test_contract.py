"""The contract of connections: those of the hub, and those of Twisted's transports."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.remoting.connection_group import ConnectionLimits
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.testing.contracts.connections import ConnectionContract
from rocketbroker.testing.contracts.wire import Wire
from tests.remoting.wires import HubWire, NetworkWire, TlsNetworkWire, TlsWire


class HubConnectionTests(ConnectionContract, SynchronousTestCase):
    """A connection of the hub."""

    def wire(self, table: ResponderTable, limits: ConnectionLimits) -> Wire:
        """Over a socket pair."""
        return HubWire(table, limits)


class TlsConnectionTests(ConnectionContract, SynchronousTestCase):
    """A connection of the hub that speaks TLS."""

    def wire(self, table: ResponderTable, limits: ConnectionLimits) -> Wire:
        """Over a socket pair."""
        return TlsWire(table, limits)


class StreamConnectionTests(ConnectionContract, SynchronousTestCase):
    """A connection on a Twisted transport."""

    def wire(self, table: ResponderTable, limits: ConnectionLimits) -> Wire:
        """Over the memory network."""
        return NetworkWire(table, limits)


class TlsStreamConnectionTests(ConnectionContract, SynchronousTestCase):
    """A connection on a Twisted transport that speaks TLS."""

    def wire(self, table: ResponderTable, limits: ConnectionLimits) -> Wire:
        """Over the memory network."""
        return TlsNetworkWire(table, limits)
