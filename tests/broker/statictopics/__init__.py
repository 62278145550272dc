"""Tests of L{rocketbroker.broker.statictopics}."""
