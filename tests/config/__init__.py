# -*- test-case-name: tests.config -*-
"""Tests of rocketbroker.config."""
