# -*- test-case-name: tests.storetools.verify -*-
"""A check of every record, queue entry and index entry of a directory.

The modules:

  - L{check}: all of it. L{report}: the faults and remarks that it finds.
  - L{log}: every record. L{queues}: every queue entry, by L{queue_match} and
    L{batch_match}. L{index}: the index. L{files}: the files by themselves.
  - L{lookup}: positions, entries and files looked up in the directory.
"""
