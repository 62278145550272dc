"""Tests of L{rocketbroker.broker.metadata}."""
