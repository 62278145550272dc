"""Tests of L{rocketbroker.broker.stats}."""
