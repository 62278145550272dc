# -*- test-case-name: tests.app -*-
"""Servers as programs: broker, name server, standalone.

This package and L{rocketbroker.cli.server} alone import the reactor.

  - L{broker}, L{namesrv}: what twistd runs, and each as a service on a reactor.
  - L{standalone}: both in one process; L{slave_process}: the slaves of its broker.
  - L{proxy}: a proxy; L{grpc_extra}: whether what it needs is installed; L{grpc_port}:
    the port by which a standalone broker begins one; L{embedded_proxy}: what that one
    is told.
  - L{plugins}: plug-ins of the store, as Twisted finds them.
  - L{options}: flags that the servers share, and how a start is refused.
  - L{logs}: the log, to a file that rotates or to a stream.
  - L{process}: what every server's process is set up with, from:
  - L{signals}: stopping, and opening the log again.
  - L{faulthandler_log}: tracebacks of a process that is killed, in its log.
  - L{address_lookup}: name servers in DNS and on address servers.
  - L{systemd}: what systemd is told, and what it hands on.
  - L{certificates}: what servers speak TLS with; L{proxy_certificate}: of them the
    proxy's.
  - L{garbage}: when Python collects garbage.
  - L{descriptors}: how many connections the process may have.
  - L{reactor}: a reactor whose time only goes forward, and its threads.
  - L{metricsport}: C{/metrics} and C{/healthz} of either.
  - L{windows}: where there are no servers.
"""
