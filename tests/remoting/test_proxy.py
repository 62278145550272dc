"""A proxy's header before connections of the hub and of Twisted's transports."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.testing.contracts.proxy_header import ProxyContract
from tests.remoting.wires import HubWire, NetworkWire


class HubProxyTests(ProxyContract, SynchronousTestCase):
    """A connection of the hub."""

    WIRE = HubWire


class StreamProxyTests(ProxyContract, SynchronousTestCase):
    """A connection on a Twisted transport."""

    WIRE = NetworkWire
