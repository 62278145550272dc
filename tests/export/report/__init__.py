# -*- test-case-name: tests.export.report -*-
"""Tests of rocketbroker.export.report."""
