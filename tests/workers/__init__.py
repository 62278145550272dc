# -*- test-case-name: tests.workers -*-
"""Tests of rocketbroker.workers."""
