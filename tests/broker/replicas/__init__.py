"""Tests of L{rocketbroker.broker.replicas}."""
