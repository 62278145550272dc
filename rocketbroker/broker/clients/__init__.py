# -*- test-case-name: tests.broker.clients -*-
"""Producers, consumers, and their subscriptions.

The modules:

  - L{heartbeats} (34, 35, 46) fills the registries L{consumers} and L{producers} with
    L{members}.
  - L{consumer_notify} makes members rebalance. L{consumer_info}: members and offsets,
    for consumers (38, 14, 15). L{queue_assignment}: queues for each member (400, 401).
  - L{sql_filters}: SQL92 subscriptions. L{sql_compiler}: when they are compiled.
    L{subscription_digest}: a subscription, short enough to compare.
  - L{queue_locks}: queues that are consumed in order (41, 42)."""
