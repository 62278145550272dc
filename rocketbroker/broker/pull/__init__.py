# -*- test-case-name: tests.broker.pull -*-
"""Pulls: requests 11 and 361.

The modules:

  - L{pull} answers them. L{pull_checks}: the subscription and the right to read.
    L{pull_messages}: the request, its limits, and the code of the answer.
  - L{long_polling}: pulls that wait for messages.
  - L{cold_flow}: groups that read too much of what is cold.
  - L{broadcast_offsets}: the progress of broadcasting groups.
  - L{denied_pulls}: refused pulls, for diagnostics. L{slow_groups}: groups that read
    far behind are switched off.
"""
