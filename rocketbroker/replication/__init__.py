# -*- test-case-name: tests.replication -*-
"""Replication: a master's commit log, byte for byte, on its slaves.

  - L{interfaces}: what a broker sees of either side.
  - L{master}: listens, and sends each slave what it lacks.
  - L{slave}: connects to the master, and stores what it sends;
    L{rocketbroker.replication.join}: whether both logs agree so far.
  - L{socket_writer}: bytes to a socket without a detour;
    L{rocketbroker.replication.transfer_rate}: how many went, by the second;
    L{rocketbroker.replication.stop_watch}: how long nothing came.

The bytes between them: L{rocketbroker.wire.hastream}. Waiting for slaves is the
broker's (L{rocketbroker.broker.appends.group_commit}).

C{docs/facts/ha.md} 1 to 6.
"""
