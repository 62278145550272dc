"""Tests of the tolerant reader."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.wire.reading import loads


class ReadingTests(SynchronousTestCase):
    """What fastjson takes."""

    def test_integerKeys(self) -> None:
        """An integer without quotes may be a key."""
        self.assertEqual(loads('{"a":{0:"x",1:"y"}}'), {"a": {0: "x", 1: "y"}})
