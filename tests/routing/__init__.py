# -*- test-case-name: tests.routing -*-
"""Tests of rocketbroker.routing."""
