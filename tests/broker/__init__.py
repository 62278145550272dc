# -*- test-case-name: tests.broker -*-
"""Tests of rocketbroker.broker."""
