# -*- test-case-name: tests.routing -*-
"""The name server's table of routes, and a client's view of it. No I/O, no clock.

The modules:

  - L{table<rocketbroker.routing.table>}: brokers register, unregister, expire.
  - L{registration<rocketbroker.routing.registration>}: values that go in and come out.
  - L{lookup<rocketbroker.routing.lookup>}: routes, clusters, lists of topics.
  - L{zones<rocketbroker.routing.zones>}: the part of a route that is in a zone.
  - L{static_topics<rocketbroker.routing.static_topics>}: the parts of logical queues.
  - L{static_plan<rocketbroker.routing.static_plan>}: where logical queues are to be.
"""
