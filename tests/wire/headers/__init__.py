"""Tests of L{rocketbroker.wire.headers}."""
