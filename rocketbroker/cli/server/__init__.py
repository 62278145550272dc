# -*- test-case-name: tests.integration.test_starts -*-
"""The verbs that start servers.

The parts:

  - L{standalone}: a name server and a broker in this process.
  - L{run}: C{broker run} and C{namesrv run}.
"""
