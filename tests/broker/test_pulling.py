"""Tests of L{rocketbroker.broker.pulling}."""
