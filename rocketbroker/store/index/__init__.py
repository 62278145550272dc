# -*- test-case-name: tests.store.index -*-
"""The index: finds messages by their keys.

The modules:

  - L{service}: all files of it, queries and additions. L{buffer}: messages on their way
    into it. L{keys}: the hashes of the keys of messages.
  - L{file}: one file. L{loading}: opening the files at a start.
"""
