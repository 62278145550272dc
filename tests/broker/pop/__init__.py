# -*- test-case-name: tests.broker.pop -*-
"""Tests of rocketbroker.broker.pop."""
