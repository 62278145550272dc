"""Tests of L{rocketbroker.broker.durability}."""
