# -*- test-case-name: tests.blocking -*-
"""Tests of rocketbroker.blocking."""
