# -*- test-case-name: tests.cli.cluster -*-
"""Tests of rocketbroker.cli.cluster."""
