"""Tests of L{rocketbroker.broker.holding}."""
