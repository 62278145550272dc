# -*- test-case-name: tests.store.reader -*-
"""A store directory opened for reading only: exports, tools.

- L{directory}: all of it. L{log}: the files of its log, or what a directory
  without them is. L{queue}, L{batch_queue}: one of its queues; L{file_sequence}: the
  files of one. L{unreadable}: what the disk refuses to read. L{takeover}:
  what a directory of RocketMQ's has that this broker does not serve yet.
"""
