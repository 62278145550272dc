"""Tests of L{rocketbroker.cli}."""
