# -*- test-case-name: tests.allocation -*-
"""Tests of rocketbroker.allocation."""
