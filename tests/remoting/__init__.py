# -*- test-case-name: tests.remoting -*-
"""Tests of rocketbroker.remoting."""
