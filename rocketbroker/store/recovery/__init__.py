# -*- test-case-name: tests.store.recovery -*-
"""Recovery: from what a stop has left to a store that can go on.

- L{recovery}: its phases. L{outcome}: what it decided and found. L{log_scan}: the log
  read and entered into the queues.
- L{clean_shutdown}: where the queues ended at a clean stop. L{known_topics}: whether a
  topic can have been deleted since.
"""
