# -*- test-case-name: tests.arrow -*-
"""Tests of rocketbroker.arrow."""
