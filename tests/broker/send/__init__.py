"""Tests of L{rocketbroker.broker.send}."""
