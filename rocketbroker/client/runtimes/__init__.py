# -*- test-case-name: tests.client.test_runtimes -*-
"""What drives the client: the only modules of it that know asyncio or Twisted.

The parts:

  - L{on_asyncio}: the caller's running loop.
  - L{on_twisted}: a reactor.
  - L{machine}: clocks and identity, for both.
"""
