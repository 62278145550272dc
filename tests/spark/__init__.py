# -*- test-case-name: tests.spark -*-
"""Tests of rocketbroker.spark."""
