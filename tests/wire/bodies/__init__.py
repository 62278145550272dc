"""Tests of L{rocketbroker.wire.bodies}."""
