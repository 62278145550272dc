# -*- test-case-name: tests.broker.storage -*-
"""The store's steps, and the times at which they run.

The modules:

  - L{store_scheduler}: dispatch, flush and preallocation; L{flush_policy}: the times of
    flushes.
  - L{cleanup}: looks at the disks, and the removal of expired files.
  - L{log_subscribers}: plug-ins that see all stored messages.
"""
