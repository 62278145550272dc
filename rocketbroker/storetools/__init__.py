# -*- test-case-name: tests.storetools -*-
"""Tools for a store directory, without a broker.

The modules:

  - L{inspect}: its contents. L{pending_timers}, L{popped}: what waits in it. L{verify}:
    a check of all of it. L{repair}: the repair of a damaged one. L{truncation}: what an
    old master has and the new one has not is discarded.
"""
