"""Tests of L{rocketbroker.broker.appends}."""
