"""Tests of L{rocketbroker.broker.batching}."""
