# -*- test-case-name: tests.admin.verbs -*-
"""Tests of rocketbroker.admin.verbs."""
