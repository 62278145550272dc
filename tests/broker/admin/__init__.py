"""Tests of L{rocketbroker.broker.admin}."""
