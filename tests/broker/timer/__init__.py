"""Tests of L{rocketbroker.broker.timer}."""
