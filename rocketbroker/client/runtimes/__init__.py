# -*- test-case-name: tests.client.test_runtimes -*-
"""Runtimes: the only modules of the client that know asyncio or Twisted.

The parts:

  - L{on_asyncio}: the caller's running loop.
  - L{on_twisted}: a reactor.
  - L{machine}: clocks and identity, for both.
"""
