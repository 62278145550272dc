# -*- test-case-name: tests.filtering -*-
"""Which messages a subscription wants."""
