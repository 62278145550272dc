# -*- test-case-name: tests.cli.cluster.doctor -*-
"""C{rocketbroker doctor}: what is wrong, and what to do.

The parts:

  - L{doctor}: the verb.
  - L{finding}: one thing that is wrong.
  - L{machine_checks}, L{cluster_checks}, L{replica_checks}, L{proxy_checks}: what is
    looked at; L{grpc_health}: a proxy, by its port.
  - L{access_checks}: what is open to strangers; L{certificates}: what servers show.
"""
