# -*- test-case-name: tests.client.test_runtimes -*-
"""What drives the client: the only modules of it that know asyncio or Twisted.

- L{on_asyncio<rocketbroker.client.runtimes.on_asyncio>}: the caller's running loop.
- L{on_twisted<rocketbroker.client.runtimes.on_twisted>}: a reactor.
- L{machine<rocketbroker.client.runtimes.machine>}: clocks and identity, for both.
"""
