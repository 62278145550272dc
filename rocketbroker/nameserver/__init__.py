# -*- test-case-name: tests.nameserver -*-
"""The name server: the routes of topics, and the live brokers.

  - L{nameserver}: all parts together, start, stop.
  - L{brokers}: registration, heartbeats, expiry.
  - L{register_request}: the body of a registration.
  - L{routes}: routes, clusters, topic lists.
  - L{keyvalues}: key-value settings and their file.
  - L{settings}: changing settings while it runs.
  - L{file_writer}: files written without holding up the
    reactor.

The table itself is pure and stands in L{rocketbroker.routing}. Everything here runs in
the reactor's thread, so a request sees the table between two others, never within one.
Requests: C{docs/facts/namesrv.md} 10. Not there: the cluster test mode and the
controller in the same process.
"""
