"""Tests of L{rocketbroker.cli.export}."""
