# -*- test-case-name: tests.testing -*-
"""Tests of rocketbroker.testing."""
