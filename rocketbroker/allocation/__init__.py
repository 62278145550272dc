# -*- test-case-name: tests.allocation -*-
"""Rebalance strategies: which member of a group consumes which queue. No I/O, no clock.

The modules:

  - L{strategies<rocketbroker.allocation.strategies>}: those that clients name.
"""
