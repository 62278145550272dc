# -*- test-case-name: tests.nameserver -*-
"""The name server: the routes of topics, and the live brokers.

  - L{nameserver<rocketbroker.nameserver.nameserver>}: all parts together, start, stop.
  - L{brokers<rocketbroker.nameserver.brokers>}: registration, heartbeats, expiry.
  - L{incoming<rocketbroker.nameserver.incoming>}: the body of a registration.
  - L{routes<rocketbroker.nameserver.routes>}: routes, clusters, topic lists.
  - L{keyvalues<rocketbroker.nameserver.keyvalues>}: key-value settings and their file.
  - L{settings<rocketbroker.nameserver.settings>}: changing settings while it runs.
  - L{saving<rocketbroker.nameserver.saving>}: files written without holding up the
    reactor.

The table itself is pure and stands in L{rocketbroker.routing}. Everything here runs in
the reactor's thread, so a request sees the table between two others, never within one.
Requests: C{docs/facts/namesrv.md} 10. Not there: the cluster test mode and the
controller in the same process.
"""
