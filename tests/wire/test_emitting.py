"""Tests of the emitter."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.wire.emitting import dumps, dumps_standard


class EmittingTests(SynchronousTestCase):
    """What fastjson writes."""

    def test_integerKeys(self) -> None:
        """Integer keys stand without quotes, but for the standard form."""
        value = {"b": {10: "x", 9: "y"}, "a": None}
        self.assertEqual(dumps(value), b'{"b":{9:"y",10:"x"}}')
        self.assertEqual(dumps_standard(value), b'{"b":{"9":"y","10":"x"}}')
