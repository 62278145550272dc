"""Tests of L{rocketbroker.cli.cluster.doctor}."""
