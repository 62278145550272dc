# -*- test-case-name: tests.wire.bodies -*-
"""Bodies of commands as values.

The modules:

  - L{topics}, L{groups}, L{heartbeats}: the state of brokers and clients.
  - L{routes}, L{registration}, L{mappings}: bodies to and from name servers.
  - L{queues}: a queue, as a value and as a key; L{statistics}: queues in figures.
  - L{clients}: connected clients, as tools see them; L{replicas}: replication.
  - L{consumer_order_info}: what groups have that pop in order.
"""
