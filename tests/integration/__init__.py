# -*- test-case-name: tests.integration -*-
"""Tests with real sockets, processes, Java and Spark."""
