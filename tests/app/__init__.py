# -*- test-case-name: tests.app -*-
"""Tests of rocketbroker.app."""
