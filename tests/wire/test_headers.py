"""Tests of the typed headers."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.wire.client_headers import UnregisterClientRequestHeader


class HeadersTests(SynchronousTestCase):
    """Names on the wire."""

    def test_irregular(self) -> None:
        """The client's id is spelt as the reference spells it there."""
        self.assertEqual(
            UnregisterClientRequestHeader(client_id="c").to_ext(), {"clientID": "c"}
        )
