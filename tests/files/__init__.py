# -*- test-case-name: tests.files -*-
"""Tests of rocketbroker.files."""
