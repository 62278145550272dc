# -*- test-case-name: tests.ranges -*-
"""Which messages, from where: offset ranges over a broker or a store's directory.

The modules:

  - L{options<rocketbroker.ranges.options>}: what a read was told;
    L{option_table<rocketbroker.ranges.option_table>} and
    L{option_values<rocketbroker.ranges.option_values>}: how it is told.
  - L{resolving<rocketbroker.ranges.resolving>}: from options to offset ranges.
  - L{narrowing<rocketbroker.ranges.narrowing>}: ranges made smaller by conditions.
  - L{ranges<rocketbroker.ranges.ranges>}: offset ranges, cut into splits.
  - L{origins<rocketbroker.ranges.origins>}: where messages come from:
    L{network<rocketbroker.ranges.network>} or L{offline<rocketbroker.ranges.offline>};
    L{batch_queues<rocketbroker.ranges.batch_queues>}: queues of batches in a store.
  - L{patience<rocketbroker.ranges.patience>}: with brokers that restart.
  - L{open_origins<rocketbroker.ranges.open_origins>}: opening them, once per process.
"""
