"""Requests as the rules see them."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.auth.request import Asked, asked_by
from rocketbroker.wire.command import Command


class AskedTests(SynchronousTestCase):
    """What a request asks for."""

    def test_ofACommand(self) -> None:
        """It refers to what the command has."""
        command = Command(10, {"AccessKey": "bob", "topic": "T"}, b"body", version=399)
        asked = asked_by(command, "10.0.0.7")
        self.assertEqual((asked.code, asked.version), (10, 399))
        self.assertEqual((asked.body, asked.source), (b"body", "10.0.0.7"))
        self.assertIs(asked.fields, command.ext)
        self.assertEqual(asked.access_key, "bob")

    def test_withoutFields(self) -> None:
        """A request without fields has nobody's name."""
        asked = Asked(25, None)
        self.assertEqual(dict(asked.fields), {})
        self.assertIsNone(asked.access_key)

    def test_textShowsNoFields(self) -> None:
        """Bodies and signatures stay out of logs."""
        asked = Asked(10, {"AccessKey": "bob", "Signature": "sig"}, source="10.0.0.7")
        self.assertEqual(repr(asked), "<10 from 10.0.0.7 by bob>")
