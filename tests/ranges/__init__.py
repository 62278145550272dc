# -*- test-case-name: tests.ranges -*-
"""Tests of rocketbroker.ranges."""
