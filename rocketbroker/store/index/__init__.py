# -*- test-case-name: tests.store.index -*-
"""The index: messages by their keys.

- L{service}: all files of it, queries and additions. L{buffer}: messages on their way
  into it. L{keys}: under which hashes a message stands in it.
- L{file}: one file. L{loading}: which files a start believes.
"""
