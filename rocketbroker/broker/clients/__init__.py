# -*- test-case-name: tests.broker.clients -*-
"""Producers, consumers, and what they subscribe to.

- L{heartbeats} (34, 35, 46) fills the registries L{consumers} and L{producers};
  L{consumer_notify} tells members to rebalance; L{consumer_info}: what members ask
  (38, 14, 15). L{queue_assignment}: who consumes which queue (400, 401).
- L{sql_filters}: SQL92 subscriptions. L{subscription_digest}: a subscription, short
  enough to compare. L{queue_locks}: queues that are consumed in order (41, 42).
"""
