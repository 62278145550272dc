"""Tests of L{rocketbroker.broker.schedule}."""
