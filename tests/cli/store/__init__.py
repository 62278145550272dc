"""Tests of L{rocketbroker.cli.store}."""
