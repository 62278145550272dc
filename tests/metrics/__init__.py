# -*- test-case-name: tests.metrics -*-
"""Tests of rocketbroker.metrics."""
