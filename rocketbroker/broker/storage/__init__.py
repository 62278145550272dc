# -*- test-case-name: tests.broker.storage -*-
"""Work on the store: who takes which step, and when.

- L{group_commit}: sends that wait for the disk, and the one flush in flight.
- L{store_scheduler}: dispatch, flush and preallocation; L{flush_policy}: when log and
  queues are committed and flushed.
- L{cleanup}: when old files are removed. L{log_subscribers}: plug-ins that see what was
  stored.
"""
