# -*- test-case-name: tests.store.dispatch -*-
"""Dispatch: adds the records of the log to the queues and the index.

The modules:

  - L{dispatcher}: one step of it, with the tag codes of delayed messages.
  - L{replaying}: many records at once, at a start.
  - L{offset_sequence}: records whose queue offset is not the next one.
  - L{queue_flush}: flushing the queues, and writing the checkpoint.
"""
