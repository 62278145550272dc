# -*- test-case-name: tests.records -*-
"""Tests of rocketbroker.records."""
