"""Tests of L{rocketbroker.broker.message_queries}."""
