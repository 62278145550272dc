# -*- test-case-name: tests.store.recovery -*-
"""Recovery: from what a stop has left to a store that can go on.

- L{recovery}: all of it. L{clean_shutdown}: where the queues ended at a clean stop.
- L{known_topics}: which topics the broker knows. L{unentered}, L{fates}: records that
  stand in no queue, but should.
"""
