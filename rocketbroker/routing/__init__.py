# -*- test-case-name: tests.routing -*-
"""The name server's table of routes, and a client's view of it. No I/O, no clock.

The modules:

  - L{table}: brokers register, unregister, expire.
  - L{registration}: values that go in and come out.
  - L{lookup}: routes, clusters, lists of topics.
  - L{topic_view}: a topic as its clients see it.
  - L{send_requests}: requests that send messages.
  - L{key_search}: requests that find messages by a key.
  - L{zones}: the part of a route that is in a zone.
  - L{static_topics}: the parts of logical queues.
  - L{static_plan}: where logical queues are to be.
  - L{allocation}: rebalance strategies: which member of a
    group consumes which queue.
"""
