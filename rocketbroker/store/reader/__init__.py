# -*- test-case-name: tests.store.reader -*-
"""A store directory opened for reading only: exports, tools.

The modules:

  - L{directory}: all of it. L{log}: the files of its log. L{queue}, L{batch_queue}: one
    of its queues. L{file_sequence}: the files of one queue. L{unreadable}: files that
    the disk cannot read. L{takeover}: contents of a RocketMQ directory that this
    broker does not serve yet.
"""
