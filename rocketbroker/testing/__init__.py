# -*- test-case-name: tests.testing -*-
"""Doubles that users and our own tests share: network, files, contract suites."""
