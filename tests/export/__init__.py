# -*- test-case-name: tests.export -*-
"""Tests of rocketbroker.export."""
