"""Tests of L{rocketbroker.broker.messages}."""
