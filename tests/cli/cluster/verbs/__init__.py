# -*- test-case-name: tests.cli.cluster.verbs -*-
"""Tests of rocketbroker.cli.cluster.verbs."""
