"""Tests of L{rocketbroker.broker.upkeep}."""
