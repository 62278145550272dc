"""Tests of L{rocketbroker.broker.pull_checks}."""
