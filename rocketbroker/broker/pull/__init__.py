# -*- test-case-name: tests.broker.pull -*-
"""Pulls: request 11 (and 361).

- L{pull}, with L{pull_checks}: the subscription and the right to read;
  L{pull_requests}: the request, L{pull_answers}: the answer. L{long_polling}: pulls
  that wait.
- L{broadcast_offsets}: where broadcasting groups go on. L{denied_pulls}: pulls that
  were refused, for diagnostics.
"""
