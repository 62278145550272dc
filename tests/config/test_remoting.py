"""The settings of ports and connections."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.remoting import RemotingClientOptions, RemotingServerOptions
from tests.config.keys import check_tables


class RemotingOptionsTests(SynchronousTestCase):
    """L{RemotingServerOptions} and L{RemotingClientOptions}."""

    def test_server(self) -> None:
        """Tables and attributes agree, and the defaults can be read back."""
        check_tables(self, RemotingServerOptions)

    def test_client(self) -> None:
        """The same for the client's."""
        check_tables(self, RemotingClientOptions)
        self.assertIn("useTLS", RemotingClientOptions.keys())

    def test_sharedKey(self) -> None:
        """A key of both sets both."""
        mark = {"writeBufferHighWaterMark": "65536"}
        server = RemotingServerOptions.from_properties(mark)
        client = RemotingClientOptions.from_properties(mark)
        self.assertEqual(server.write_buffer_high_water_mark, 65536)
        self.assertEqual(client.write_buffer_high_water_mark, 65536)
