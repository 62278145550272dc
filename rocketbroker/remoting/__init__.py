# -*- test-case-name: tests.remoting -*-
"""The remoting protocol on a reactor.

Serving::

    hub = hub_of(reactor, options)
    server = RemotingServer(reactor, options, table, hub)
    port = server.listen(10911)         # ConfigurationError: one sentence
    ...
    yield server.stop()

Two ports of one broker are two servers, with two tables, on one hub. Asking::

    client = RemotingClient(reactor, options)
    response = yield client.invoke("host:port", Command(...), timeout)

The reactor may be a L{rocketbroker.testing.network.MemoryNetwork}; a server has no hub
then. The modules, in the order in which a request meets them:

  - C{server}, C{listener}: a port; accepting connections
  - C{plain_port}: the ports of other protocols: few connections, of use
  - C{hub}, C{hubconnection}: bytes in and out, through one epoll for all connections;
    from bytes to frames, and to responders
  - C{sockets}: what that epoll watches; sockets of connections of other processes
  - C{frame_reader}: from bytes to frames, and to responders
  - C{buffers}: the memory that unfinished frames and unread answers share
  - C{protocol}: bytes in and out through a Twisted transport: TLS, clients, tests
  - C{command_channel}: commands: a request to its responder, a response to its request
  - C{table}: the responders by request code, and how long they took
  - C{response_table}: our own requests that wait for responses
  - C{connection_group}: limits, idle time and counters (C{counts}) of one port or
    client
  - C{client}: requests to addresses, over one connection for each
  - C{interfaces}: connection and table as responders see them
  - C{turns}, C{periodic}: work at the end of each turn; work in periods
  - C{cooperative_tasks}: long work, a bounded slice at a time
  - C{request_expiry}: requests that waited too long are answered
  - C{addresses}: addresses as text and bytes
  - C{settings_change}: requests that change settings; C{audit_line}: lines of the log
  - C{refusal_log}: what was refused, at most a line of the log in a second
"""
