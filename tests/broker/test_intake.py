"""Tests of L{rocketbroker.broker.intake}."""
