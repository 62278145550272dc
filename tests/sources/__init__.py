# -*- test-case-name: tests.sources -*-
"""Tests of rocketbroker.sources."""
