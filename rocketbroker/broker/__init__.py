# -*- test-case-name: tests.broker -*-
"""The broker: what answers each request code."""
