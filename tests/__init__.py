# -*- test-case-name: tests -*-
"""Tests, laid out as the packages are."""
