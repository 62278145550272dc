# -*- test-case-name: tests.store -*-
"""Tests of rocketbroker.store."""
