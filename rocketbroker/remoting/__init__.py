# -*- test-case-name: tests.remoting -*-
"""The remoting protocol on a reactor."""
