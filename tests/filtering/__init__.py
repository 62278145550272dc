# -*- test-case-name: tests.filtering -*-
"""Tests of rocketbroker.filtering."""
