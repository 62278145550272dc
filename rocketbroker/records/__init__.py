# -*- test-case-name: tests.records -*-
"""What a message is, in memory and as bytes."""
