# -*- test-case-name: tests.admin -*-
"""Tests of rocketbroker.admin."""
