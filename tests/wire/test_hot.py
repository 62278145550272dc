"""Tests of L{rocketbroker.wire.hot}."""
