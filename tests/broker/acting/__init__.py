"""Tests of L{rocketbroker.broker.acting}."""
