# -*- test-case-name: tests.store -*-
"""The message store: commit log, consume queues, recovery."""
