# -*- test-case-name: tests.auth -*-
"""Tests of rocketbroker.auth."""
