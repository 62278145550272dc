# -*- test-case-name: tests.storetools -*-
"""Tools for a store directory, without a broker.

- L{inspect}: what it holds. L{verify}: all of it checked. L{repair}: a damaged one made
  good, as far as that can be.
"""
