# -*- test-case-name: tests.remoting -*-
"""The remoting protocol on a reactor.

Serving::

    hub = Hub(reactor)                  # or Turns(), where there is no epoll
    server = RemotingServer(reactor, options, table, hub)
    port = server.listen(10911)         # ConfigurationError: one sentence
    ...
    yield server.stop()

Two ports of one broker are two servers, with two tables, on one hub. Asking::

    client = RemotingClient(reactor, options)
    response = yield client.invoke("host:port", Command(...), timeout)

The reactor may be a L{rocketbroker.testing.network.MemoryNetwork} (servers without a
hub, then). What the modules are:

  - C{interfaces}: what a responder sees of a connection, and registers with
  - C{table}, C{counts}: responders by request code; what connections count
  - C{turns}: what is done once per turn; C{periodic}: work in periods
  - C{connection_group}: what all connections of one server or client share: limits,
    idleness
  - C{response_table}: requests that wait for answers, and their time-outs
  - C{command_channel}: what a connection does with commands
  - C{hub}, C{hubconnection}: its bytes through one epoll for all data connections
  - C{protocol}: its bytes through a Twisted transport
  - C{listener}, C{server}: a port
  - C{client}: requests to addresses
  - C{addresses}: addresses as text and bytes
"""
