# -*- test-case-name: tests.wire -*-
"""Tests of rocketbroker.wire."""
