"""Tests of L{rocketbroker.broker.pull}."""
