# -*- test-case-name: tests.sources -*-
"""Sources of messages: offset ranges over a broker or a store's directory.

The modules:

  - L{options}: what a read was told;
    L{option_table} and
    L{option_values}: how it is told.
  - L{resolving}: from options to offset ranges.
  - L{narrowing}: ranges made smaller by conditions.
  - L{ranges}: offset ranges, cut into splits.
  - L{source}: where messages come from:
    L{network} or L{offline};
    L{batch_queues}: queues of batches in a store.
  - L{retry}: with brokers that restart.
  - L{open_source}: opening them, once per process.
"""
