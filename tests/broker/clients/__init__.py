"""Tests of L{rocketbroker.broker.clients}."""
