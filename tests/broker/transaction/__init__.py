"""Tests of L{rocketbroker.broker.transaction}."""
