# -*- test-case-name: tests.nameserver -*-
"""Tests of rocketbroker.nameserver."""
